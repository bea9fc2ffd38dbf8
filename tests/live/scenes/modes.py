"""Auto mode whose check is unreachable (F4), and the trust dialog (F5)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from live.scene import NEWEST, REST, Scene
from live.stage import Stage

AUTO: Final = ("--permission-mode", "auto")
CANNOT: Final = "Enter to stay in auto mode"
PROCEED: Final = "Do you want to proceed"
FOUND: Final = 60.0  # seconds: processes are searched twice a minute


def told_of(stage: Stage, scenario: str) -> None:
    """Auto mode reports that it cannot check, and is set to ask."""
    stage.start(*AUTO)
    stage.prompt(scenario)
    stage.agent.shows(CANNOT)
    stage.stands("waiting")
    stage.agent.answer("Enter", dialog=CANNOT)


def yes(stage: Stage) -> None:
    """Choose Yes; No is the default."""
    stage.agent.shows(PROCEED)
    stage.stands("waiting")
    stage.press("Down")
    stage.agent.answer("Enter", dialog=PROCEED)


def auto_yes(stage: Stage) -> None:
    told_of(stage, "danger")
    yes(stage)
    stage.stops()


def auto_twice(stage: Stage) -> None:
    told_of(stage, "dangers")
    yes(stage)
    yes(stage)
    stage.stops()


def auto_no(stage: Stage) -> None:
    told_of(stage, "danger")
    stage.agent.shows(PROCEED)
    stage.stands("waiting")
    stage.agent.answer("Enter", dialog=PROCEED)
    stage.stands("idle")


def auto_esc(stage: Stage) -> None:
    told_of(stage, "danger")
    stage.agent.shows(PROCEED)
    stage.stands("waiting")
    stage.agent.answer("Escape", dialog=PROCEED)
    stage.stands("idle")


def auto_esc_at_once(stage: Stage) -> None:
    stage.start(*AUTO)
    stage.prompt("danger")
    stage.agent.shows(CANNOT)
    stage.stands("waiting")
    stage.agent.answer("Escape", dialog=CANNOT)


def own_dialog(stage: Stage) -> None:
    """A dialog that the user opens while a tool runs is not the agent's question."""
    stage.start()
    stage.prompt("sleep")
    stage.happens("PreToolUse")
    stage.stands("busy")
    stage.command("/model")
    stage.stands("busy", 3)
    stage.press("Escape")
    stage.stands("busy")
    stage.press("Escape")
    stage.stands("idle")


def trusted(choice: str) -> Callable[[Stage], None]:
    """Leave the dialog open until it is found; then choose Yes or No, or press a key."""

    def play(stage: Stage) -> None:
        agent = stage.start(trusted=False)
        agent.shows("(?i)trust")
        stage.is_found("blocked", FOUND)
        if choice == "kill":
            stage.kill(9)
        elif choice in ("Yes", "No"):
            chosen = rf"❯ (\d\. )?{choice}\b"
            if not re.search(chosen, agent.text()):
                stage.press("Down")
            agent.shows(chosen)
            stage.press("Enter")
        else:
            stage.ends(agent, choice)
        if choice == "Yes":
            agent.ready()
            stage.prompt("text")
            stage.stops()

    return play


def scene(name: str, play: Callable[[Stage], None], final: str | None, fault: str) -> Scene:
    return Scene(name, play, final, NEWEST, fault)


SCENES: Final = (
    scene("auto mode cannot check: yes", auto_yes, "completed", "F4"),
    scene("auto mode cannot check: twice", auto_twice, "completed", "F4"),
    scene("auto mode cannot check: no", auto_no, REST, "F4"),
    scene("auto mode cannot check: Esc", auto_esc, "idle", "F4"),
    scene("auto mode cannot check: Esc at once", auto_esc_at_once, REST, "F4"),
    scene("/model while a tool runs", own_dialog, "idle", "F4"),
    scene("trust dialog: yes", trusted("Yes"), "completed", "F5"),
    scene("trust dialog: no", trusted("No"), None, "F5"),
    scene("trust dialog: Esc", trusted("Escape"), None, "F5"),
    scene("trust dialog: Ctrl-C", trusted("C-c"), None, "F5"),
    scene("trust dialog: killed", trusted("kill"), None, "F5"),
)
