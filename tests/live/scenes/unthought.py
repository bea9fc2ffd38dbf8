"""Actions that nobody had thought of: two things at once, and keys that come too soon."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Final

from live.scene import NEWEST, REST, Scene, asked
from live.scenes.everyday import SLEEP
from live.scenes.habits import QUIET
from live.stage import STANDS, Stage
from rig.scenarios import call, say
from rig.waiting import rest

AT_ONCE: Final = 0.1  # seconds between two things that follow each other at once
STOPPED: Final = 6.0  # seconds for which a CLI is stopped


def shell_mode(stage: Stage, command: str) -> None:
    """Type a command in shell mode."""
    stage.agent.pane.type("!")
    stage.agent.shows("for (shell|bash) mode")
    stage.command(command)


def command_beside(scenario: str, stops: int, says: str) -> Callable[[Stage], None]:
    """A `!` command runs while an agent or a shell works in the background."""

    def play(stage: Stage) -> None:
        stage.start()
        stage.prompt(scenario)
        stage.stops()
        stage.stands(says)
        shell_mode(stage, SLEEP.format(4))
        stage.stands("busy")
        stage.stops(stops)
        stage.stands("idle", QUIET)

    return play


def command_to_the_background(stage: Stage) -> None:
    """Ctrl-B sends a `!` command to the background; a prompt comes while it runs."""
    stage.rests_after_a_turn()
    shell_mode(stage, SLEEP.format(14))
    stage.stands("busy", 3)
    stage.press("C-b")
    if not stage.how.editor:
        rest(0.3)
        stage.press("C-b")
    rest(2 * QUIET)
    stage.prompt("ask")
    stage.stands("waiting", QUIET)
    stage.agent.answer("Enter")
    stage.stands("idle", 2 * QUIET)


def question_behind(*opens: str, command: str = "") -> Callable[[Stage], None]:
    """A question comes while a menu or the transcript is in front."""

    def play(stage: Stage) -> None:
        stage.start()
        stage.prompt("pauseask")
        stage.happens("PreToolUse")
        stage.press(*opens)
        if command:
            stage.command(command)
        stage.happens("PreToolUse", 2)
        rest(3 * QUIET)
        stage.press("Escape" if command else opens[0])
        stage.agent.shows("Which colour")
        stage.stands("waiting", QUIET)
        stage.agent.answer("1")
        stage.stops()
        stage.stands("idle", QUIET)

    return play


def answered_at_once(scenario: str, shows: str, times: int = 1) -> Callable[[Stage], None]:
    """A number answers each dialog as soon as it is drawn."""

    def play(stage: Stage) -> None:
        stage.start()
        stage.prompt(scenario)
        for _ in range(times):
            stage.agent.answer("1", dialog=shows)
        stage.stops()
        stage.stands("idle", QUIET)

    return play


def compact_then_prompt(stage: Stage) -> None:
    stage.rests_after_a_turn()
    stage.command("/compact")
    rest(AT_ONCE)
    stage.prompt("pause")
    stage.stops(2)
    stage.stands("idle", QUIET)


def prompt_and_clear_queued(stage: Stage) -> None:
    """A prompt and /clear are queued in a turn."""
    stage.start()
    stage.prompt("pause")
    stage.happens("PreToolUse")
    stage.prompt("brief")
    stage.command("/clear")
    stage.happens("SessionStart", source="clear")
    stage.stands("idle", QUIET)
    stage.prompt("text")
    stage.stands("idle", QUIET)


def two_plans(stage: Stage) -> None:
    """A plan is accepted, and another one follows in the same turn."""
    stage.api.scenarios["twoplans"] = (
        call("ExitPlanMode"),
        call("EnterPlanMode"),
        call("ExitPlanMode"),
        say("Planned twice."),
    )
    asked(stage, "twoplans", "--permission-mode", "plan")
    for _ in range(3):
        stage.stands("waiting", QUIET)
        stage.press("Enter")
        rest(QUIET)
        if stage.says() == "idle":
            break
    stage.stands("idle", QUIET)


def resumed_beside_a_shell(stage: Stage) -> None:
    """/resume of another session while a background shell runs."""
    stage.rests_after_a_turn()
    first = stage.session
    stage.command("/clear")
    stage.happens("SessionStart", source="clear")
    stage.prompt("bgshelllong")
    stage.stops(2)
    stage.stands("shell", QUIET)
    stage.command(f"/resume {first}")
    stage.happens("SessionStart", source="resume")
    rest(2 * QUIET)
    stage.prompt("pause")
    stage.stops(3)
    rest(14)
    stage.stands("idle", QUIET)


def hidden_and_wiped(stage: Stage) -> None:
    """The window is closed while the session asks; then the buffer is wiped."""
    asked(stage, "perm")
    if stage.editor:
        stage.editor.lua(
            "for _, w in ipairs(vim.fn.win_findbuf(...)) do"
            " vim.bo[vim.api.nvim_win_get_buf(w)].bufhidden = 'hide'"
            " vim.api.nvim_win_close(w, true) end",
            stage.agent.pane._buffer,  # type: ignore[union-attr]
        )
    stage.stands("waiting", 2 * QUIET)
    stage.agent.pane.close()


def stopped(scenario: str, says: str) -> Callable[[Stage], None]:
    """The process is stopped for some seconds, and goes on."""

    def play(stage: Stage) -> None:
        stage.start()
        stage.prompt(scenario)
        stage.stands(says)
        stage.kill(signal.SIGSTOP)
        rest(STOPPED)
        stage.kill(signal.SIGCONT)
        rest(STANDS)
        if says == "waiting":
            stage.stands(says)
            stage.agent.answer("Enter")
        stage.stops()
        stage.stands("idle", QUIET)

    return play


def refused_then_asked(stage: Stage) -> None:
    """Esc in a permission, and at once a prompt that asks again."""
    asked(stage, "perm")
    stage.agent.answer("Escape", dialog="Do you want")
    rest(AT_ONCE)
    stage.prompt("ask")
    stage.agent.shows("Which colour")
    stage.stands("waiting", QUIET)
    stage.agent.answer("1")
    stage.stops()
    stage.stands("idle", QUIET)


def rewound_beside_a_shell(stage: Stage) -> None:
    """Esc in words, Esc twice for the list, back to the first prompt, while a shell runs."""
    stage.start()
    stage.prompt("bgshelllong")
    stage.stops()
    stage.stands("shell")
    stage.prompt("slow")
    stage.agent.shows("word3")
    stage.press("Escape")
    rest(1)
    stage.press("C-u")
    stage.press("Escape")
    stage.press("Escape")
    rest(QUIET)
    stage.press("Up")
    stage.press("Enter")
    rest(1)
    stage.press("Enter")
    rest(QUIET)
    stage.press("C-u")
    stage.stands("idle", QUIET)


def left_the_shell_mode(stage: Stage) -> None:
    """Esc in a `!` command, and at once a prompt."""
    stage.rests_after_a_turn()
    shell_mode(stage, SLEEP.format(20))
    stage.stands("busy")
    stage.press("Escape")
    rest(0.15)
    stage.press("C-u")  # it is back in the input
    stage.prompt("ask")
    stage.stands("waiting")
    stage.agent.answer("1")
    stage.stands("idle", QUIET)


def suspended_in_words(stage: Stage) -> None:
    """Ctrl-Z while the model speaks, until it would have ended; fg; a prompt at once."""
    stage.start(shell=True)
    stage.prompt("brief")
    stage.agent.shows("word3")
    stage.press("C-z")
    stage.agent.shows("(?i)stopped|suspended")
    rest(STOPPED)
    stage.agent.pane.type("fg\n")
    rest(STANDS)
    stage.prompt("ask")
    stage.agent.shows("Which colour")
    stage.stands("waiting")
    stage.agent.answer("1")
    stage.stands("idle", QUIET)


def moved_beside_a_shell(command: str, source: str) -> Callable[[Stage], None]:
    """Another session begins while a background shell runs; a turn is played in it."""

    def play(stage: Stage) -> None:
        stage.start()
        stage.prompt("bgshelllong")
        stage.stops()
        stage.stands("shell", QUIET)
        stage.command(command)
        stage.happens("SessionStart", source=source)
        rest(QUIET)
        stage.prompt("text")
        stage.stops(2)
        rest(12)
        stage.stands("idle", QUIET)

    return play


def esc_beside_a_shell(stage: Stage) -> None:
    """While a shell runs, a turn is interrupted."""
    slow = stage.api.scenarios["slow"][0]
    stage.api.scenarios["once"] = (slow, say("Heard from it."))
    stage.start()
    stage.prompt("bgshelllong")
    stage.stops()
    stage.stands("shell", QUIET)
    stage.prompt("once")
    stage.agent.shows("word3")
    stage.press("Escape")
    stage.stands("shell", QUIET)
    stage.stops(2)
    stage.stands("idle", QUIET)


def fails_beside_a_shell(stage: Stage) -> None:
    stage.start(env={"CLAUDE_CODE_MAX_RETRIES": "1"})
    stage.prompt("bgshelllong")
    stage.stops()
    stage.stands("shell", STANDS)
    stage.prompt("e400")
    stage.happens("StopFailure")
    stage.stands("shell", QUIET)


def stopped_at_the_end(stage: Stage) -> None:
    """A background shell is started in a turn that Esc ends."""
    stage.api.scenarios["shellwords"] = (
        stage.api.scenarios["bgshelllong"][0],
        stage.api.scenarios["slow"][0],
        say("Heard from it."),
    )
    stage.start()
    stage.prompt("shellwords")
    stage.agent.shows("word3")
    stage.press("Escape")
    stage.stands("shell", QUIET)
    rest(14)
    stage.stands("idle", QUIET)


def scene(name: str, play: Callable[[Stage], None], final: str | None = REST) -> Scene:
    return Scene(f"unthought: {name}", play, final, NEWEST)


SCENES: Final = (
    scene("! beside an agent", command_beside("agentlong", 2, "busy")),
    scene("! beside a shell", command_beside("bgshelllong", 2, "shell")),
    scene("! to the background", command_to_the_background),
    scene("a question behind /model", question_behind(command="/model")),
    scene("a question behind the transcript", question_behind("C-o")),
    scene("a question answered at once", answered_at_once("askask", "Esc to cancel", 2)),
    scene("permissions answered at once", answered_at_once("perms", "Esc to cancel", 2)),
    scene("/compact, a prompt at once", compact_then_prompt),
    scene("a prompt and /clear queued", prompt_and_clear_queued),
    scene("two plans", two_plans),
    scene("/resume beside a shell", resumed_beside_a_shell),
    scene("hidden, then wiped in a permission", hidden_and_wiped, None),
    scene("stopped in words", stopped("brief", "busy")),
    scene("stopped in a permission", stopped("perm", "waiting")),
    scene("refused, asked again at once", refused_then_asked),
    scene("rewound beside a shell", rewound_beside_a_shell),
    scene("Esc in !, a prompt at once", left_the_shell_mode),
    scene("Ctrl-Z in words", suspended_in_words),
    scene("/clear beside a shell", moved_beside_a_shell("/clear", "clear")),
    scene("/branch beside a shell", moved_beside_a_shell("/branch", "fork")),
    scene("Esc beside a shell", esc_beside_a_shell),
    scene("an error beside a shell", fails_beside_a_shell, "background|error"),
    scene("Esc in the turn that began a shell", stopped_at_the_end),
)
