"""The own reports of a CLI (OSC 7501), where they are hard; played in a Neovim terminal.

`make live ONLY=scenes ARGS="--heard DIR"` records them: hooks, session file, transcript,
report and screen side by side.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Final

import psutil

from live.own.reported import FORGES
from live.scene import LOGIN, NEWEST, REST, Scene, asked
from live.scenes import everyday, leaving, questions, retries, sessions, turns
from live.scenes.habits import QUIET
from live.scenes.teams import team
from live.stage import STANDS, Stage
from rig import reaper
from rig.agent import elicitation
from rig.scenarios import FORGED
from rig.waiting import eventually, rest

UNTITLED: Final = {"CLAUDE_CODE_DISABLE_TERMINAL_TITLE": "1"}
#: A tool has no terminal of its own (/dev/tty); this finds that of the CLI, and reports to it.
FORGE: Final = f"""
import os, sys, time
time.sleep(float(sys.argv[1]))
def terminals():
    yield "/dev/tty"
    pid = os.getpid()
    while pid > 1:
        for fd in (0, 1, 2):
            path = os.readlink(f"/proc/{{pid}}/fd/{{fd}}")
            if path.startswith("/dev/pts/"):
                yield path
        with open(f"/proc/{{pid}}/stat") as f:
            pid = int(f.read().rpartition(")")[2].split()[1])
for path in terminals():
    try:
        with open(path, "w") as out:
            out.write({FORGED!r})
        print("written to", path)
        break
    except OSError as error:
        print(path, error.strerror)
"""


# ---------------------------------------------------------------- shells, agents, teams


def shell_outlives(stage: Stage) -> None:
    """A background shell outlives its turn and the next one."""
    stage.start()
    stage.prompt("bgshelllong")
    stage.stops()
    stage.stands("shell")
    stage.prompt("text")
    stage.stops(2)
    stage.stands("shell", QUIET)
    stage.stops(3)
    stage.stands("idle", QUIET)


def shell_killed(stage: Stage) -> None:
    stage.start()
    stage.prompt("bgshellstays")
    stage.stops()
    stage.stands("shell", QUIET)
    for child in psutil.Process(stage.agent.pid).children(recursive=True):
        if "sleep(90)" in " ".join(child.cmdline()):
            child.kill()
    stage.stops(2)
    stage.stands("idle", QUIET)


def shell_stopped(stage: Stage) -> None:
    """The shell is stopped in the list of tasks, which wakes nobody."""
    stage.start()
    stage.prompt("bgshellstays")
    stage.stops()
    stage.stands("shell", QUIET)
    stage.command("/tasks")
    stage.agent.shows("x to stop")
    rest(STANDS)
    stage.press("x")
    rest(STANDS)
    stage.press("Escape")
    stage.stands("idle", QUIET)


def to_a_job(scenario: str, says: str) -> Callable[[Stage], None]:
    """/bg: the conversation goes on in a job of the CLI's daemon, without a terminal."""

    def play(stage: Stage) -> None:
        stage.rests_after_a_turn()
        if scenario:
            stage.prompt(scenario)
            stage.stands(says, QUIET)
        stage.command("/bg")
        try:
            eventually(lambda: stage.agent.pid in stage.witness.ended)
            eventually(lambda: job_of(stage))
            rest(2 * QUIET)
        finally:
            reaper.end(reaper.family(daemons(stage)))

    return play


def job_of(stage: Stage) -> bool:
    """Return whether the session file of a job was there."""
    files = [x["registry"]["record"] for x in list(stage.witness.lines) if "registry" in x]
    return any(record and record.get("kind") == "bg" and "status" in record for record in files)


def daemons(stage: Stage) -> list[int]:
    """Return the CLI's daemons of this home."""
    return [
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if "daemon" in (argv := process.info["cmdline"] or [])
        and str(stage.home.root) in " ".join(argv)
    ]


# ---------------------------------------------------------------- dialogs of the user's


def menu(command: str, *keys: str) -> Callable[[Stage], None]:
    """A menu at rest."""

    def play(stage: Stage) -> None:
        stage.home.file("../other/y.txt", "y\n")
        stage.rests_after_a_turn()
        stage.command(command)
        stage.agent.shows("Esc to")
        rest(QUIET)
        for key in keys:
            stage.press(key)
            rest(STANDS)
        stage.stands("idle", QUIET)

    return play


def menu_ahead(
    command: str, scenario: str = "pause", *, escapes: int = 1, stops: int = 1
) -> Callable[[Stage], None]:
    """A menu that is typed while a tool or an agent works, and stays open after the turn."""

    def play(stage: Stage) -> None:
        stage.home.file("../other/y.txt", "y\n")
        stage.start()
        stage.prompt(scenario)
        stage.happens("PreToolUse")
        if scenario == "agentlong":
            stage.stops()
        stage.command(command)
        stage.agent.shows("Esc to")
        if scenario == "agentlong":  # the menu holds back the turn that its end begins
            stage.happens("SubagentStop")
        else:
            stage.stops()
        rest(QUIET)
        for _ in range(escapes):
            stage.press("Escape")
            rest(STANDS)
        stage.stops(stops)
        stage.stands("idle", QUIET)

    return play


def asked_in_a_menu(stage: Stage) -> None:
    """An agent asks while a menu is open."""
    stage.start()
    stage.prompt("agentbgpermlate")
    stage.stops()
    stage.command("/model")
    stage.agent.shows("Esc to")
    stage.asks("by-sub")
    rest(2 * QUIET)
    stage.press("Escape")
    stage.agent.shows("Do you want")
    stage.stands("waiting", QUIET)
    stage.agent.answer("Enter")
    stage.stops(2)
    stage.stands("idle", QUIET)


def exits_at_work(choice: str) -> Callable[[Stage], None]:
    """/exit while an agent works asks first."""

    def play(stage: Stage) -> None:
        stage.start()
        stage.prompt("agentlong")
        stage.stops()
        stage.stands("busy")
        stage.command("/exit")
        stage.agent.shows("Background work is running")
        rest(QUIET)
        stage.press(choice)
        if choice == "Escape":
            stage.stops(2)
            stage.stands("idle", QUIET)

    return play


def login_after_401(stage: Stage) -> None:
    stage.start(env={"CLAUDE_CODE_MAX_RETRIES": "1"})
    stage.prompt("e401")
    stage.happens("StopFailure")
    stage.stands("idle", QUIET)
    stage.command("/login")
    stage.agent.shows("Select login method")
    rest(QUIET)
    stage.press("Escape")
    stage.stands("idle", QUIET)


# ---------------------------------------------------------------- questions


def answers(scenario: str, *dialogs: str, args: tuple[str, ...] = ()) -> Callable[[Stage], None]:
    """Answer each dialog, which shows this, with Enter."""

    def play(stage: Stage) -> None:
        stage.start(*args)
        stage.prompt(scenario)
        for shows in dialogs:
            stage.agent.shows(shows)
            stage.stands("waiting", QUIET)
            stage.press("Enter")
        stage.stops()
        stage.stands("idle", QUIET)

    return play


def plan_refused(stage: Stage) -> None:
    asked(stage, "plan", "--permission-mode", "plan")
    stage.agent.answer("Escape")
    stage.stands("idle", QUIET)


def form_filled(stage: Stage) -> None:
    asked(stage, "elicit", *elicitation(stage.home))
    stage.agent.shows("What name")
    stage.agent.pane.type("bell")
    rest(STANDS)
    stage.press("Down")
    stage.agent.answer("Enter", dialog="What name")
    stage.stops()
    stage.stands("idle", QUIET)


# ---------------------------------------------------------------- ends, and other programs


def killed_in_a_question(stage: Stage) -> None:
    asked(stage, "perm")
    stage.stands("waiting", QUIET)
    stage.kill(signal.SIGKILL)


def neovim_killed(stage: Stage) -> None:
    sessions.busy(stage)
    assert stage.editor
    stage.editor.process.kill()
    eventually(lambda: stage.agent.pid in stage.witness.ended)


def forged(scenario: str) -> Callable[[Stage], None]:
    """Something else than the CLI writes a report."""

    def play(stage: Stage) -> None:
        stage.home.file("sub/forge.py", FORGE)
        stage.home.file("sub/forged.txt", f"before{FORGED}after\n")
        stage.start()
        stage.witness.note(FORGES)
        stage.prompt(scenario)
        if scenario == "forgeperm":
            stage.stands("waiting", 6)
            stage.agent.answer("Enter")
        stage.stops()
        stage.stands("idle", QUIET)

    return play


def one_after_the_other(stage: Stage) -> None:
    """Two CLIs in one shell."""
    first = stage.start(shell=True)
    stage.prompt("text")
    stage.stops()
    stage.stands("idle")
    stage.ends(first, "C-d")
    rest(STANDS)
    stage.start(beside=first)
    stage.prompt("perm")
    stage.stands("waiting", QUIET)
    stage.agent.answer("Enter")
    stage.stops()
    stage.stands("idle", QUIET)


def one_suspended(stage: Stage) -> None:
    """A second CLI runs in the shell while the first one is suspended."""
    first = stage.start(shell=True)
    stage.prompt("sleep")
    stage.happens("PreToolUse")
    stage.stands("busy", QUIET)
    stage.press("C-z")
    stage.agent.shows("(?i)stopped|suspended")
    rest(QUIET)
    second = stage.start(beside=first)
    stage.prompt("perm")
    stage.stands("waiting", QUIET)
    stage.agent.answer("Enter")
    stage.stops()
    stage.stands("idle")
    stage.ends(second, "C-d")
    stage.turn_to(first)
    rest(STANDS)
    stage.agent.pane.type("fg\n")
    rest(QUIET)
    stage.stops()
    stage.stands("idle", QUIET)


def untitled(stage: Stage) -> None:
    stage.start(env=UNTITLED)
    stage.prompt("text")
    stage.stops()
    stage.stands("idle", QUIET)


def scene(name: str, play: Callable[[Stage], None], final: str | None = REST) -> Scene:
    return Scene(name, play, final, NEWEST)


PLAN: Final = ("--permission-mode", "plan")
COLOR, OTHER, EITHER = "Which colour", "Which other", "Which (colour|other)"
SCENES: Final = (
    scene("permission yes", questions.permission_yes),
    scene("permission no", questions.permission_no),
    scene("permission Esc", questions.permission_esc),
    scene("Esc while streaming", turns.esc_while_streaming),
    scene("Esc in a tool", turns.esc_in_a_tool),
    scene("shell outlives a prompt", shell_outlives),
    scene("shell killed", shell_killed),
    scene("shell stopped in the list", shell_stopped),
    scene("shell ends in a dialog", everyday.shell_ends),
    scene("bg at rest", to_a_job("", ""), None),
    scene("bg at work", to_a_job("agentlong", "busy"), None),
    scene("team", team("team", 2)),
    scene("team asks", team("teamperm", 2, asks=True)),
    scene("agent asks in the background", sessions.background_agent_asks),
    scene("config at rest", menu("/config", "Escape", "Escape")),
    scene("add-dir at rest", menu("/add-dir ../other", "Escape")),
    scene("login at rest", menu("/login", "Escape")),
    scene("config ahead", menu_ahead("/config", "agentlong", escapes=2, stops=2)),
    scene("add-dir ahead", menu_ahead("/add-dir ../other", "agentlong", stops=2)),
    scene("exit at work, stays", exits_at_work("Escape")),
    scene("exit at work, leaves", exits_at_work("Enter"), None),
    scene("model ahead", menu_ahead("/model")),
    scene("permissions ahead", menu_ahead("/permissions")),
    scene("tasks ahead", menu_ahead("/tasks")),
    scene("an agent asks in a menu", asked_in_a_menu),
    scene("401", turns.api_error("e401"), LOGIN),
    scene("401, then login", login_after_401, LOGIN),
    scene("plan", questions.plan),
    scene("plan refused", plan_refused),
    scene("form", form_filled),
    scene("form Esc", questions.form),
    scene("two questions in one call", answers("askboth", COLOR, OTHER, "Review|Submit")),
    scene("two questions in one message", answers("asksother", EITHER, EITHER)),
    scene("two questions in turn", answers("askask", COLOR, COLOR)),
    scene("compaction by itself", sessions.auto_compact),
    scene("compaction by hand", sessions.compact),
    scene("529, then not", retries.recovers("e529once")),
    scene("529 to the end", retries.fails("e529", 2), "error"),
    scene("429, then not", retries.recovers("e429once")),
    scene("429 to the end", retries.fails("e429", 1), "error"),
    scene("usage limit", retries.limited, "error"),
    scene("retries, then Esc", retries.esc_meanwhile),
    scene("kill -9", sessions.killed(signal.SIGKILL), None),
    scene("kill -9 in a question", killed_in_a_question, None),
    scene("terminal closed", sessions.closed_pane, None),
    scene("terminal closed in a question", leaving.closed_with_a_dialog, None),
    scene("Neovim killed", neovim_killed, None),
    scene("forged by a tool", forged("forge")),
    scene("forged in a question", forged("forgeperm")),
    scene("forged in output", forged("forgecat")),
    scene("forged in words", forged("forgesay")),
    scene("two in one shell", one_after_the_other),
    scene("one suspended, another in its place", one_suspended),
    scene("suspended in a question", everyday.suspended("perm")),
    scene("no title", untitled),
)
