"""Everyday use of dialogs, menus, shells and queues (no fault was known)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from live.scene import NEWEST, REST, Scene
from live.stage import PRESS, STANDS, Stage
from rig.waiting import rest

QUIET: Final = 2.0  # seconds at rest, in which nothing may change any more
SLEEP: Final = "python3 -c 'import time; time.sleep({})'"


def plain(scenario: str, stops: int = 1) -> Callable[[Stage], None]:
    """Play a prompt to its end."""

    def play(stage: Stage) -> None:
        stage.start()
        stage.prompt(scenario)
        stage.stops(stops)
        stage.stands("idle", QUIET)

    return play


def keys(scenario: str, *pressed: str, typed: str = "") -> Callable[[Stage], None]:
    """Answer a dialog with these keys, then perhaps a text and Enter."""

    def play(stage: Stage) -> None:
        stage.start()
        stage.prompt(scenario)
        stage.stands("waiting")
        stage.press(*pressed)
        if typed:
            stage.agent.pane.type(typed)
            stage.agent.shows(typed)
            stage.stands("waiting")
            stage.press("Enter")
        stage.stops()
        stage.stands("idle", QUIET)

    return play


def shell(command: str, *pressed: str) -> Callable[[Stage], None]:
    """Run a command in shell mode, and press keys meanwhile."""

    def play(stage: Stage) -> None:
        stage.rests_after_a_turn()
        stage.agent.pane.type("!")
        stage.agent.shows("for (shell|bash) mode")
        stage.command(command)
        stage.stands("busy")
        stage.press(*pressed)
        stage.stands("idle", QUIET)

    return play


def to_the_background(stage: Stage) -> None:
    """Ctrl-B sends the running command to the background; its end wakes the CLI."""
    stage.start()
    stage.prompt("sleep")
    stage.happens("PreToolUse")
    stage.stands("busy", 3)
    stage.press("C-b")
    if not stage.how.editor:  # in tmux, twice
        rest(PRESS)
        stage.press("C-b")
    stage.stops(2)
    stage.stands("idle", QUIET)


def shell_ends(stage: Stage) -> None:
    """A background shell ends while a permission is asked."""
    stage.start()
    stage.prompt("bgshell")
    stage.stops()
    stage.stands("shell")
    stage.prompt("perm")
    stage.stands("waiting", 8)
    stage.agent.answer("Enter")
    stage.stops(2)
    stage.stands("idle", QUIET)


def menu(command: str, scenario: str) -> Callable[[Stage], None]:
    """A menu of the user's is open while an agent asks or ends."""

    def play(stage: Stage) -> None:
        stage.start()
        stage.prompt(scenario)
        stage.stops()
        stage.command(command)
        if scenario == "agentbgperm":
            stage.asks("by-sub")
            stage.stands("waiting", 3)
            stage.press("Escape")
            stage.agent.shows("Do you want")
            stage.agent.answer("Enter")
        else:
            stage.happens("SubagentStop")
            stage.press("Escape")
        stage.stops(2)
        stage.stands("idle", QUIET)

    return play


def suspended(scenario: str) -> Callable[[Stage], None]:
    """Ctrl-Z suspends a CLI that asks; with fg it asks on."""

    def play(stage: Stage) -> None:
        stage.start(shell=True)
        stage.prompt(scenario)
        stage.stands("waiting")
        stage.press("C-z")
        stage.agent.shows("(?i)stopped|suspended")
        stage.stands("waiting", 2 * STANDS)
        stage.agent.pane.type("fg\n")
        stage.agent.answer("Escape", dialog="Esc to cancel")
        stage.stands("idle")

    return play


def compacted(how: str, *pressed: str) -> Callable[[Stage], None]:
    """The summary fails, or takes long and is interrupted."""

    def play(stage: Stage) -> None:
        stage.start(env={"CLAUDE_CODE_MAX_RETRIES": "1"})
        stage.prompt("text")
        stage.stops()
        stage.stands("idle")
        stage.command(f"/compact play:{how}")
        stage.happens("PreCompact")
        if pressed:
            stage.stands("busy")
        stage.press(*pressed)
        stage.stands("idle", 2 * QUIET)

    return play


def branched(stage: Stage) -> None:
    """/branch while an agent works: it goes on in the new session."""
    stage.start()
    stage.prompt("agentlong")
    stage.stops()
    stage.stands("busy")
    stage.command("/branch")
    stage.happens("SessionStart", source="fork")
    stage.stops(2)
    stage.stands("idle", QUIET)


def scene(name: str, play: Callable[[Stage], None], final: str = "completed") -> Scene:
    return Scene(f"everyday: {name}", play, final, NEWEST)


SCENES: Final = (
    scene("the stream breaks off", plain("broken")),
    scene("the stream breaks off after a tool", plain("brokentool")),
    scene("a command takes too long", plain("bashtimeout")),
    scene("an agent is stopped", plain("agentstop")),
    scene("a shell is stopped", plain("shellstop")),
    scene("yes, with words", keys("perm", "Tab", typed="and test it")),
    scene("another answer", keys("ask", "Down", "Down", typed="green")),
    scene("yes to all edits", keys("writes", "2")),
    scene("! takes 5 s", shell(SLEEP.format(5)), REST),
    scene("! then Esc", shell(SLEEP.format(25), "Escape"), REST),
    scene("Ctrl-B", to_the_background),
    scene("a shell ends in a dialog", shell_ends),
    scene("a menu is open, an agent asks", menu("/model", "agentbgperm")),
    scene("a menu is open, an agent ends", menu("/model", "agentbg")),
    scene("Ctrl-Z in a permission", suspended("perm"), "idle"),
    scene("Ctrl-Z in a question", suspended("ask"), "idle"),
    scene("/compact fails", compacted("e400"), REST),
    scene("/compact, Esc", compacted("hang", "Escape"), REST),
    scene("/branch beside an agent", branched, REST),
)
