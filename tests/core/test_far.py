"""Sessions of other machines on the board: what is shown, announced and refused."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from bellboard.agents import trace_line
from bellboard.core.board import Board
from bellboard.core.events import line_of
from bellboard.core.notices import Notices, Policy
from bellboard.core.published import needs_you, publish
from bellboard.core.records import MOST_SESSIONS, Transition
from bellboard.core.session import Session
from bellboard.core.untrusted import bounded
from bellboard.hosting.callbacks import MOST_WAITING, Commands, Effects
from bellboard.hosting.turn import SharedBoard
from bellboard.storage.spool import Spool
from bellboard.storage.store import Change, Store
from rig.host.hosting import made
from rig.host.playback import Line
from rig.waiting import eventually

T = 1.8e9
DEV = "dev/claude/s1"


def row(sid: str = "s1", status: str = "blocked", since: float = T, **more: Any) -> Line:
    return {
        "session_id": sid,
        "agent": "claude",
        "status": status,
        "since": since,
        "updated": since,
        **more,
    }


def far(t: float, machine: str = "dev", **given: Any) -> Line:
    return {"t": t, "far": {"machine": machine, **given}}


def board_of(*lines: Line) -> Board:
    board = Board()
    for line in lines:
        event = trace_line.from_line(line)
        assert event.kind != "junk", event.why
        board.fold(event)
    return board


def test_a_far_session_is_published_as_its_machine_shows_it() -> None:
    """Process and connection get other keys, as their numbers mean nothing here."""
    shown = row(tool="Bash", detail="make", kind="permission", project="api", pid=4711, ssh="x")
    board = board_of(far(T, row=shown))
    p = publish(board.sessions[DEV])
    assert (p["session_id"], p["machine"], p["status"]) == (DEV, "dev", "blocked")
    assert (p["tool"], p["detail"], p["kind"], p["project"]) == (
        "Bash",
        "make",
        "permission",
        "api",
    )
    assert (p["far_pid"], p["far_ssh"]) == (4711, "x")
    assert not {"pid", "ssh", "tty", "pane", "tmux", "nvim", "kitty", "cwd"} & p.keys()


def test_nothing_but_what_a_row_may_hold_is_taken_from_another_machine() -> None:
    mine = {"cwd": "/etc", "tty": "/dev/pts/1", "nvim": "/run/nvim.1", "transcript": "/x"}
    p = publish(board_of(far(T, row={**row(), **mine})).sessions[DEV])
    assert not mine.keys() & p.keys()


def test_why_a_machine_cannot_be_followed_is_published_with_its_sessions() -> None:
    down = {"t": T + 9, "link": {"machine": "dev", "up": False, "why": "no \x1b[31mroute"}}
    board = board_of(far(T, row=row()), down)
    p = publish(board.sessions[DEV])
    assert ("stale" in p["markers"], p["link_why"]) == (True, "no route")
    assert p["link_since"] == T + 9
    link = board.ledger.links["dev"]
    assert (link.up, link.since, link.why) == (False, T + 9, "no route")


@pytest.mark.parametrize("status", ["blocked", "working", "completed"])
def test_after_an_hour_the_sessions_of_a_machine_are_only_counted(status: str) -> None:
    """A restart or a message changes nothing; nothing is announced, then or later."""
    down = {"link": {"machine": "dev", "up": False, "why": "no route"}}
    board = board_of(far(T, row=row(status=status)), {"t": T + 9, **down})
    again = {"link": {"machine": "dev", "up": False, "why": "timed out"}}
    board.fold(trace_line.from_line({"t": T + 3000, **again}))
    changes = [c for f in board.advance(T + 3608) for c in f.changes]
    assert not publish(board.sessions[DEV])["hidden"]
    changes += [c for f in board.advance(T + 3609) for c in f.changes]
    p = publish(board.sessions[DEV])
    assert (p["hidden"], p["folded"], p["link_since"]) == (True, True, T + 9)
    assert not needs_you(p)
    for line in ({"t": T + 4000, "restart": {}}, {"t": T + 5000, **down}):
        changes += [c for f in board.fold(trace_line.from_line(line)) for c in f.changes]
        assert publish(board.sessions[DEV])["folded"]
    back = {"t": T + 9000, "link": {"machine": "dev", "up": True}}
    changes += [c for f in board.fold(trace_line.from_line(back)) for c in f.changes]
    p = publish(board.sessions[DEV])
    assert (p["hidden"], p["status"], "folded" in p) == (False, status, False)
    assert changes == []


@pytest.mark.parametrize(
    "name",
    [
        *("", "../dev", "a/b", "-x", "a b", "x" * 64, "é", "a\n", 7, None),
        *("machines.json", "Machines.LOCK", "0123456789abcdef" * 2 + "01234567"),
    ],
)
def test_a_machine_has_a_plain_name(name: object) -> None:
    """No name is the name of a file beside its folder."""
    for line in (
        {"t": T, "far": {"machine": name, "row": row()}},
        {"t": T, "link": {"machine": name, "up": True}},
        {"t": T, "decoded": {"kind": "link up", "machine": name}},
    ):
        assert trace_line.from_line(line).kind == "junk"


@pytest.mark.parametrize("sid", ["", "../s1", "a/b", "x\n", "x" * 300, 7, None])
def test_a_session_cannot_name_another_machine(sid: object) -> None:
    assert trace_line.from_line(far(T, row={**row(), "session_id": sid})).kind == "junk"
    told = {"kind": "far", "machine": "dev", "row": {**row(), "session_id": sid}}
    assert trace_line.from_line({"t": T, "decoded": told}).kind == "junk"


def test_a_decoded_event_gets_its_session_from_its_machine_and_row() -> None:
    """The event's own session does not count."""
    told = {"kind": "far", "machine": "dev", "row": row(), "session_id": "s1"}
    assert trace_line.from_line({"t": T, "decoded": told}).session_id == DEV
    e = trace_line.from_line(far(T, row=row(), cursor="d.7", done=True))
    assert trace_line.from_line(line_of(e)) == e
    odd = trace_line.from_line({"t": T, "decoded": {**told, "kind": "prompt"}})
    assert (odd.machine, odd.row) == ("", {})


def test_a_local_session_with_the_id_of_a_remote_one_is_not_overwritten() -> None:
    hook = {"session_id": DEV, "hook_event_name": "UserPromptSubmit", "prompt": "x"}
    board = board_of({"t": T, "hook": hook}, far(T + 1, row=row()))
    assert (board.sessions[DEV].machine, board.sessions[DEV].turn) == ("", "working")


def test_the_cursor_moves_with_the_last_line_of_a_message() -> None:
    """A host that takes over asks from there: what it gets twice is refused."""
    first = far(T, row=row(), cursor="d.7")
    assert "dev" not in board_of(first).ledger.links
    second = far(T, row=row("s2"), cursor="d.7", done=True)
    assert board_of(first, second).ledger.links["dev"].cursor == "d.7"


def test_every_session_of_a_large_machine_can_be_listed() -> None:
    ids = [f"s{n}" for n in range(2000)]
    e = bounded(trace_line.from_line(far(T, all=ids)))
    assert e.ids == tuple(ids)


def test_however_many_sessions_other_machines_have_those_of_this_one_stay() -> None:
    """Other machines may claim any times."""
    mine = {"session_id": "mine", "hook_event_name": "UserPromptSubmit", "prompt": "x"}
    board = board_of({"t": T - 1, "hook": mine})
    for n in range(MOST_SESSIONS + 100):
        board.fold(trace_line.from_line(far(T, row=row(f"s{n}", updated=T * 2))))
    assert board.sessions["mine"].turn == "working"
    assert len(board.sessions) <= MOST_SESSIONS


# ---------------------------------------------------------------- news


def test_a_notification_stays_due_when_another_host_compares_the_clocks() -> None:
    """The other host takes over the link with a slight difference; a new question is new."""
    board, notices, number = Board(), Notices(Policy()), 0

    def take(t: float, status: str, since: float) -> None:
        nonlocal number
        for folded in board.fold(trace_line.from_line(far(t, row=row(status=status, since=since)))):
            notices.see(board.sessions, [folded.session_id], t)
            for change in folded.changes:
                number += 1
                notices.hear([(number, change, True)])

    def due(t: float) -> int:
        notice = notices.next(t, {"desktop"})
        return notice.id if notice else 0

    take(T, "working", T)
    take(T + 10, "blocked", T + 10)
    take(T + 20, "blocked", T + 10.6)
    take(T + 30, "blocked", T + 9.2)
    assert board.sessions["dev/claude/s1"].row["since"] == T + 10
    assert (due(T + 39), due(T + 40)) == (0, 2)
    take(T + 41, "working", T + 11)
    take(T + 41, "blocked", T + 12)
    assert due(T + 42) == 4


def lived(home: Path, *lines: Line) -> list[Change]:
    """Return the changes that a host publishes, which has run since T."""
    spool = Spool(home)
    spool.prepare()
    spool.hosts.announce(1)
    store = Store(home)
    shared = SharedBoard(spool, store, watching=True)
    with store.transaction() as tx:
        tx.set_option("watched_since", T, 1, T)
    found: list[Change] = []
    for line in lines:
        spool.write(line)
        shared.turn(line["t"])
        found += store.changes()
    store.close()
    return found


#: What comes of a machine that this host has followed since T → what is announced.
NEWS: dict[str, tuple[list[Line], list[bool]]] = {
    "a change": ([far(T + 50, row=row(since=T + 49))], [True]),
    "the first rows": ([far(T + 50, row=row(since=T + 5), found=True)], [False]),
    "a change before a host ran": ([far(T + 50, row=row(since=T - 5))], [False]),
    "a change during an outage": (  # that machine has another database, or lost its history
        [
            far(T + 1, row=row(status="working", since=T + 1), found=True),
            far(T + 99, row=row(since=T + 50), found=True),
        ],
        [False, True],
    ),
}


@pytest.mark.files
@pytest.mark.parametrize("what", NEWS)
def test_what_changes_while_a_host_runs_is_announced(tmp_path: Path, what: str) -> None:
    lines, live = NEWS[what]
    assert [change.live for change in lived(tmp_path, *lines)] == live


@pytest.mark.files
def test_however_much_happens_on_other_machines_no_command_here_waits(tmp_path: Path) -> None:
    """A command is neither dropped for theirs nor started after them."""
    made(tmp_path)
    store, commands = Store(tmp_path), Commands()
    effects = Effects({"blocked": ["true"]}, commands)
    sids = ["here", *(f"dev/claude/{n}" for n in range(2 * MOST_WAITING)), "last"]
    for n, sid in enumerate(sids, 1):
        change = Change(n, Transition(time.time(), sid, "working", "blocked", "", ""), True)
        session = Session(sid, turn="blocked", machine="dev" if "/" in sid else "")
        effects.ask(change, None if n % 2 else session)
    first: list[tuple[int]] = []
    while len(first) < 2:
        effects.run(store, 1)
        first = store.database.all("SELECT transition_id FROM claims ORDER BY t LIMIT 2")
    store.close()
    assert [(1,), (len(sids),)] == first
    eventually(lambda: commands.running == 0, "their end")
