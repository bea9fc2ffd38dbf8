"""The contract of the hosts, point by point, on real files with a test clock.

Two hosts are two boards here, so that one can act exactly between two steps of the other.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bellboard.agents.agent import Seen
from bellboard.core import machine
from bellboard.core.events import Event
from bellboard.core.notices import NEVER
from bellboard.core.options import Options, options_of, settings_of
from bellboard.core.records import Transition
from bellboard.core.session import Session
from bellboard.hosting import turn
from bellboard.hosting.callbacks import PAUSE, Commands, Effects
from bellboard.hosting.turn import SharedBoard
from bellboard.storage import pruning
from bellboard.storage.event_file import Item
from bellboard.storage.spool import Spool
from bellboard.storage.store import Busy, Change, SharedOption, Store, Transaction
from rig.clock import Clock
from rig.host.hosting import (
    Dying,
    Make,
    NoThread,
    agrees_with_its_log,
    emit,
    from_files,
    made,
    put,
    statuses,
    watched_since,
    work,
)
from rig.waiting import eventually

pytestmark = pytest.mark.quick


def files_of(shared: SharedBoard) -> Counter[str]:
    """Return how often each file is in the log."""
    return Counter(row.file for row in from_files(shared.store.log()))


def applied(shared: SharedBoard) -> set[str]:
    return {r[0] for r in shared.store.database.all("SELECT name FROM applied")}


def waiting(shared: SharedBoard) -> list[str]:
    return [path.name for path in shared.spool.new.iterdir()]


# Once


def test_an_event_is_folded_by_one_host_and_seen_by_all(make: Make, clock: Clock) -> None:
    """The second host finds the spool empty and the change in the database."""
    one, two = make(), make()
    name = emit(one, clock, "UserPromptSubmit")
    assert one.turn(clock()).changed == {"s"}
    assert two.turn(clock()).changed >= {"s"}
    assert statuses(one.board) == statuses(two.board) == {"s": "working"}
    assert files_of(two) == {name: 1}
    assert waiting(one) == []


def test_a_change_is_read_once_by_each(make: Make, clock: Clock) -> None:
    """From the place on where it read last."""
    one, two = make(), make()
    work(one, clock)
    for shared in (one, two):
        assert ["working"] == [c.transition.after for c in shared.store.changes()]
        assert [] == shared.store.changes()


def test_a_session_that_one_forgets_is_forgotten_by_all(make: Make, clock: Clock) -> None:
    """A host forgets sessions when there are more than a board keeps."""
    one, two = make(), make()
    work(one, clock)
    two.turn(clock())
    assert "s" in two.board.sessions
    one.board.drop("s")
    emit(one, clock, "UserPromptSubmit", "other")
    one.turn(clock.advance(1))
    two.turn(clock())
    assert {"other"} == two.board.sessions.keys()
    assert "s" not in two.board.dirty  # it does not write again what the other one wrote


def test_after_a_sleep_of_the_machine_nothing_is_kept_that_left_no_row(
    make: Make, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another host may have woken before, and removed the rows of deleted sessions."""
    slept = 0.0
    monkeypatch.setattr("bellboard.hosting.turn.clock", lambda: time.monotonic() + slept)
    one, two = make(), make()
    work(one, clock)
    two.turn(clock())
    with one.store.transaction():
        one.store.database.db.execute("DELETE FROM sessions WHERE session_id = 's'")
    slept = 3600.0
    assert {"s"} == two.catch_up()
    assert "s" not in two.board.sessions


def test_a_name_leaves_applied_once_its_file_was_seen_to_be_gone(make: Make, clock: Clock) -> None:
    """Not before: while the file exists, only its name keeps it from being folded again."""
    shared = make()
    name = emit(shared, clock, "UserPromptSubmit")
    shared.turn(clock())
    assert applied(shared) == {name}
    later = emit(shared, clock, "Stop")
    shared.turn(clock.advance(1))
    assert applied(shared) == {later}


def test_files_of_a_dead_host_are_unlinked_and_not_folded_again(make: Make, clock: Clock) -> None:
    one, two = make(), make()
    one.spool = Dying(one.spool.home)
    name = emit(one, clock, "UserPromptSubmit")
    with pytest.raises(KeyboardInterrupt):
        one.turn(clock())
    assert waiting(one) == [name]
    two.turn(clock())
    assert files_of(two) == {name: 1}
    assert waiting(two) == []


def test_names_that_dead_hosts_left_are_swept(make: Make, clock: Clock) -> None:
    """After a while, if their files are gone; while a file exists its name stays."""
    dead, dying, shared = make(), make(), make()
    gone = emit(dead, clock, "UserPromptSubmit")
    dead.turn(clock())
    dying.spool = Dying(dying.spool.home)
    left = emit(dying, clock, "Stop")
    with pytest.raises(KeyboardInterrupt):
        dying.turn(clock())
    shared.sweep(clock.advance(59))
    assert applied(shared) == {gone, left}
    shared.sweep(clock.advance(2))
    assert applied(shared) == {left}
    shared.turn(clock())
    shared.sweep(clock.advance(61))
    assert applied(shared) == set()


def test_hosts_that_see_the_same_thing_report_it_once(make: Make, clock: Clock) -> None:
    """The name comes from the key, and is known even after the first file is gone."""
    shared = make()
    line = {"t": clock(), "registry": {"pid": 7, "record": {"sessionId": "s", "status": "busy"}}}
    assert shared.spool.write(line, "registry 7 busy")
    shared.turn(clock())
    emit(shared, clock, "Notification")
    shared.turn(clock.advance(1))
    assert shared.spool.write(line, "registry 7 busy")
    shared.turn(clock.advance(1))
    assert [r.event.kind for r in shared.store.log()].count("registry") == 1
    assert waiting(shared) == []


# What fails changes nothing


def test_a_lock_that_is_held_leaves_the_board_as_it_is(make: Make, clock: Clock) -> None:
    one, two = make(), make()
    emit(one, clock, "UserPromptSubmit")
    one.turn(clock())
    two.turn(clock())
    emit(one, clock, "Stop")
    with one.store.transaction():
        with pytest.raises(Busy):
            two.turn(clock())
        assert statuses(two.board) == {"s": "working"}
    two.turn(clock())
    assert statuses(two.board) == {"s": "completed"}


class Full(Store):
    """A disk that is full at COMMIT."""

    full = False

    def transaction(self) -> Transaction:
        return FullTransaction(self)


class FullTransaction(Transaction):
    def write(self, *given: Any) -> None:
        super().write(*given)
        if self._store.full:  # type: ignore[attr-defined]
            raise sqlite3.OperationalError("database or disk is full")


def test_uncommitted_events_are_not_kept_and_are_folded_again(make: Make, clock: Clock) -> None:
    """So is the rest of a listed backlog, in its order."""
    shared = make()
    shared.store.close()
    shared.store = store = Full(shared.spool.home)
    names = [emit(shared, clock, "UserPromptSubmit", f"s{n}") for n in range(1200)]
    assert shared.turn(clock()).more
    known = len(statuses(shared.board))
    store.full = True
    with pytest.raises(sqlite3.OperationalError):
        shared.turn(clock())
    assert len(shared.catch_up()) > known
    assert len(statuses(shared.board)) == known
    emit(shared, clock, "Stop", "s1100")
    store.full = False
    while shared.turn(clock()).more:
        pass
    assert statuses(shared.board)["s1100"] == "completed"
    assert [r.file for r in from_files(store.log())][:-1] == names
    agrees_with_its_log(shared)


class Overtaken(Store):
    """Another program takes the whole file, as on NFS, just before a method with this name."""

    before = ""

    def taken(self, name: str) -> None:
        if self.before == name:
            self.before, self.by = "", sqlite3.connect(self.database.path, isolation_level=None)
            self.by.execute("BEGIN EXCLUSIVE")

    def options(self) -> dict[str, SharedOption]:
        self.taken("options")
        return super().options()

    def remember_applied(self) -> None:
        self.taken("remember_applied")
        super().remember_applied()


@pytest.mark.parametrize("before", ["options", "remember_applied"])
def test_what_changed_is_returned_although_a_step_fails_afterwards(
    make: Make, clock: Clock, before: str
) -> None:
    """In the middle of a refresh, and after COMMIT; otherwise the old status stays on display."""
    one, two = make(network="nfs"), make(network="nfs")
    two.store.close()
    two.store = store = Overtaken(two.spool.home, network="nfs", patience=0.01)
    work(one, clock)
    two.turn(clock())
    emit(one, clock, "UserPromptSubmit", "other")
    one.turn(clock.advance(1))
    emit(one, clock, "Stop")
    store.before = before
    with pytest.raises(Busy):
        two.turn(clock.advance(1))
    store.by.close()
    assert {"s", "other"} == two.turn(clock()).changed
    assert {"s": "completed", "other": "working"} == statuses(two.board)
    assert set() == two.turn(clock()).changed
    agrees_with_its_log(two)


def test_without_a_thread_for_it_the_log_is_copied_later(
    make: Make, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folded changes are shown, and no file is at fault."""
    monkeypatch.setattr(pruning, "Thread", NoThread)
    shared = make()
    work(shared, clock)
    shared.store.database.commits = 10_000
    emit(shared, clock, "Stop")
    assert (False, {"s"}, 0) == shared.turn(clock())
    assert "completed" == statuses(shared.board)["s"]


def test_an_event_for_which_memory_runs_out_is_read_again(tmp_path: Path, clock: Clock) -> None:
    """The event is not at fault, so it is not set aside."""

    class Large(Spool):
        times = 0

        def read(self, name: str) -> Item | None:
            self.times += 1
            if self.times == 1:
                raise MemoryError
            return super().read(name)

    made(tmp_path)
    shared = SharedBoard(spool := Large(tmp_path), Store(tmp_path))
    put(spool, "UserPromptSubmit", t=clock())
    with pytest.raises(MemoryError):
        shared.turn(clock())
    shared.turn(clock())
    assert ({"s": "working"}, 0) == (statuses(shared.board), shared.refused)
    shared.store.close()


def test_an_event_that_raises_is_set_aside(
    make: Make, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its traceback; what it had already changed is taken back, the rest is folded."""
    shared = make()

    def poison(s: Any, e: Event, o: Options) -> None:
        s.turn = "completed"
        raise ZeroDivisionError("poison")

    verdict = machine.DECIDED["stop"]["working"][1]
    monkeypatch.setitem(machine.DECIDED["stop"], "working", (poison, verdict))
    emit(shared, clock, "UserPromptSubmit", "good")
    emit(shared, clock, "UserPromptSubmit", "bad")
    emit(shared, clock, "Stop", "bad")
    emit(shared, clock, "PermissionRequest", "good", tool_name="Bash", tool_use_id="t")
    shared.turn(clock())
    shared.turn(clock.advance(1))
    assert statuses(shared.board) == {"good": "blocked", "bad": "working"}
    (why,) = (shared.spool.home / "spool" / "bad").glob("*.why")
    assert "ZeroDivisionError: poison" in why.read_text()
    agrees_with_its_log(shared)


def test_a_batch_ends_in_time(make: Make, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large files do not hold the lock for long: the rest is for the next transaction."""

    class Slow(Spool):
        def read(self, name: str) -> Any:
            eventually(lambda: True)
            end = os.times().elapsed + 0.05
            eventually(lambda: os.times().elapsed > end)
            return super().read(name)

    shared = make(Slow(make().spool.home))
    monkeypatch.setattr(turn, "SLICE", 0.1)
    names = [emit(shared, clock, "UserPromptSubmit", f"s{n}") for n in range(8)]
    steps = 1
    while shared.turn(clock()).more:
        steps += 1
    assert 3 <= steps <= 9  # the last one only checks for new files
    assert [r.file for r in from_files(shared.store.log())] == names


# Who may announce what


def lives(shared: SharedBoard) -> list[tuple[str | None, bool]]:
    return [(c.transition.after, c.live) for c in shared.store.changes()]


def test_nothing_that_happened_unwatched_is_announced(make: Make, clock: Clock) -> None:
    """A backlog is processed silently; later events are announced."""
    shared = make()
    emit(shared, clock, "UserPromptSubmit")
    emit(shared, clock, "UserPromptSubmit", "other")
    clock.advance(600)
    watched_since(shared, clock())
    shared.turn(clock())
    emit(shared, clock, "Stop")
    shared.turn(clock.advance(1))
    assert lives(shared) == [("working", False), ("working", False), ("completed", True)]


def test_current_evidence_of_an_earlier_change_is_not_announced(make: Make, clock: Clock) -> None:
    """The registry says since when: the question was asked unwatched."""
    shared = make()
    asked = clock()
    clock.advance(600)
    watched_since(shared, clock())
    record = {"sessionId": "s", "status": "waiting", "waitingFor": "approve Bash"}
    record |= {"statusUpdatedAt": asked * 1000}
    shared.spool.write({"t": clock.advance(1), "registry": {"pid": 7, "record": record}})
    shared.turn(clock())
    assert lives(shared) == [("blocked", False)]


@pytest.mark.parametrize("found", [True, False])
def test_a_question_found_on_a_screen_may_be_old(make: Make, clock: Clock, found: bool) -> None:
    """A host that was not there cannot tell since when the screen shows it."""
    shared = make()
    shared.spool.write({"t": clock(), "registry": {"pid": 7, "record": {"sessionId": "s"}}})
    watched_since(shared, clock.advance(600))
    shared.turn(clock())
    seen = Seen("waiting", "permission", "Bash", "make").evidence(clock.advance(1), "s", 7, found)
    shared.spool.write(seen.line)
    shared.turn(clock())
    assert lives(shared)[-1] == ("blocked", not found)


def test_changes_after_unknown_are_announced(make: Make, clock: Clock) -> None:
    """Working silently became unknown; a question after that is news."""
    shared = make()
    emit(shared, clock, "UserPromptSubmit")
    shared.turn(clock())
    watched_since(shared, clock.advance(600))
    shared.spool.write({"t": clock(), "restart": {}})
    shared.turn(clock.advance(1))
    emit(shared, clock, "PermissionRequest", tool_name="Bash", tool_use_id="t")
    shared.turn(clock())
    shared.turn(clock.advance(1))
    told = [("working", True), ("unknown", False), ("working", True), ("blocked", True)]
    assert lives(shared) == told


def test_a_command_that_folds_announces_nothing(make: Make, clock: Clock) -> None:
    """`bellboard list` without a host; with a host running, it announces on its behalf."""
    host = make()
    passing = SharedBoard(host.spool, host.store)
    emit(host, clock, "UserPromptSubmit")
    passing.turn(clock())
    host.spool.hosts.announce(os.getpid())
    emit(host, clock, "Stop")
    passing.turn(clock.advance(1))
    assert lives(host) == [("working", False), ("completed", True)]


def test_a_claim_is_given_once(make: Make, clock: Clock) -> None:
    one, two = make(), make()
    wanted = [(1, "blocked: say"), (1, "blocked: play"), (2, "blocked: say")]
    assert one.store.claim(wanted[:2], 1, clock()) == wanted[:2]
    assert two.store.claim(wanted, 2, clock()) == wanted[2:]


def test_an_effect_waits_for_the_lock_without_blocking(make: Make, clock: Clock) -> None:
    """An effect is not forgotten; two hosts that ask for the same effect run it once."""
    one, two = make(), make()
    out = one.spool.home / "out"
    words = ["sh", "-c", 'mkdir "$0.$$"', str(out)]
    commands = [Commands(), Commands()]
    both = [Effects({"completed": words}, runner) for runner in commands]
    change = Change(1, Transition(clock(), "s", "working", "completed", "finish", ""), True)
    for effects in both:
        effects.ask(change, None)
        effects.ask(change._replace(id=2, live=False), None)
    with one.store.transaction():
        assert both[1].run(two.store, 2) == PAUSE
    assert both[1].run(two.store, 2) != PAUSE  # but soon, while it may turn out that it cannot run
    assert both[0].run(one.store, 1) == NEVER
    eventually(lambda: list(one.spool.home.glob("out.*")), "what was asked for")
    assert one.store.database.all("SELECT transition_id, pid FROM claims") == [(1, 2)]
    for runner in commands:
        eventually(lambda runner=runner: runner.running == 0, "its end")
    assert both[1].run(two.store, 2) == NEVER


def test_a_late_change_runs_its_command_only_if_it_still_holds() -> None:
    """Changes while the only host was suspended are history, not news."""
    now = time.time()
    commands = {status: ["true", status] for status in ("working", "completed")}
    session = Session("s", turn="completed", since=now - 7200)

    def run(ago: float, before: str, after: str) -> int:
        effects = Effects(commands, Commands())
        change = Change(1, Transition(now - ago, "s", before, after, "", ""), True)
        effects.ask(change, session)
        return len(effects._asked)

    assert run(7200, "completed", "working") == 0
    assert run(7200, "working", "completed") == 1
    assert run(7300, "working", "completed") == 0
    assert run(1, "completed", "working") == 1


# Options


def test_options_are_shared_and_go_back_to_their_defaults(make: Make, clock: Clock) -> None:
    """The host configured last decides for all hosts, now and later."""
    one, two = make(), make()
    first = options_of({"grace": 3, "approval": True}, Options())
    one.spool.write({"t": clock(), "config": {**settings_of(first), "pid": 41}})
    one.turn(clock())
    two.turn(clock())
    assert one.board.options == two.board.options == first
    assert one.store.database.all("SELECT pid FROM options WHERE key = 'config'") == [(41,)]
    second = options_of({"dwell": 2}, Options())
    one.spool.write({"t": clock.advance(1), "config": {**settings_of(second), "pid": 42}})
    two.turn(clock())
    one.turn(clock())
    assert one.board.options == two.board.options == second
    assert make().catch_up() == set()
    third = make()
    third.catch_up()
    assert third.board.options == second
    agrees_with_its_log(one)


# The clock


def test_a_clock_set_back_delays_nothing(make: Make, clock: Clock) -> None:
    """A Stop an hour older than its prompt counts; timers continue; the log replays."""
    shared, other = make(), make()
    work(shared, clock)
    back = Clock(clock() - 3600)
    emit(shared, back, "Stop")
    shared.turn(back.advance(1))
    assert statuses(shared.board) == {"s": "completed"}
    emit(shared, back, "PermissionRequest", tool_name="Bash", tool_use_id="t")
    shared.turn(back.advance(0.1))
    shared.turn(back.advance(0.3))
    assert statuses(shared.board) == {"s": "blocked"}
    assert shared.board.ledger.clock == back()
    assert all(live for _, live in lives(shared))
    other.turn(back())
    assert statuses(other.board) == {"s": "blocked"}
    agrees_with_its_log(other)


def test_a_clock_set_back_is_noticed_without_events(make: Make, clock: Clock) -> None:
    """A deadline an hour ahead is not waited for, although nothing arrives."""
    shared = make()
    work(shared, clock)
    emit(shared, clock, "PermissionRequest", tool_name="Bash", tool_use_id="t")
    shared.turn(clock.advance(0.1))
    back = Clock(clock() - 3600)
    shared.turn(back())
    shared.turn(back.advance(0.3))
    assert statuses(shared.board) == {"s": "blocked"}
    agrees_with_its_log(shared)


def test_events_repeated_after_the_clock_was_set_back_are_not_duplicates(
    make: Make, clock: Clock
) -> None:
    """The next turn, with the same payloads as the last one, begins and ends."""
    shared = make()
    work(shared, clock)
    emit(shared, clock, "Stop")
    shared.turn(clock.advance(1))
    back = Clock(clock() - 86400)
    emit(shared, back, "UserPromptSubmit")
    shared.turn(back.advance(0.5))
    assert statuses(shared.board) == {"s": "working"}
    emit(shared, back, "Stop")
    shared.turn(back.advance(1))
    assert statuses(shared.board) == {"s": "completed"}
    agrees_with_its_log(shared)


def test_a_clock_set_forward_and_back_again_loses_nothing(make: Make, clock: Clock) -> None:
    shared = make()
    work(shared, clock)
    ahead = Clock(clock() + 86400 / 2)
    emit(shared, ahead, "PreToolUse", tool_name="Bash", tool_use_id="t")
    shared.turn(ahead.advance(0.1))
    assert statuses(shared.board) == {"s": "working"}
    emit(shared, clock, "Stop")
    shared.turn(clock.advance(1))
    assert statuses(shared.board) == {"s": "completed"}
    agrees_with_its_log(shared)


def test_the_next_host_folds_with_the_clock_of_the_last(make: Make, clock: Clock) -> None:
    """Even if that came to nothing: the replayed log sees the same clock."""
    one, two = make(), make()
    work(one, clock)
    two.turn(clock())
    emit(one, clock, "Stop", "never heard of")
    os.utime(one.spool.new / waiting(one)[0], (clock() + 10, clock() + 10))
    one.turn(clock() + 10)
    put(two.spool, "Stop", t=clock() + 5)
    two.turn(clock() + 10)
    assert statuses(two.board) == {"s": "completed"}
    agrees_with_its_log(two)


def test_no_file_moves_the_clock_into_the_future(make: Make, clock: Clock) -> None:
    """Neither its timestamp nor its content."""
    shared = make()
    work(shared, clock)
    put(shared.spool, "Stop", t=clock() + 9e5)
    future = {"t": clock() + 9e5, "arrived": clock() + 9e5, "view": {"session_id": "s"}}
    shared.spool.write(future)
    shared.turn(clock.advance(1))
    assert shared.board.ledger.clock == clock()
    assert statuses(shared.board) == {"s": "completed"}
    agrees_with_its_log(shared)
