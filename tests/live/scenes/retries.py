"""API errors that the CLI retries: it is still working (F7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from live.scene import NEWEST, Scene
from live.stage import Stage

RETRIES: Final = "CLAUDE_CODE_MAX_RETRIES"


def fails(scenario: str, retries: int) -> Callable[[Stage], None]:
    def play(stage: Stage) -> None:
        stage.start(env={RETRIES: str(retries)})
        stage.prompt(scenario)
        stage.happens("StopFailure")
        stage.stands("idle")

    return play


def recovers(scenario: str) -> Callable[[Stage], None]:
    def play(stage: Stage) -> None:
        stage.start(env={RETRIES: "3"})
        stage.prompt(scenario)
        stage.stops()
        stage.stands("idle")

    return play


def esc_meanwhile(stage: Stage) -> None:
    stage.start(env={RETRIES: "8"})
    stage.prompt("e500")
    stage.stands("busy", 3)
    stage.press("Escape")
    stage.stands("idle")


def prompt_meanwhile(stage: Stage) -> None:
    stage.start(env={RETRIES: "2"})
    stage.prompt("e500")
    stage.stands("busy")
    stage.prompt("text")
    stage.stops()
    stage.stands("idle")


def waits_long(stage: Stage) -> None:
    """The first retry is a minute away: only the screen shows that it will come."""
    stage.start(env={RETRIES: "3"})
    stage.prompt("e429wait")
    stage.marks("retrying", "attempt 1 of 3")
    stage.press("Escape")
    stage.stands("idle")


def limited(stage: Stage) -> None:
    """A subscriber's usage limit; the token is nobody's."""
    stage.start(env={"ANTHROPIC_API_KEY": "", "CLAUDE_CODE_OAUTH_TOKEN": "nobody's"})
    stage.prompt("limit")
    stage.happens("StopFailure")
    stage.stands("waiting")  # it offers to wait or to upgrade, which is no question of the agent
    stage.marks("unseen", "limit · resets ")
    stage.press("Escape")
    stage.stands("idle")


def scene(name: str, play: Callable[[Stage], None], final: str = "completed") -> Scene:
    return Scene(f"retries: {name}", play, final, NEWEST, "F7")


SCENES: Final = (
    scene("rate limit", fails("e429", 1), "error"),
    scene("overloaded to the end", fails("e529", 2), "error"),
    scene("server error, three times", fails("e500", 3), "error"),
    scene("in the middle of a turn", recovers("bashe529")),
    scene("of a subagent", recovers("agente529")),
    scene("a minute before the first", waits_long, "idle"),
    scene("usage limit", limited, "error"),
    scene("then Esc", esc_meanwhile, "idle"),
    scene("then a prompt", prompt_meanwhile),
)
