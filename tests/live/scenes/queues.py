"""Prompts typed ahead: with dialogs held back (M3), taken during a turn (M4), after Esc (F6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from live.scene import NEWEST, REST, Scene
from live.scenes.habits import QUIET
from live.stage import Stage
from rig.waiting import rest

TAKEN: Final = 0.4  # seconds after a Stop: the queued prompt has started
OVERTAKES: Final = 0.12  # seconds after Esc: a shorter pause means Alt; its evidence may come later


def queued_before_the_dialog(
    scenario: str, *answer: str, dialogs: int = 1, args: tuple[str, ...] = ()
) -> Callable[[Stage], None]:
    """No dialog opens during typing; Enter queues the text, and then it opens."""

    def play(stage: Stage) -> None:
        stage.start(*args)
        stage.prompt(scenario)
        stage.types_until("PermissionRequest", "please also look at the tests ")
        stage.press("Enter")
        for _ in range(dialogs):
            stage.stands("waiting", 3)
            stage.agent.answer(*answer)
        stage.stands("idle")

    return play


def taken_up(scenario: str, ready: str) -> Callable[[Stage], None]:
    """A queued prompt is taken between two tools; Esc afterwards ends everything."""

    def play(stage: Stage) -> None:
        stage.rests_after_a_turn()
        stage.prompt(scenario)
        stage.happens("PreToolUse")
        stage.agent.submit("and this")
        stage.agent.shows(ready)
        stage.stands("waiting" if scenario == "pauseask" else "busy")
        stage.press("Escape")
        stage.stands("idle")

    return play


def two_taken_up(stage: Stage) -> None:
    stage.start()
    stage.prompt("pauses")
    stage.happens("PreToolUse")
    stage.agent.submit("and this")
    stage.agent.submit("and that")
    stage.happens("PreToolUse", 2)
    stage.stands("busy")
    stage.press("Escape")
    stage.stands("idle")


def taken_up_to_the_end(stage: Stage) -> None:
    stage.start()
    stage.prompt("pauseask")
    stage.happens("PreToolUse")
    stage.agent.submit("and this")
    stage.stands("waiting")
    stage.agent.answer("Enter")
    stage.stops()
    stage.stands("idle")
    stage.prompt("slow")
    stage.agent.shows("word3")
    stage.press("Escape")
    stage.stands("idle")


def prompt_after_esc(scenario: str, ready: str, then: str) -> Callable[[Stage], None]:
    """The next prompt comes before the evidence of the Esc; then Esc again."""

    def play(stage: Stage) -> None:
        stage.start()
        stage.prompt(scenario)
        stage.agent.shows(ready)
        stage.stands("waiting" if scenario == "perm" else "busy")
        stage.press("Escape")
        rest(OVERTAKES)
        stage.agent.pane.type(f" play:{then}")
        stage.press("Enter")
        stage.happens("UserPromptSubmit", 2)
        stage.stands("busy", 3)
        stage.press("Escape")
        stage.stands("idle")

    return play


def fails_after_esc(stage: Stage) -> None:
    """The next prompt after an Esc is answered with an error."""
    stage.start()
    stage.prompt("slow")
    stage.agent.shows("word3")
    stage.stands("busy")
    stage.press("Escape")
    stage.stands("idle")
    stage.prompt("e400")
    stage.happens("StopFailure")
    stage.stands("idle")


def interrupted_as_it_starts(stage: Stage) -> None:
    """A queued prompt starts the next turn, which is interrupted at once."""
    stage.start()
    stage.prompt("brief")
    stage.agent.shows("word3")
    stage.prompt("hang")
    stage.stops()
    rest(TAKEN)
    stage.press("Escape")
    stage.stands("idle", QUIET)


def scene(fault: str, name: str, play: Callable[[Stage], None], final: str = "completed") -> Scene:
    return Scene(name, play, final, NEWEST, fault)


F6: Final = prompt_after_esc
PLAN: Final = ("--permission-mode", "plan")
BEFORE: Final = queued_before_the_dialog
SCENES: Final = (
    scene("M3", "queued before a permission", BEFORE("perm", "Enter")),
    scene("M3", "queued before a question", BEFORE("ask", "Enter")),
    scene("M3", "queued before two permissions", BEFORE("perms", "Enter", dialogs=2)),
    scene("M3", "queued before a plan", BEFORE("plan", "Enter", args=PLAN)),
    scene("M3", "queued before a permission, Esc", BEFORE("perm", "Escape"), REST),
    scene("M4", "taken up before a tool, Esc", taken_up("pauses", r"sleep\(25\)"), "idle"),
    scene("M4", "taken up before words, Esc", taken_up("pausewords", "word3"), "idle"),
    scene("M4", "taken up before a question, Esc", taken_up("pauseask", "Which colour"), "idle"),
    scene("M4", "two taken up, Esc", two_taken_up, "idle"),
    scene("M4", "taken up, ended, the next one Esc", taken_up_to_the_end, "idle"),
    scene("M4", "queued, Esc as it starts", interrupted_as_it_starts, "idle"),
    scene("F6", "prompt after Esc in words", F6("slow", "word3", "hang"), "idle"),
    scene("F6", "prompt after Esc in a tool", F6("sleep", r"sleep\(", "slow"), "idle"),
    scene("F6", "prompt after Esc before output", F6("hang", "…", "slow"), "idle"),
    scene("F6", "prompt after Esc, with a tool", F6("slow", "word3", "sleep"), "idle"),
    scene("F6", "prompt after a refusal", F6("perm", "Do you want", "slow"), "idle"),
    scene("F6", "prompt after Esc, an error", fails_after_esc, "error"),
)
