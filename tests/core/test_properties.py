"""Properties of every history, however odd."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from bellboard.agents.trace_line import from_line
from bellboard.core import board as board_module
from bellboard.core import identity, machine
from bellboard.core.board import Board
from bellboard.core.deadlines import BY_TIME
from bellboard.core.options import Options
from bellboard.core.records import LEDGER, check_session
from bellboard.core.session import ABSENT, STATUSES, Run, Session, is_listed, status_of, terminal_of
from rig.host.playback import Line, play
from rig.host.strategies import T0, histories

OPTIONS = Options(approval={"slow": 8.0, "fast": 3.0}, prompts=3)


def fold(lines: list[Line], board: Board | None = None) -> Board:
    board = board or Board(OPTIONS)
    for line in lines:
        board.fold(from_line(line))
    return board


def state(board: Board) -> dict[str, Any]:
    """Return the whole state of a board: its records, and its next deadline."""
    sessions = {sid: msgspec.to_builtins(s) for sid, s in board.sessions.items()}
    return {**sessions, LEDGER: msgspec.to_builtins(board.ledger), "due": board.due()}


def reloaded(board: Board) -> Board:
    """Return the board of another host, loaded from the store of this one."""
    for sid in [*board.sessions, LEDGER]:
        board.dirty.add(sid)
    other = Board(board.options)
    other.load((k, body) for k, body in board.take_dirty() if body is not None)
    return other


@pytest.mark.parametrize("field", [f.name for f in fields(Session) if f.type is float])
def test_no_time_of_a_session_may_be_impossible(field: str) -> None:
    """Each is checked, in its own process and in others that run it."""
    s = Session(session_id="s", turn="idle")
    check_session(s, "s")
    damaged = [replace(s, **{field: 1e300})]
    if field in Run.__struct_fields__:
        damaged.append(replace(s, aside={1: replace(Run(pid=1, turn="idle"), **{field: 1e300})}))
    for bad in damaged:
        with pytest.raises(ValueError, match="impossible time"):
            check_session(bad, "s")


@given(histories())
def test_the_board_is_sound_after_any_history(history: list[Line]) -> None:
    board = Board(OPTIONS)
    for line in history:
        for folded in board.fold(from_line(line)):
            assert folded.verdict.why
            for change in folded.changes:
                assert change.before != change.after
                assert {change.before, change.after} <= {None, *STATUSES}
        due = board.due()
        assert due is None or due > board.ledger.clock
        listed = [s for s in board.sessions.values() if is_listed(s)]
        running = [pid for s in listed for pid in s.processes]
        assert sorted(running) == sorted(set(running)), "a process runs one session"
        for s in listed:
            assert all(s in board.running_in(pid) for pid in s.processes)
            terminal = terminal_of(s)
            assert terminal is None or s in board.in_terminal(terminal)
        for s in board.sessions.values():
            assert status_of(s) in {ABSENT, *STATUSES}
            assert s.held == "" or s.turn in ("working", "unknown")
            assert s.turn != ABSENT or not s.blocks


@given(histories())
def test_published_statuses_match_the_transitions(history: list[Line]) -> None:
    changes, final = play(history)
    now: dict[str, str] = {}
    for c in changes:
        assert now.get(c["session_id"]) == c["from"]
        now[c["session_id"]] = c["to"]
    assert {k: v for k, v in now.items() if v} == {s["session_id"]: s["status"] for s in final}
    times = [c["t"] for c in changes]
    assert times == sorted(times)


@given(histories())
def test_a_repeated_event_counts_once(history: list[Line]) -> None:
    twice = [x for line in history for x in ([line, line] if "hook" in line else [line])]
    once, again = state(fold(history)), state(fold(twice))
    assert once == again


@given(histories(), st.data())
def test_a_split_history_folds_like_the_whole(history: list[Line], data: st.DataObject) -> None:
    """Also where it is not split: the fold is deterministic."""
    whole, parts = Board(OPTIONS), Board(OPTIONS)
    for line in history:
        if data.draw(st.booleans()):
            parts = reloaded(parts)
        told, again = whole.fold(from_line(line)), parts.fold(from_line(line))
        assert [f.changes for f in told] == [f.changes for f in again]
    assert state(parts) == state(whole)


@given(histories(), st.lists(st.floats(0, 5000), min_size=1, max_size=5))
def test_time_can_advance_in_steps_or_at_once(history: list[Line], steps: list[float]) -> None:
    board = fold(history)
    at_once = reloaded(board)
    now = board.ledger.clock
    for step in sorted(steps):
        board.advance(now + step)
        assert board.advance(now + step) == []
    at_once.advance(now + max(steps))
    assert state(board) == state(at_once)


@given(histories(), st.data())
def test_unknown_events_change_nothing_and_are_counted(
    history: list[Line], data: st.DataObject
) -> None:
    strange, unknown = [], 0
    for line in history:
        if "hook" in line:
            extra = {"no_such_field": [1, {"x": None}]}
            strange.append({**line, "hook": {**line["hook"], **extra}, "no_such_key": 1})
        else:
            strange.append(line)
        if data.draw(st.booleans()):
            unknown += 1
            hook = {"session_id": "a", "hook_event_name": "NoSuchEvent", "agent_id": "x"}
            strange.append({"t": line["t"], "arrived": line["arrived"], "hook": hook})
    a, b = fold(history), fold(strange)
    assert b.ledger.counts.get("unknown: NoSuchEvent", 0) == unknown
    b.ledger.counts = a.ledger.counts
    keyless = [{k: _unkeyed(v) for k, v in state(x).items()} for x in (a, b)]
    assert keyless[0] == keyless[1]


def _unkeyed(record: Any) -> Any:
    """Return a record without the checksums of payloads."""
    if not isinstance(record, dict):
        return record
    plain = {k: _unkeyed(v) for k, v in record.items()}
    if "recent" in record:
        plain["recent"] = len(record["recent"])
    if "asks" in record:
        plain["key"] = 0
    return plain


class Broken(Exception):
    """The error of a broken rule."""


@contextlib.contextmanager
def broken_rules(of_deadlines: bool) -> Iterator[None]:
    """Let the rules of all deadlines fail, or those of all other events."""

    def fails(*_: object) -> None:
        raise Broken

    with pytest.MonkeyPatch.context() as patch:
        for kind, row in machine.DECIDED.items():
            for status, (rule, verdict) in list(row.items()):
                if rule is not None and of_deadlines == (kind in BY_TIME):
                    patch.setitem(row, status, (fails, verdict))
        yield


@given(histories(most=12))
def test_a_rule_that_fails_leaves_the_board_as_it_was(history: list[Line]) -> None:
    """And the board still works."""
    board = Board(OPTIONS)
    for line in history:
        before = state(board)
        try:
            with broken_rules(of_deadlines=False):
                board.fold(from_line(line))
        except Broken:
            assert state(board) == before
            board.fold(from_line(line))


@given(histories(most=12))
def test_a_deadline_that_fails_stops_only_its_own_session(history: list[Line]) -> None:
    board = fold(history)
    with broken_rules(of_deadlines=True):
        board.advance(board.ledger.clock + 1e6)
    assert board.due() is None or board.due() > board.ledger.clock  # type: ignore[operator]


@given(histories(most=12))
def test_a_late_failure_takes_records_back(history: list[Line]) -> None:
    def makes_room_and_fails(*given: Any) -> None:
        identity.make_room(*given)
        raise Broken

    board = Board(OPTIONS)
    for line in history:
        board.advance(board.ledger.clock)
        before, event = state(board), from_line(line)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(board_module, "make_room", makes_room_and_fails)
            try:
                board.fold(msgspec.structs.replace(event, clock=board.ledger.clock))
            except Broken:
                assert state(board) == before
        board.fold(event)


def test_a_rule_that_keeps_its_deadline_does_not_loop() -> None:
    board = fold([hook(0, "SessionStart"), hook(1, "PermissionRequest", tool_name="Bash")])
    with pytest.MonkeyPatch.context() as patch:
        row = machine.DECIDED["question stood"]
        for status, (_, verdict) in list(row.items()):
            patch.setitem(row, status, (lambda *_: None, verdict))
        board.advance(T0 + 100)
    assert [x for x in board.ledger.counts if "does not clear" in x]


# ---------------------------------------------------------------- hooks of one moment


def hook(t: float, name: str, **fields: Any) -> Line:
    told = {"session_id": "a", "hook_event_name": name, **fields}
    return {"t": T0 + t, "hook": told, "origin": {"pid": 11}}


BASH = {"tool_name": "Bash", "tool_input": {"command": "ls"}}
RUN = {**BASH, "tool_use_id": "t1"}
AGENT = {"tool_name": "Agent", "tool_input": {"prompt": "look"}, "tool_use_id": "t2"}
SUB = {"agent_id": "x1", "agent_type": "Explore"}
LISTED = [{"id": "x1", "type": "subagent", "status": "running"}]
BUSY = [hook(0, "SessionStart", source="startup"), hook(1, "UserPromptSubmit", prompt="do it")]
RUNNING = [*BUSY, hook(3, "PreToolUse", **RUN)]
STARTING = [*BUSY, hook(3, "PreToolUse", **AGENT)]
AGENT_RUNS = [*BUSY, hook(3, "SubagentStart", **SUB)]
MOMENTS = {
    "prompt, Stop": (BUSY[:1], hook(5, "UserPromptSubmit", prompt="x"), hook(5.03, "Stop")),
    "Stop, prompt": (BUSY, hook(5, "Stop"), hook(5.03, "UserPromptSubmit", prompt="next")),
    "PostToolUse, Stop": (RUNNING, hook(5, "PostToolUse", **RUN), hook(5.03, "Stop")),
    "PostToolBatch, Stop": (RUNNING, hook(5, "PostToolBatch"), hook(5.03, "Stop")),
    "PreToolUse, PostToolUse": (
        BUSY,
        hook(5, "PreToolUse", **RUN),
        hook(5.03, "PostToolUse", **RUN),
    ),
    "PreToolUse, PostToolUse without ids": (
        BUSY,
        hook(5, "PreToolUse", **BASH),
        hook(5.03, "PostToolUse", **BASH),
    ),
    "PostToolUse, PreToolUse": (
        [*BUSY, hook(3, "PreToolUse", **BASH)],
        hook(5, "PostToolUse", **BASH),
        hook(5.03, "PreToolUse", **AGENT),
    ),
    "request, PostToolUse": (
        RUNNING,
        hook(5, "PermissionRequest", **BASH),
        hook(5.03, "PostToolUse", **RUN),
    ),
    "request, PostToolUse, no PreToolUse": (
        BUSY,
        hook(5, "PermissionRequest", **BASH),
        hook(5.03, "PostToolUse", **RUN),
    ),
    "request, PostToolBatch": (
        BUSY,
        hook(5, "PermissionRequest", **BASH),
        hook(5.03, "PostToolBatch"),
    ),
    "PreToolUse, request": (
        BUSY,
        hook(5, "PreToolUse", **RUN),
        hook(5.03, "PermissionRequest", **BASH),
    ),
    "SubagentStart, PostToolUse(Agent)": (
        STARTING,
        hook(5, "SubagentStart", **SUB),
        hook(5.03, "PostToolUse", **AGENT),
    ),
    "SubagentStart, Stop": (
        STARTING,
        hook(5, "SubagentStart", **SUB),
        hook(5.03, "Stop", background_tasks=LISTED),
    ),
    "SubagentStart, SubagentStop": (
        BUSY,
        hook(5, "SubagentStart", **SUB),
        hook(5.03, "SubagentStop", **SUB),
    ),
    "agent's request, PostToolUse": (
        AGENT_RUNS,
        hook(5, "PermissionRequest", **BASH, **SUB),
        hook(5.03, "PostToolUse", **RUN, **SUB),
    ),
    "agent's request, SubagentStop": (
        AGENT_RUNS,
        hook(5, "PermissionRequest", **BASH, **SUB),
        hook(5.03, "SubagentStop", **SUB),
    ),
    "SessionEnd, Stop": (BUSY, hook(5, "Stop"), hook(5.03, "SessionEnd", reason="other")),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_hooks_of_one_moment_can_arrive_in_either_order(moment: str) -> None:
    before, first, second = MOMENTS[moment]
    told = T0 + 5.05
    shown = []
    for pair in ([first, second], [second, first]):
        late = [{**x, "arrived": told} for x in pair]
        _, final = play([*before, *late, {"t": T0 + 20, "tick": {}}])
        shown.append([(s["session_id"], s["status"], s["markers"]) for s in final])
    assert shown[0] == shown[1]


@pytest.mark.parametrize("moment", MOMENTS)
def test_nothing_flashes_between_the_hooks_of_one_moment(moment: str) -> None:
    """Whichever comes first, no question is shown that the other one ends."""
    before, first, second = MOMENTS[moment]
    if "PostTool" not in moment and "SubagentStop" not in moment:
        return
    late = [{**second, "arrived": T0 + 5.04}, {**first, "arrived": T0 + 5.05}]
    changes, _ = play([*before, *late, {"t": T0 + 20, "tick": {}}])
    assert "blocked" not in [c["to"] for c in changes]
