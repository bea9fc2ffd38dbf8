"""A backlog in several batches: one host works through it while others wait, unless it stalls."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable

import pytest

from bellboard.hosting import turn
from bellboard.hosting.host import Arrivals
from bellboard.hosting.turn import BATCH, SharedBoard
from bellboard.storage.spool import Spool
from bellboard.storage.store import Draining
from bellboard.system.locks import Lock
from rig.clock import Clock
from rig.home import Home
from rig.host.hosting import (
    Make,
    RecordedHost,
    agrees_with_its_log,
    emit,
    from_files,
    made,
    opened,
    put,
    statuses,
)
from rig.waiting import eventually


class Listing(Spool):
    """Counts how often the pending files are listed."""

    times = 0

    def scan(self) -> list[str]:
        self.times += 1
        return super().scan()


def backlog(shared: SharedBoard, clock: Clock, count: int) -> list[str]:
    return [emit(shared, clock, "UserPromptSubmit", f"s{n % 50}", n=n) for n in range(count)]


def folded_once(shared: SharedBoard, names: list[str]) -> None:
    counts = Counter(row.file for row in from_files(shared.store.log()))
    assert dict.fromkeys(names, 1) == counts


def test_one_host_works_through_a_backlog_and_the_others_list_nothing(
    make: Make, clock: Clock
) -> None:
    """While it makes progress, the others read what it commits."""
    one, two = make(), make()
    two.spool = spool = Listing(two.spool.home)
    names = backlog(one, clock, 3 * BATCH)
    while one.turn(clock()).more:
        if one.store.drain.is_ours:
            with pytest.raises(Draining):
                two.turn(clock())
            assert two.catch_up()
    assert 0 == spool.times
    assert not one.store.drain.is_ours
    folded_once(one, names)
    names.append(emit(two, clock, "Stop", "s1"))
    two.turn(clock.advance(1))
    folded_once(two, names)


BEGINS = """
import os, signal, sys
from pathlib import Path
from bellboard.hosting.turn import SharedBoard
from bellboard.storage.spool import Spool
from bellboard.storage.store import Store
home = Path(sys.argv[1])
shared = SharedBoard(Spool(home), Store(home), watching=True)
shared.turn(float(sys.argv[2]))
assert shared.store.drain.is_ours
os.kill(os.getpid(), signal.SIGSTOP)
while shared.turn(float(sys.argv[2])).more:
    pass
"""


def test_a_suspended_host_is_not_waited_for(make: Make, clock: Clock) -> None:
    """A host holds no database lock between batches: others continue, each event counted once."""
    shared = make()
    names = backlog(shared, clock, 2 * BATCH + 100)
    run = [sys.executable, "-c", BEGINS, str(shared.spool.home), str(clock())]
    with subprocess.Popen(run) as other:
        os.waitid(os.P_PID, other.pid, os.WSTOPPED | os.WNOWAIT)
        with pytest.raises(Draining):
            shared.turn(clock())

        def goes_on() -> bool:
            with contextlib.suppress(Draining):
                return not shared.turn(clock()).more
            return False

        eventually(goes_on, "the other host")
        folded_once(shared, names)
        other.send_signal(signal.SIGCONT)
        assert 0 == other.wait()
    folded_once(shared, names)
    agrees_with_its_log(shared)


def test_a_host_that_hangs_is_waited_for_once(
    make: Make, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every commit of the others counted as its progress: each event came ten seconds late."""
    monkeypatch.setattr(turn, "LOST", turn.STALLED)
    shared, another = make(), make()
    hangs = Lock(shared.spool.home / "drain.lock")
    hangs.take()
    try:
        emit(shared, clock, "UserPromptSubmit", "s")
        eventually(lambda: steps(shared, clock), "an end of the wait")
        eventually(lambda: steps(another, clock), "an end of the wait")
        for event in ("Stop", "UserPromptSubmit", "Stop"):
            emit(shared, clock, event, "s")
            assert steps(shared, clock)
            assert steps(another, clock)
            assert another.others.is_to_read()
        hangs.leave()
        emit(shared, clock, "UserPromptSubmit", "s")
        assert steps(shared, clock)
        hangs.take()
        emit(shared, clock, "Stop", "s")
        assert not steps(shared, clock)
    finally:
        hangs.close()


def steps(shared: SharedBoard, clock: Clock) -> bool:
    """Return whether it takes a step instead of waiting for another host."""
    try:
        shared.turn(clock.advance(1))
    except Draining:
        return False
    return True


def test_a_host_that_ends_is_replaced_at_once(make: Make, clock: Clock) -> None:
    one, two = make(), make()
    names = backlog(one, clock, 2 * BATCH + 100)
    assert one.turn(clock()).more
    one.store.close()
    while two.turn(clock()).more:
        pass
    folded_once(two, names)
    one.store = make().store  # the fixture closes it


def test_hosts_that_start_together_fold_each_event_once(
    home: Home, start: Callable[..., RecordedHost]
) -> None:
    """Even if the one working through the backlog is killed."""
    spool = made(home.bellboard)
    names = [put(spool, "UserPromptSubmit", f"s{n % 50}", n=n) for n in range(6 * BATCH)]
    hosts = [RecordedHost(home, f"host{n}") for n in range(4)]
    try:
        eventually(lambda: len(list(spool.new.iterdir())) < 5 * BATCH, "a host that has begun")
        hosts[0].kill()
        eventually(lambda: not list(spool.new.iterdir()), "an empty spool")
        assert all(host.process.poll() is None for host in hosts[1:])
        assert not [host.note for host in hosts[1:] if "held" in host.note]
    finally:
        for host in hosts:
            host.kill()
    with opened(home.bellboard) as shared:
        rows = [row.file for row in from_files(shared.store.log()) if row.event.from_hook]
        assert sorted(names) == sorted(rows)


def test_a_batch_leaves_deadlines_to_what_still_waits(
    make: Make, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The question was answered at once, so it is never shown, in however many batches it is read.

    Once nothing waits, what is due is done.
    """
    monkeypatch.setattr("bellboard.hosting.turn.SLICE", -1.0)  # one file at a time
    shared, asks = (
        make(),
        {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "t"},
    )
    emit(shared, clock, "UserPromptSubmit")
    for event in ("PreToolUse", "PermissionRequest", "PostToolUse"):
        clock.advance(0.1)
        emit(shared, clock, event, **asks)
    emit(shared, clock, "UserPromptSubmit", "other")
    emit(shared, clock, "PermissionRequest", "other", **asks)
    clock.advance(60)
    steps = 1
    while shared.turn(clock()).more:
        steps += 1
    assert steps >= 6
    assert statuses(shared.board) == {"s": "working", "other": "blocked"}
    assert [c.transition.after for c in shared.store.changes()] == ["working", "working", "blocked"]
    agrees_with_its_log(shared)


def test_deadlines_wait_for_what_comes_while_a_backlog_is_read(
    make: Make, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New files are listed after the backlog, as are the rest if somebody removes files."""
    monkeypatch.setattr("bellboard.hosting.turn.SLICE", -1.0)  # one file at a time
    shared, asks = (
        make(),
        {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "t"},
    )
    emit(shared, clock, "UserPromptSubmit")
    emit(shared, clock, "PreToolUse", **asks)
    emit(shared, clock, "PermissionRequest", **asks)
    gone = emit(shared, clock, "UserPromptSubmit", "other")
    assert shared.turn(clock()).more and shared.turn(clock()).more
    (shared.spool.new / gone).unlink()
    clock.advance(0.1)
    emit(shared, clock, "PostToolUse", **asks)
    clock.advance(20)
    while shared.turn(clock()).more:
        pass
    assert [c.transition.after for c in shared.store.changes()] == ["working"]
    assert shared.board.ledger.clock == clock()


def test_what_came_while_nothing_was_listed_comes_first(home: Home) -> None:
    """A turn may end with files that it had listed before: the next arrival is not the oldest."""
    spool = Spool(home.bellboard)
    arrivals = Arrivals(spool)
    for is_more, only in ((False, {f"{spool.new}/c"}), (True, ())):
        arrivals.take({f"{spool.new}/a", f"{spool.new}/b"})
        arrivals.clear(is_more)
        arrivals.take({f"{spool.new}/c"})
        assert only == arrivals.only
