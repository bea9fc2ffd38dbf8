"""Whose answer to a permission counted, by a transcript."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellboard.agents.claude.reply import first_in
from bellboard.core.request import Answer, SentAnswer, Went
from rig.host.asking import payload
from rig.host.strategies import json_values

ASKED = payload("Bash", {"command": "make"})
SAID = "2026-11-22T19:01:33.824Z"
SINCE = 1795374093.0  # just before
REJECTED = "The user doesn't want to proceed with this tool use. The tool use was rejected"
ALLOW, DENY, STOP = Answer("allow"), Answer("deny", "Not that"), Answer("stop")
NEW, OLD = "2.1.330", "2.1.76"


def tool(name: str = "Bash", tool_id: str = "t1") -> dict[str, Any]:
    block = {"type": "tool_use", "id": tool_id, "name": name, "input": {"command": "make"}}
    return {"type": "assistant", "message": {"content": [block]}}


def decision(what: str, tool_id: str = "t1") -> dict[str, Any]:
    said = {"type": "hook_permission_decision", "decision": what, "toolUseID": tool_id}
    return {"type": "attachment", "attachment": said, "timestamp": SAID}


def result(
    text: object, error: bool = False, version: str = NEW, tool_id: str = "t1", at: str = SAID
) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": tool_id, "content": text, "is_error": error}
    message = {"role": "user", "content": [block]}
    return {"type": "user", "message": message, "timestamp": at, "version": version}


def ended(message: str = "") -> dict[str, Any]:
    """The entry that follows an interrupt of the user, or of a hook."""
    said = {"content": [{"type": "text", "text": "[Request interrupted by user for tool use]"}]}
    more = {"interruptedMessageId": message} if message else {}
    return {"type": "user", "message": said, "timestamp": SAID, **more}


DONE, NO = result("done"), result(REJECTED, error=True)


@pytest.mark.parametrize(
    ("entries", "answer", "counted"),
    [
        ([decision("allow"), DONE], ALLOW, "ours"),
        ([decision("deny"), result("Not that", error=True)], DENY, "ours"),
        ([DONE], ALLOW, "terminal"),
        ([DONE], DENY, "terminal"),
        # What is interrupted says the same, whoever allowed it before.
        ([NO], ALLOW, "stopped"),
        ([NO], DENY, "terminal"),
        # A hook that stops the turn leaves the same, but for the message that the user interrupted.
        ([NO], STOP, None),
        ([NO, ended()], STOP, "ours"),
        ([NO, ended("msg_1")], STOP, "terminal"),
        ([result(REJECTED, True, "2.1.200"), ended()], STOP, ""),
        ([DONE], STOP, "terminal"),
        ([decision("deny"), NO], ALLOW, "hook"),
        ([decision("allow"), DONE], DENY, "hook"),
        # Before 2.1.119, only what came of it can differ.
        ([result("done", version=OLD)], ALLOW, ""),
        ([result("done", version=OLD)], DENY, "terminal"),
        ([result(REJECTED, True, OLD)], ALLOW, "stopped"),
        ([result(REJECTED, True, OLD)], DENY, ""),
        ([result([{"type": "text", "text": "Not that"}], True, OLD)], DENY, "ours"),
        ([result("The user said no.", True, OLD)], STOP, "ours"),
        # Nothing yet: another tool, the same one before it asked, no result.
        ([tool()], ALLOW, None),
        ([tool("Read", "t2"), result("x", tool_id="t2")], ALLOW, None),
        ([result("done", at="2026-11-22T18:00:00Z")], ALLOW, None),
        ([decision("allow")], ALLOW, None),
        ([], ALLOW, ""),
    ],
)
def test_whose_answer_counted(
    entries: list[dict[str, Any]], answer: Answer, counted: str | None
) -> None:
    """The decision of a hook says it, or the outcome of the tool."""
    sent = SentAnswer(answer, SINCE, hook=True)
    assert first_in(entries, ASKED, "t1", SINCE, sent) == counted
    # Without the id of the tool, it is the one of that name.
    known = [tool(), *entries] if entries else []
    assert first_in(known, ASKED, "", SINCE, sent) == counted


@pytest.mark.parametrize(
    ("entries", "answer", "counted"),
    [
        ([DONE], ALLOW, ""),
        ([result("…: Not that", error=True)], DENY, ""),
        ([NO], ALLOW, "stopped"),
        ([NO], DENY, ""),
        ([DONE], DENY, "terminal"),
        ([decision("allow"), DONE], ALLOW, "hook"),
    ],
)
def test_keys_that_we_typed_look_like_those_of_the_user(
    entries: list[dict[str, Any]], answer: Answer, counted: str
) -> None:
    """Only another outcome than the typed answer shows that somebody else was first."""
    assert first_in(entries, ASKED, "t1", SINCE, SentAnswer(answer, SINCE, hook=False)) == counted


@pytest.mark.parametrize("hook", [True, False])
@pytest.mark.parametrize(("rests", "counted"), [(True, "terminal"), (False, "stopped")])
def test_who_says_no_ends_the_turn_without_any_work(rests: bool, counted: str, hook: bool) -> None:
    """An allowed tool runs until it is interrupted."""
    sent = SentAnswer(ALLOW, SINCE, hook, Went(SINCE + 1, rests))
    assert first_in([NO], ASKED, "t1", SINCE, sent) == counted


def test_a_subagent_has_a_transcript_of_its_own() -> None:
    raw = payload("Bash", {"command": "make"}, agent_id="a1")
    assert first_in([DONE], raw, "t1", SINCE, SentAnswer(ALLOW, SINCE, hook=True)) == ""


FIELDS = ("type", "message", "content", "attachment", "toolUseID", "version", "timestamp", "odd")


@given(st.lists(st.dictionaries(st.sampled_from(FIELDS), json_values, max_size=3), max_size=3))
def test_no_entry_raises(entries: list[dict[str, Any]]) -> None:
    """A transcript may have anything in the place of facts."""
    odd = [{**DONE, "message": e, "attachment": e, "version": 1, "timestamp": e} for e in entries]
    for each in (entries, odd, [{**DONE, "message": {"content": entries}}]):
        first_in(each, ASKED, "", SINCE, SentAnswer(ALLOW, SINCE, hook=True))
        known = json.loads(json.dumps(each, default=str))
        first_in(known, ASKED, "t1", SINCE, SentAnswer(DENY, SINCE, hook=False))
