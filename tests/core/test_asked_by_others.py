"""Requests of OpenCode and Codex in full, and the answers that they take."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bellboard.agents.parts import ALIKE, CUT, UNDECODED, UNTOLD
from bellboard.agents.registry import agent_of
from bellboard.core.events import Origin
from bellboard.core.request import Answer, Request, check

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
    found = agent_of(agent).request(payload, "name", 5.0, Origin(agent, 7), truncated)
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
    """A member without a place of its own is shown below the question."""
    known = {k: v for k, v in PLAN.items() if k != "custom"}
    for agent, ask in (("opencode", opencode_asks), ("codex", codex_asks)):
        assert asked(agent, ask(known)).parts == ()
        (part,) = asked(agent, ask({**known, **more})).parts
        assert (part.kind, part.label) == ("json", "Also")
        assert '"isSecret": true' in part.text or '"preview": "rm -rf ~"' in part.text


def allows_opencode(**properties: Any) -> bytes:
    about = {"permission": "bash", "patterns": ["touch a"], "metadata": {"command": "touch a"}}
    return opencode("permission.asked", **{**about, **properties})


def allows_codex(given: Any = None) -> bytes:
    return codex("PermissionRequest", "Bash", {"command": "touch a"} if given is None else given)


@pytest.mark.parametrize(
    ("agent", "exact"), [("opencode", allows_opencode()), ("codex", allows_codex())]
)
def test_what_is_not_known_exactly_is_shown_and_cannot_be_answered(
    agent: str, exact: bytes
) -> None:
    """The payload was cut, even if the rest seems whole, or has half a character."""
    assert asked(agent, exact).complete
    for raw, truncated, why in (
        (exact, True, CUT),
        (exact.replace(b"touch a", b"touch \\ud83d"), False, UNDECODED),
    ):
        request = asked(agent, raw, truncated)
        assert (request.complete, request.choices, request.why) == (False, (), why)
        assert request.parts[0].text.startswith("touch ")
        assert request.digest != asked(agent, exact).digest


@pytest.mark.parametrize("event", ["permission.asked", "question.asked"])
def test_what_opencode_asks_waits_even_if_it_was_cut(event: str) -> None:
    """Our plugin says first who asks, under which id; a subagent is one of its parent."""
    for parent in ({}, {"parent": "ses_0"}):
        ids = {"id": "per_1", "sessionID": "ses_1", "permission": "edit"}
        said = {"type": event, **parent, "directory": "/srv", **ids, "properties": {**ids, "x": 1}}
        raw = json.dumps(said).encode()[:-10]
        seen = agent_of("opencode").event(raw, 5.0, 5.0, Origin("opencode", 7), True)
        assert seen.kind == ("agent request" if parent else "request")
        assert (seen.session_id, seen.agent) == (("ses_0", "ses_1") if parent else ("ses_1", ""))
        assert seen.tool_id == "per_1"
        request = asked("opencode", raw, True)
        assert (request.session_id, request.complete) == (seen.session_id, False)
        assert request.why == CUT


def test_questions_of_codex_that_share_an_id_cannot_be_answered_here() -> None:
    """The answer to one would be that to the other."""
    first, second = ({"id": "q", "question": text} for text in ("First?", "Second?"))
    assert [c.id for c in asked("codex", codex_asks(first, {**second, "id": "r"})).choices]
    request = asked("codex", codex_asks(first, second))
    assert (request.complete, request.choices, request.why) == (False, (), ALIKE)
    assert len(request.questions) == 2


@pytest.mark.parametrize(
    ("agent", "raw"),
    [
        ("opencode", allows_opencode(metadata={}, patterns=[])),
        ("codex", allows_codex({})),
        ("codex", allows_codex({"description": "List the files"})),
    ],
)
def test_nothing_is_allowed_that_is_not_said(agent: str, raw: bytes) -> None:
    request = asked(agent, raw)
    assert (request.complete, request.choices, request.why) == (False, (), UNTOLD)
