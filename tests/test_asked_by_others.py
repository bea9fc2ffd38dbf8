"""What OpenCode and Codex ask, in full, and the answers that they take."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bellboard.agents.dialects import dialect_of
from bellboard.core.events import Origin
from bellboard.core.request import Answer, Request, check

pytestmark = pytest.mark.pure

PLAN: dict[str, Any] = {
    "question": "The plan is complete. Switch to the build agent?",
    "header": "Build",
    "options": [{"label": "Yes", "description": "Go"}, {"label": "No", "description": "Stay"}],
    "custom": False,
}


def opencode(event: str = "question.asked", **properties: Any) -> bytes:
    given = {"id": "que_1", "sessionID": "ses_1", **properties}
    return json.dumps({"type": event, "properties": given}).encode()


def opencode_asks(*questions: dict[str, Any]) -> bytes:
    return opencode(questions=[*questions])


def codex(event: str, tool: str, given: Any, **more: Any) -> bytes:
    facts = {"session_id": "thread", "hook_event_name": event, "tool_name": tool}
    return json.dumps({**facts, "tool_input": given, **more}).encode()


def codex_asks(*questions: dict[str, Any]) -> bytes:
    asks = [{"id": f"q{n}", **question} for n, question in enumerate(questions)]
    return codex("PreToolUse", "request_user_input", {"questions": asks})


def asked(agent: str, payload: bytes, truncated: bool = False) -> Request:
    found = dialect_of(agent).request(payload, "name", 5.0, Origin(agent, 7), truncated)
    assert found is not None
    return found


def test_what_takes_only_its_options_takes_no_text() -> None:
    """OpenCode would take any text but “No” as a yes to its plan."""
    request = asked("opencode", opencode_asks(PLAN))
    typed = Answer("choose", answers={PLAN["question"]: "not yet, first fix X"})
    assert check(request, typed) == "it takes only the options that it offers"
    assert check(request, Answer("choose", answers={PLAN["question"]: ["No"]})) == ""
    for custom in ({}, {"custom": True}):
        free = {**PLAN, **custom} if custom else {k: v for k, v in PLAN.items() if k != "custom"}
        assert check(asked("opencode", opencode_asks(free)), typed) == ""


@pytest.mark.parametrize(
    "more",
    [{"isSecret": True}, {"options": [{"label": "Yes", "preview": "rm -rf ~"}, {"label": "No"}]}],
)
def test_nothing_of_a_question_is_left_out(more: dict[str, Any]) -> None:
    """What has no place of its own is shown below it."""
    known = {k: v for k, v in PLAN.items() if k != "custom"}
    for agent, ask in (("opencode", opencode_asks), ("codex", codex_asks)):
        assert asked(agent, ask(known)).parts == ()
        (part,) = asked(agent, ask({**known, **more})).parts
        assert (part.kind, part.label) == ("json", "Also")
        assert '"isSecret": true' in part.text or '"preview": "rm -rf ~"' in part.text
