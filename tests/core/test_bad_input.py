"""Junk never raises, never changes a session, and is always counted."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellboard.agents import trace_line
from bellboard.agents.claude.hooks import hook
from bellboard.agents.trace_line import origin_of
from bellboard.core.board import Board
from bellboard.core.events import Event, Origin
from bellboard.core.records import MOST_THERE, SHARE
from bellboard.core.session import is_listed, status_of
from bellboard.core.untrusted import decimal
from core.test_properties import fold, state
from rig.host.strategies import T0, decoded_events, texts, wrong_shapes

MILLION = int(os.environ.get("BELLBOARD_SESSIONS", "4000"))  # by hand: 1000000
MOST = 512  # of them are kept, so that the usual run has eight times as many
GOOD = {"session_id": "a", "hook_event_name": "UserPromptSubmit", "prompt": "do it"}


def payload(**changed: Any) -> bytes:
    return json.dumps({**GOOD, **changed}).encode()


def deep(levels: int) -> bytes:
    return payload()[:-1] + b', "tool_input": ' + b"[" * levels + b"]" * levels + b"}"


def at_work() -> Board:
    return fold([{"t": T0, "hook": GOOD, "origin": {"pid": 7}}])


JUNK = {
    "nothing": b"",
    "not JSON": b"hello",
    "half of JSON": payload()[:30],
    "binary": bytes(range(256)),
    "not UTF-8": payload().replace(b"do it", b"\xff\xfe"),
    "a list": b"[1, 2]",
    "a number": b"7",
    "null": b"null",
    "no session id": json.dumps({"hook_event_name": "Stop"}).encode(),
    "an empty session id": payload(session_id=""),
    "a session id that is a number": payload(session_id=7),
    "a session id that is a list": payload(session_id=["a"]),
    "a session id of 201 characters": payload(session_id="x" * 201),
    "a session id with half a character": payload(session_id="a\ud800"),
    "a session id of two lines": payload(session_id="a\nb"),
    "a session id that a terminal acts on": payload(session_id="a\x1b]0;b\x07"),
    "a session id that reads backwards": payload(session_id="a\u202eb"),
    "no event name": json.dumps({"session_id": "a"}).encode(),
    "an event name that is an object": payload(hook_event_name={"x": 1}),
    "NaN": payload()[:-1] + b', "x": NaN}',
    "Infinity": payload()[:-1] + b', "x": -Infinity}',
    "two session ids": payload()[:-1] + b', "session_id": "b"}',
    "a thousand levels": deep(1000)[:-1],
    "a hundred thousand levels": deep(100_000),
    "trailing text": payload() + b"x",
}


@pytest.mark.parametrize("kind", JUNK)
def test_junk_changes_nothing_and_is_counted(kind: str) -> None:
    raw = JUNK[kind]
    board = at_work()
    before = state(board)
    event = hook(raw, T0 + 1, T0 + 1)
    board.fold(event)
    after = state(board)
    counted = sum(after[""]["counts"].values())
    if event.kind != "junk":  # valid input may change something, but must not raise
        assert kind in ("not UTF-8", "a hundred thousand levels")
        assert counted == 0
        return
    assert event.why
    assert counted == 1
    assert after["a"] == before["a"]
    assert after.keys() == before.keys()


@pytest.mark.parametrize("t", [-1.0, 0.0, float("nan"), float("inf"), float("-inf")])
def test_an_invalid_time_is_junk(t: float) -> None:
    assert hook(payload(), t, T0).kind == "junk"
    assert trace_line.from_line({"t": t, "hook": GOOD}, T0).kind == "junk"


@pytest.mark.parametrize("pid", [0, -1, 1 << 31, 10**30, True, 4711.0, "4711", None])
def test_an_invalid_process_id_is_ignored(pid: object) -> None:
    """A signal to process 0 would reach all of our own group."""
    assert origin_of({"agent": "claude", "pid": pid}).pid is None


@pytest.mark.parametrize("t", [1e300, 1e18, T0 + 1e9])
def test_a_time_far_ahead_counts_as_now(t: float) -> None:
    board = at_work()
    board.fold(hook(b'{"session_id":"a","hook_event_name":"Stop"}', t, T0 + 5))
    assert (status_of(board.sessions["a"]), board.sessions["a"].since) == ("completed", T0 + 5)


@pytest.mark.parametrize("t", [1e-9, 1.0, T0 - 86400])
def test_a_time_long_ago_ends_nothing(t: float) -> None:
    board = at_work()
    board.fold(hook(b'{"session_id":"a","hook_event_name":"Stop"}', t, T0 + 5))
    assert status_of(board.sessions["a"]) == "working"


def test_a_prompt_with_half_a_character_is_kept() -> None:
    """JavaScript cuts text between surrogates and writes such escapes."""
    event = hook(payload(prompt="look \ud83d"), T0, T0)
    assert (event.kind, event.prompt) == ("prompt", "look \N{REPLACEMENT CHARACTER}")
    board = Board()
    board.fold(event)
    assert status_of(board.sessions["a"]) == "working"
    assert board.take_dirty()


@pytest.mark.parametrize("field", ["tool_input", "prompt", "cwd", "tool_response"])
def test_half_a_character_anywhere_can_be_stored(field: str) -> None:
    for told in ("\udc00", {"command": "\udc00"}, ["\udc00"]):
        raw = payload(hook_event_name="PreToolUse", tool_name="Bash", **{field: told})
        board = Board()
        board.fold(hook(raw, T0, T0))
        assert status_of(board.sessions["a"]) == "working"
        board.take_dirty()


@pytest.mark.parametrize("field", ["background_tasks", "session_crons", "tool_input", "x"])
def test_bytes_that_are_not_utf8_do_no_harm(field: str) -> None:
    """Found by fuzzing: values decoded later have not been checked to be UTF-8."""
    raw = payload(hook_event_name="Stop", **{field: ["hello"]}).replace(b"hello", b"\xfe")
    assert hook(raw, T0, T0).kind in ("stop", "junk")


def test_a_tool_input_a_thousand_levels_deep_is_skipped() -> None:
    event = hook(deep(900), T0, T0)
    assert event.kind in ("prompt", "junk")


def test_fields_of_the_wrong_type_are_left_out_and_the_event_counts() -> None:
    wrong = {"cwd": 7, "prompt": ["x"], "permission_mode": {}, "background_tasks": "x"}
    event = hook(payload(**wrong), T0, T0)
    assert (event.kind, event.cwd, event.prompt) == ("prompt", "", "")


def test_fifty_megabytes_are_read_in_a_moment() -> None:
    raw = payload(hook_event_name="PostToolUse", tool_name="Read", tool_response="x" * 50_000_000)
    begin = time.process_time()
    event = hook(raw, T0, T0)
    assert event.kind == "tool end"
    assert hook(raw[:1_000_000], T0, T0, truncated=True).kind == "tool end"
    assert time.process_time() - begin < 2


def test_a_truncated_payload_counts_up_to_the_cut() -> None:
    raw = payload(tool_name="Bash", hook_event_name="PreToolUse", tool_input={"command": "x" * 99})
    event = hook(raw[:-20], T0, T0, truncated=True)
    assert (event.kind, event.tool) == ("tool", "Bash")
    assert hook(b'{"session_', T0, T0, truncated=True).kind == "junk"


@pytest.mark.parametrize(
    "text",
    [
        '{"t": 1e400, "hook": {}}',
        f'{{"t": {10**400}, "hook": {{}}}}',
        f'{{"t": 1, "arrived": {10**400}, "tick": {{}}}}',
        f'{{"t": 1, "config": {{"grace": {10**400}}}}}',
        f'{{"t": 1, "registry": {{"pid": {10**400}, "record": null}}}}',
        '{"t": 1, "registry": {"pid": 7, "record": {"sessionId": "a", "statusUpdatedAt": 1e308}}}',
        '{"t": 1, "transcript": {"session_id": "a", "entry": []}}',
        '{"t": 1, "view": 7}',
        '{"t": 1, "snooze": {"session_id": "a", "until": 1e308}}',
        '{"t": true, "tick": {}}',
        '{"t": 1, "config": {"\\ud800": "\\udfff"}}',
        f'{{"t": 1, "facts": {{"session_id": "a", "ports": {10**400}, "x": ["\\ud800", 1]}}}}',
        '{"t": 1, "label": {"session_id": "\\ud800", "label": "x"}}',
        '{"t": 1, "label": {"session_id": "a", "label": "\\ud800"}}',
        '{"t": 1, "\\ud800": 1}',
        "{}",
    ],
)
def test_numbers_of_any_size_and_kind_do_no_harm(text: str) -> None:
    board = at_work()
    event = trace_line.event_in(text.encode(), T0 + 1)
    msgspec.msgpack.encode(event)
    board.fold(event)
    board.take_dirty()
    assert status_of(board.sessions["a"]) == "working"


@pytest.mark.parametrize(
    "text", ["²", "٣", "1²", "-1", "+1", " 1", "1_0", "", "9" * 16, "9" * 5000]
)
def test_strings_that_only_look_like_numbers_are_rejected(text: str) -> None:
    """str.isdigit accepts more than int, and int more than any process id."""
    assert decimal(text) is None


@pytest.mark.parametrize("key", ["client", "title", "answer", "label", "facts"])
def test_a_session_whose_id_was_cut_in_a_character_is_not_taken_for_one(key: str) -> None:
    """The rests of two different ids may be equal."""
    facts = {"session_id": "a\ud800", "pid": 7, "says": "busy", "choice": "deny", "way": "hook"}
    event = trace_line.event_in(json.dumps({"t": T0, key: facts}).encode())
    assert (event.kind, "no usable session id" in event.why) == ("junk", True)


@given(texts, st.floats(allow_nan=True))
def test_no_hook_payload_raises(raw: bytes, t: float) -> None:
    board = at_work()
    before = state(board)["a"]
    event = hook(raw, t, T0 + 1, Origin(pid=8))
    msgspec.msgpack.encode(event)
    board.fold(event)
    if event.kind == "junk":
        assert sum(board.ledger.counts.values()) == 1
        assert state(board)["a"] == before
    board.advance(T0 + 1e6)
    board.take_dirty()


@given(wrong_shapes)
def test_no_line_raises(told: object) -> None:
    board = at_work()
    line = {"t": T0 + 1, **told} if isinstance(told, dict) else told
    for event in (trace_line.from_line(line, T0 + 1), trace_line.from_line(told)):
        assert isinstance(event, Event)
        msgspec.msgpack.encode(event)  # as the log of events does
        board.fold(event)
    board.fold(trace_line.event_in(json.dumps(told).encode(), T0 + 1))
    board.advance(T0 + 1e6)
    board.take_dirty()


@given(st.lists(decoded_events, max_size=20))
def test_whatever_events_a_trace_holds_nothing_raises(events: list[dict[str, Any]]) -> None:
    """In any order, with any facts missing."""
    board = at_work()
    for n, told in enumerate(events):
        board.fold(trace_line.from_line({"t": T0 + 3 * n, "decoded": told}))
    board.advance(T0 + 1e6)


@given(
    st.dictionaries(
        st.sampled_from(["hold", "grace", "approval", "clear", "prompts", "x"]), wrong_shapes
    )
)
def test_no_configuration_raises(options: dict[str, Any]) -> None:
    board = at_work()
    board.fold(trace_line.from_line({"t": T0 + 1, "config": options}))
    board.fold(hook(payload(hook_event_name="PermissionRequest", tool_name="Bash"), T0 + 2, T0 + 2))
    board.advance(T0 + 1e6)


def test_a_million_sessions_leave_the_memory_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest ended sessions are dropped first, then those silent longest; live ones stay."""
    monkeypatch.setattr("bellboard.core.records.MOST_SESSIONS", MOST)
    board = Board()
    board.fold(hook(payload(session_id="old but alive"), T0, T0, Origin(pid=1)))
    for n in range(MILLION):
        t = T0 + n / 100
        sid = f"s{n}"
        origin = Origin(pid=10 + n, tty=f"/dev/pts/{n % 50}")
        board.fold(hook(payload(session_id=sid), t, t, origin))
        gone = b'{"session_id":"%s","hook_event_name":"SessionEnd"}' % sid.encode()
        board.fold(hook(gone, t, t, origin))
        if n % 1000 == 0:
            board.take_dirty()
    assert len(board.sessions) <= MOST
    assert len(board._at) <= 3 * MOST
    assert len(board._queue) <= 3 * MOST
    assert is_listed(board.sessions["old but alive"])
    assert f"s{MILLION - 1}" in board.sessions
    assert "s0" not in board.sessions


@pytest.mark.parametrize("asking", [100, MOST + 100])
def test_what_asks_stays_however_many_sessions_there_are(
    monkeypatch: pytest.MonkeyPatch, asking: int
) -> None:
    """The others give way, those that need you least first; how many is known."""
    monkeypatch.setattr("bellboard.core.records.MOST_SESSIONS", MOST)
    board = Board()
    many = {"PermissionRequest": asking, "Stop": MOST // 2, "SessionStart": MOST, "": MOST // 4}
    names = [name for name, times in many.items() for _ in range(times)]
    for n, name in enumerate(names):
        for event in ("UserPromptSubmit", name) if name else ("UserPromptSubmit",):
            given = payload(session_id=f"s{n}", hook_event_name=event, tool_name="Bash")
            board.fold(hook(given, T0 + n / 100, T0 + n / 100))
    board.advance(T0 + 2 * len(names))
    left = Counter(status_of(s) for s in board.sessions.values())
    assert left["blocked"] == asking
    assert left["completed"] == (MOST // 2 if asking < MOST else left["completed"])
    assert len(board.sessions) <= max(MOST, asking + MOST // SHARE + 1)
    assert board.ledger.forgotten == len(names) - len(board.sessions)
    assert board.is_crowded


@pytest.mark.parametrize("name", ["UserPromptSubmit", "SessionStart"])
def test_hundreds_of_sessions_in_one_process_stay_cheap(name: str) -> None:
    """Each replaces the one before; looking through all of them took 16 ms per event."""
    board, origin = Board(), Origin(pid=7, tty="/dev/pts/7")
    for n in range(600):
        body = payload(session_id=f"s{n}", hook_event_name=name)
        board.fold(hook(body, T0 + n / 500, T0 + n / 500, origin))
    assert len(board.ran_in(7)) <= MOST_THERE + 1
    assert [s.session_id for s in board.sessions.values() if is_listed(s)] == ["s599"]


def test_no_session_that_a_server_still_runs_is_forgotten() -> None:
    board, origin = Board(), Origin(pid=7, shared=True)
    for n in range(300):
        board.fold(hook(payload(session_id=f"s{n}"), T0 + n, T0 + n, origin))
    assert len(board.running_in(7)) == 300


def test_many_events_of_one_moment_leave_a_record_small() -> None:
    board = Board()
    for n in range(3000):
        board.fold(
            hook(
                payload(hook_event_name="PreToolUse", tool_name="Bash", tool_use_id=str(n)), T0, T0
            )
        )
    assert len(board.sessions["a"].recent) <= 101


def test_junk_of_many_kinds_is_counted_in_bounded_space() -> None:
    board = Board()
    for n in range(1000):
        board.fold(hook(payload(hook_event_name=f"New{n}"), T0, T0))
    assert len(board.ledger.counts) <= 201
    assert sum(board.ledger.counts.values()) == 1000
