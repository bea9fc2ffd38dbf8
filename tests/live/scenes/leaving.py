"""Leaving while something runs: /clear while an agent works (M6), /exit with a dialog open (M7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from live.scene import NEWEST, REST, Scene
from live.stage import Stage


def cleared_beside(scenario: str, stops: int, says: str) -> Callable[[Stage], None]:
    """/clear while something runs in the background."""

    def play(stage: Stage) -> None:
        stage.start()
        stage.prompt(scenario)
        stage.stops()
        stage.stands(says)
        stage.command("/clear")
        stage.happens("SessionStart", source="clear")
        stage.stops(stops)
        stage.stands("idle")

    return play


def cleared_at_rest(times: int) -> Callable[[Stage], None]:
    """A plain /clear shows no wrong status for a moment."""

    def play(stage: Stage) -> None:
        stage.rests_after_a_turn()
        for n in range(times):
            stage.command("/clear")
            stage.happens("SessionStart", n + 1, source="clear")
            stage.stands("idle", 2)

    return play


def with_slow_hook(event: str, play: Callable[[Stage], None]) -> Callable[[Stage], None]:
    """While it runs, the process is busy, and its new session has not begun."""

    def slowly(stage: Stage) -> None:
        stage.user_hook(event, "sleep 3")
        play(stage)

    return slowly


def cleared_then_prompt(stage: Stage) -> None:
    stage.start()
    stage.prompt("agentlong")
    stage.stops()
    stage.command("/clear")
    stage.happens("SessionStart", source="clear")
    stage.prompt("text")
    stage.stops(2)
    stage.stands("idle")


def exit_with_a_dialog(scenario: str, *args: str) -> Callable[[Stage], None]:
    """/exit, typed while the dialog was held back, takes effect first."""

    def play(stage: Stage) -> None:
        stage.start(*args)
        stage.prompt(scenario)
        stage.types_until("PermissionRequest", "/exit")
        stage.press("Enter")

    return play


def refuses_to_leave(scenario: str, key: str) -> Callable[[Stage], None]:
    """These keys exit the CLI, but not while a dialog is open, which only Esc closes."""

    def play(stage: Stage) -> None:
        stage.start()
        stage.prompt(scenario)
        stage.stands("waiting")
        stage.press(key)
        stage.stands("waiting")
        stage.agent.answer("Escape", dialog="Esc to cancel")
        stage.stands("idle")

    return play


def closed_with_a_dialog(stage: Stage) -> None:
    stage.start()
    stage.prompt("ask")
    stage.stands("waiting")
    stage.agent.pane.close()


def m6(name: str, play: Callable[[Stage], None], final: str = "completed") -> Scene:
    return Scene(f"/clear {name}", play, final, NEWEST, "M6")


def m7(name: str, play: Callable[[Stage], None], final: str | None = None) -> Scene:
    return Scene(f"leaving: {name}", play, final, NEWEST, "M7")


SCENES: Final = (
    m6("beside an agent", cleared_beside("agentlong", 2, "busy")),
    m6("beside an agent that is late", cleared_beside("agentbg", 2, "busy")),
    m6("beside a shell", cleared_beside("bgshell", 1, "shell"), REST),
    m6("beside an agent, then a prompt", cleared_then_prompt),
    m6("at rest", cleared_at_rest(1), "idle"),
    m6("three times", cleared_at_rest(3), "idle"),
    m6("with a slow hook", with_slow_hook("SessionEnd", cleared_at_rest(2)), "idle"),
    m6("with a slow start", with_slow_hook("SessionStart", cleared_at_rest(2)), "idle"),
    m6(
        "beside an agent, with a slow hook",
        with_slow_hook("SessionEnd", cleared_beside("agentlong", 2, "busy")),
    ),
    m7("/exit before a permission", exit_with_a_dialog("perm")),
    m7("/exit before a question", exit_with_a_dialog("ask")),
    m7("Ctrl-D in a permission", refuses_to_leave("perm", "C-d"), "idle"),
    m7("Ctrl-C in a question", refuses_to_leave("ask", "C-c"), "idle"),
    m7("pane closed in a question", closed_with_a_dialog),
)
