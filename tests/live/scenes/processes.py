"""One session in two processes: what one does does not affect the other (F2, F3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from live.scene import NEWEST, Scene
from live.stage import Stage
from rig.agent import Agent
from rig.waiting import rest

Opened = Callable[[Stage, str], Agent]


def continued(stage: Stage, sid: str) -> Agent:
    return stage.start("--continue")


def resumed(stage: Stage, sid: str) -> Agent:
    return stage.start("--resume", sid)


def resumed_inside(stage: Stage, sid: str) -> Agent:
    """Start another session in the same folder, then /resume the first one in it."""
    second = stage.start()
    stage.command(f"/resume {sid}")
    stage.happens("SessionStart", source="resume", session_id=sid)
    return second


def first(stage: Stage, scenario: str, says: str) -> tuple[Agent, str]:
    """Start the first process, and bring it to that status."""
    stage.rests_after_a_turn()
    stage.prompt(scenario)
    stage.stands(says)
    return stage.agent, stage.session


def comes_and_goes(
    scenario: str, says: str, opened: Opened, *, prompt: str = ""
) -> Callable[[Stage], None]:
    """A second process opens, perhaps plays a turn, and ends; the first keeps its status."""

    def play(stage: Stage) -> None:
        one, sid = first(stage, scenario, says)
        two = opened(stage, sid)
        stage.stands("idle")
        if says == "waiting":
            stage.is_placed(one)
        if prompt:
            stage.prompt(prompt)
            stage.stops()
            stage.stands("idle")
        stage.ends(two, "C-d")
        stage.turn_to(one)
        stage.stands(says)
        stage.is_placed(one)
        if says == "waiting":
            stage.agent.answer("Enter")
        stage.stops(2)

    return play


def first_ends(scenario: str, opened: Opened) -> Callable[[Stage], None]:
    """Kill the process that asks; the other one remains."""

    def play(stage: Stage) -> None:
        one, sid = first(stage, scenario, "waiting")
        two = opened(stage, sid)
        stage.stands("idle")
        stage.turn_to(one)
        stage.kill(9)
        stage.turn_to(two)
        stage.stands("idle", 2)
        stage.is_placed(two)
        stage.prompt("text")
        stage.stops()
        stage.stands("idle")

    return play


def worker_is_killed(opened: Opened) -> Callable[[Stage], None]:
    """Kill the process that works; the other one, which has done nothing yet, remains."""

    def play(stage: Stage) -> None:
        one, sid = first(stage, "sleep", "busy")
        two = opened(stage, sid)
        stage.stands("idle")
        stage.turn_to(one)
        stage.kill(9)
        stage.turn_to(two)
        rest(4)
        stage.is_placed(two)

    return play


def worker_is_killed_beside(stage: Stage) -> None:
    """The other process has been there, at rest, since before the prompt."""
    stage.rests_after_a_turn()
    one, sid = stage.agent, stage.session
    two = resumed(stage, sid)
    stage.stands("idle")
    stage.turn_to(one)
    stage.prompt("sleep")
    stage.stands("busy")
    stage.kill(9)
    stage.turn_to(two)
    rest(4)
    stage.is_placed(two)


def both_ask(stage: Stage) -> None:
    one, sid = first(stage, "perm", "waiting")
    two = resumed(stage, sid)
    stage.prompt("ask")
    stage.stands("waiting")
    stage.agent.answer("Enter")
    stage.stops()
    stage.stands("idle")
    stage.is_placed(one)
    stage.turn_to(one)
    stage.agent.answer("Enter")
    stage.stops(2)
    stage.stands("idle")
    stage.ends(two, "C-d")


def second_asks_while_the_first_rests(stage: Stage) -> None:
    stage.rests_after_a_turn()
    one, sid = stage.agent, stage.session
    two = resumed(stage, sid)
    stage.prompt("perm")
    stage.stands("waiting")
    stage.is_placed(two)
    stage.turn_to(one)
    stage.prompt("text")
    stage.stops(2)
    stage.stands("idle")
    stage.turn_to(two)
    stage.stands("waiting")
    stage.is_placed(two)
    stage.agent.answer("Enter")
    stage.stops()
    stage.ends(one, "C-d")


def esc_in_the_second(stage: Stage) -> None:
    one, sid = first(stage, "ask", "waiting")
    two = resumed(stage, sid)
    stage.prompt("slow")
    stage.agent.shows("word3")
    stage.press("Escape")
    stage.stands("idle")
    stage.ends(two, "C-d")
    stage.turn_to(one)
    stage.stands("waiting")
    stage.agent.answer("Enter")
    stage.stops(2)


def scene(name: str, play: Callable[[Stage], None], final: str = "completed") -> Scene:
    return Scene(f"two processes: {name}", play, final, NEWEST, "F2")


SCENES: Final = (
    scene("permission, --continue", comes_and_goes("perm", "waiting", continued)),
    scene("question, --resume", comes_and_goes("ask", "waiting", resumed)),
    scene("question, /resume", comes_and_goes("ask", "waiting", resumed_inside)),
    scene(
        "permission, a turn beside it", comes_and_goes("perm", "waiting", resumed, prompt="text")
    ),
    scene("question, tools beside it", comes_and_goes("ask", "waiting", continued, prompt="bash")),
    scene("work, --continue", comes_and_goes("sleep", "busy", continued)),
    scene("work, a turn beside it", comes_and_goes("sleep", "busy", resumed, prompt="text")),
    scene("the one that asks is killed", first_ends("perm", resumed)),
    scene("the one with a question is killed", first_ends("ask", continued)),
    scene("the one that works is killed", worker_is_killed(continued), "idle"),
    scene("the one that works is killed, --resume", worker_is_killed(resumed), "idle"),
    scene("the one that works is killed beside one at rest", worker_is_killed_beside, "idle"),
    scene("both ask", both_ask),
    scene("the second asks", second_asks_while_the_first_rests),
    scene("Esc in the second", esc_in_the_second),
)
