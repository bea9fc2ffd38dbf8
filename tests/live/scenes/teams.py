"""Agent teams: teammates in the process of their lead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from live.scene import NEWEST, Scene
from live.scenes.habits import QUIET
from live.stage import Stage

TEAMS: Final = {"CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS": "1"}


def team(scenario: str, stops: int, *, asks: bool = False) -> Callable[[Stage], None]:
    """Teammates are launched in the process of the lead; one may ask."""

    def play(stage: Stage) -> None:
        stage.start(env=TEAMS)
        stage.prompt(scenario)
        if asks:
            stage.stands("waiting", QUIET)
            stage.agent.answer("Enter")
        stage.stops(stops)
        stage.stands("idle", 2 * QUIET)

    return play


def prompted_beside(stage: Stage) -> None:
    """The lead is prompted again while its teammate works."""
    stage.start(env=TEAMS)
    stage.prompt("teamlong")
    stage.stops()
    stage.prompt("text")
    stage.stops(3)
    stage.stands("idle", 2 * QUIET)


def scene(name: str, play: Callable[[Stage], None]) -> Scene:
    return Scene(f"team: {name}", play, "completed", NEWEST)


SCENES: Final = (
    scene("a mate works", team("teamlong", 2)),
    scene("a mate asks", team("teamperm", 2, asks=True)),
    scene("two mates work", team("teamtwo", 2)),
    scene("a prompt beside a mate", prompted_beside),
)
