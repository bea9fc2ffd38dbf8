"""Rules that would have spared questions, made from requests that were never denied."""

from __future__ import annotations

import pytest

from bellboard.agents.registry import agent_of
from bellboard.agents.trace_line import from_line
from bellboard.core.events import Event, Origin
from bellboard.core.spared import Spared, spared
from rig.host.asking import allows, payload

CLAUDE = agent_of("claude")


def asks(command: str = "make", name: str = "PermissionRequest", agent: str = "") -> Event:
    rule = {"toolName": "Bash", "ruleContent": command}
    more = {"hook_event_name": name, "permission_suggestions": allows(rule), "cwd": "/home/u/api"}
    who = {"agent_id": agent} if agent else {}
    raw = payload("Bash", {"command": command}, **more, **who)
    return CLAUDE.event(raw, 5.0, 5.0, Origin())


def answer(choice: str, **more: str) -> Event:
    facts = {"session_id": "s", "choice": choice, "way": "hook", "by": "Neovim 4711", **more}
    return from_line({"t": 6.0, "answer": facts})


def rules(*events: Event, session: str = "s") -> list[str]:
    return [x.rule for x in spared([(session, e) for e in events], {})]


DONE = asks(name="PostToolUse")
GIVEN = (asks(), answer("allow"), DONE)


def test_a_permission_allowed_three_times_gets_a_rule() -> None:
    """An answer here counts like an answer in the terminal."""
    log = [("s", e) for e in (*GIVEN, asks(), DONE, asks("ls"))] + [("t", e) for e in GIVEN]
    found = spared(log, {"t": "/home/u/web"})
    assert found == [Spared("Bash(make)", "claude", 3, 5.0, ("/home/u/api", "/home/u/web"))]


@pytest.mark.parametrize(
    "no",
    [
        answer("deny"),
        answer("stop"),
        asks(name="PermissionDenied"),
        Event("said denial", "transcript", 6.0, 6.0, "s"),
        Event("interrupt", "transcript", 6.0, 6.0, "s"),
    ],
)
def test_a_permission_denied_once_gets_no_rule(no: Event) -> None:
    assert rules(*GIVEN, *GIVEN, *GIVEN, *GIVEN) == ["Bash(make)"]
    assert rules(*GIVEN, *GIVEN, *GIVEN, asks(), no) == []


def test_a_denial_is_of_its_own_question() -> None:
    """Not of another session, another thread, or a question that was answered before."""
    other = asks("rm x", agent="a1")
    assert rules(*GIVEN, *GIVEN, *GIVEN, answer("deny")) == ["Bash(make)"]
    denied = Event("said denial", "transcript", 6.0, 6.0, "s", agent="a1")
    assert rules(*GIVEN, *GIVEN, asks(), other, denied) == ["Bash(make)"]
    log = [("s", e) for e in (*GIVEN, *GIVEN, asks())]
    assert spared([*log, ("t", answer("deny"))], {}) != []


def test_twice_is_not_often() -> None:
    assert rules(*GIVEN, *GIVEN) == []


@pytest.mark.parametrize("command", ["make --token=abcdefgh", "make " + "x" * 300, "a && b"])
def test_a_rule_that_would_be_cut_or_hold_a_secret_is_not_kept(command: str) -> None:
    assert asks(command).rule == ""
