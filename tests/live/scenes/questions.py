"""Questions of the agent: permissions, questions, plans, forms."""

from __future__ import annotations

from typing import Final

from live.scene import NEWEST, Scene, asked
from live.stage import Stage
from rig.agent import elicitation


def permission_yes(stage: Stage) -> None:
    asked(stage, "perm")
    stage.agent.answer("Enter")
    stage.stops()


def permission_no(stage: Stage) -> None:
    asked(stage, "perm")
    stage.agent.answer(str(stage.options()))


def permission_esc(stage: Stage) -> None:
    asked(stage, "perm")
    stage.agent.answer("Escape")


def permission_amended(stage: Stage) -> None:
    asked(stage, "perm")
    for _ in range(stage.options() - 1):
        stage.press("Down")
    stage.agent.shows(r"❯ \d\. No")
    stage.press("Tab")
    stage.agent.shows("tell Claude|differently|feedback|No,")
    stage.agent.submit("use another name")
    stage.stops()


def two_permissions(stage: Stage) -> None:
    asked(stage, "perms")
    stage.agent.answer("Enter", dialog="touch a1.txt[^?]*Do you want")
    stage.stands("waiting")
    stage.agent.answer("Enter")
    stage.stops()


def question(stage: Stage) -> None:
    asked(stage, "ask")
    stage.agent.answer("Enter")
    stage.stops()


def question_esc(stage: Stage) -> None:
    asked(stage, "ask")
    stage.agent.answer("Escape")


def plan(stage: Stage) -> None:
    asked(stage, "plan", "--permission-mode", "plan")
    stage.agent.answer("Enter")
    stage.stops()


def form(stage: Stage) -> None:
    asked(stage, "elicit", *elicitation(stage.home))
    stage.agent.answer("Escape", dialog="What name")
    stage.stops()


SCENES: Final = (
    Scene("permission: yes", permission_yes, "completed"),
    Scene("permission: no", permission_no, "idle"),
    Scene("permission: Esc", permission_esc, "idle"),
    Scene("permission: amended", permission_amended, "completed", NEWEST),
    Scene("two permissions", two_permissions, "completed"),
    Scene("question", question, "completed"),
    Scene("question: Esc", question_esc, "idle"),
    Scene("plan", plan, "completed"),
    # The file of 2.1.119 says busy while a form is open.
    Scene("MCP form", form, "completed", (2, 1, 197)),
)
