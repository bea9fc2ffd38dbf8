"""Helpers for tests of hosts: events as the hook writes them, hosts that record, replays."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bellboard.agents import traces
from bellboard.agents.anonymous import trace_of
from bellboard.core.board import Board
from bellboard.core.session import is_listed, status_of
from bellboard.hosting import turn
from bellboard.hosting.link import Link
from bellboard.hosting.turn import SharedBoard
from bellboard.storage.event_file import MAGIC
from bellboard.storage.spool import Spool
from bellboard.storage.store import Logged, Store
from bellboard.system.threads import Thread
from rig import warm
from rig.clock import Clock
from rig.home import Home
from rig.host.far_feed import FarFeed
from rig.host.playback import encoded
from rig.machines.mounts import Mounts
from rig.machines.ssh import set_followed
from rig.waiting import PATIENCE, eventually

Change = tuple[float, str, str | None, str | None, str]


class NoThread(Thread):
    """A thread that the system refuses to start."""

    def start(self) -> None:
        raise RuntimeError("can't start new thread")


def put(
    spool: Spool,
    event: str,
    session: str = "s",
    t: float | None = None,
    pid: int = 0,
    pipe: str = "",
    **fields: Any,
) -> str:
    """Write an event as `hooks/emit` does, with that time; return its name."""
    head = f"agent=claude\0event={event}\0pid={pid}\0pipe={pipe}\0\0"
    payload = {"session_id": session, "hook_event_name": event, "cwd": "/srv/project", **fields}
    return put_raw(spool, MAGIC + head.encode() + json.dumps(payload).encode(), t)


def begins(spool: Spool, sid: str) -> None:
    """Start a turn of a session, in a project of the same name."""
    put(spool, "UserPromptSubmit", sid, cwd=f"/srv/{sid}", prompt="go")


def put_raw(spool: Spool, data: bytes, t: float | None = None) -> str:
    """Write a file to the spool, with that time."""
    name = f"{os.getpid():08}.{time.time_ns()}.event"
    tmp = spool.home / "spool" / "tmp" / name
    tmp.write_bytes(data)
    ns = int((time.time() if t is None else t) * 1e9)
    os.utime(tmp, ns=(ns, ns))
    tmp.rename(spool.new / name)
    return name


class Dying(Spool):
    """A spool whose host dies after COMMIT, before it touches a file."""

    def unlink(self, names: Iterable[str], standing: Iterable[str] = ()) -> list[str]:
        raise KeyboardInterrupt


def made(home: Path) -> Spool:
    """Return a spool with its folders."""
    spool = Spool(home)
    spool.prepare()
    return spool


def statuses(board: Board) -> dict[str, str]:
    """Return the status of each listed session."""
    return {sid: status_of(s) for sid, s in board.sessions.items() if is_listed(s)}


@contextlib.contextmanager
def opened(home: Path) -> Iterator[SharedBoard]:
    """Return a read-only board that is up to date."""
    shared = SharedBoard(Spool(home), Store(home, patience=PATIENCE))
    try:
        shared.catch_up()
        yield shared
    finally:
        shared.store.close()


def from_files(log: list[Logged]) -> list[Logged]:
    """Return the logged events that came in files, without deadlines."""
    return [row for row in log if row.file]


def agrees_with_its_log(shared: SharedBoard) -> None:
    """Check that the log replays to the same changes and the same end."""
    lived = [(c.t, c.session_id, c.before, c.after, c.rule) for c in shared.store.history()]
    board = Board()
    replayed: list[Change] = [
        (c.t, c.session_id, c.before, c.after, c.rule)
        for folded in traces.replay(encoded(trace_of(shared.store.log(), private=False)), board)
        for c in folded.changes
    ]
    assert lived == replayed
    assert statuses(shared.board) == statuses(board)


class RecordedHost:
    """A host in a process of its own (`recording_host.py`), and what it has published."""

    def __init__(self, home: Home, name: str = "host", **how: Any) -> None:
        self.home = home
        self.out = home.root / f"{name}.told"
        self._read = 0  # bytes of it
        self._messages: list[dict[str, Any]] = []
        script = Path(__file__).with_name("recording_host.py")
        self.errors = home.root / f"{name}.stderr"
        self.out.touch()
        with self.errors.open("w") as errors:
            argv = [str(script), str(home.bellboard), str(self.out), json.dumps(how)]
            self.process = warm.Program(argv, env=home.env, cwd=home.project, stderr=errors)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def messages(self) -> list[dict[str, Any]]:
        """Return everything that it has pushed."""
        with self.out.open("rb") as file:
            file.seek(self._read)
            new, end, _ = file.read().rpartition(b"\n")
        self._read += len(new + end)
        self._messages += map(json.loads, new.splitlines())
        return [*self._messages]

    @property
    def health(self) -> dict[str, Any]:
        """Return the health in the newest message that has it."""
        found: list[dict[str, Any]] = [m["health"] for m in self.messages if "health" in m]
        return found[-1] if found else {}

    @property
    def notes(self) -> dict[str, str]:
        """Return its health notes, by topic."""
        return dict(self.health.get("notes", {}))

    @property
    def note(self) -> str:
        """Return its health notes as one text."""
        return "; ".join(self.notes.values())

    @property
    def sessions(self) -> dict[str, dict[str, Any]]:
        """Return the sessions that a reader of all messages knows."""
        known: dict[str, dict[str, Any]] = {}
        for message in self.messages:
            known = {} if message["full"] else known
            known |= {p["session_id"]: p for p in message["sessions"]}
            for sid in message["removed"]:
                known.pop(sid, None)
        return known

    @property
    def shown(self) -> dict[str, str]:
        """Return the published status of each session."""
        return {sid: p["status"] for sid, p in self.sessions.items()}

    def last(self, key: str) -> Any:
        """Return the newest value of a field of its messages."""
        return next((m[key] for m in reversed(self.messages) if key in m), None)

    @property
    def live(self) -> list[tuple[str, str | None]]:
        """Return the live transitions: session, status."""
        told = [t for m in self.messages for t in m["transitions"] if t["live"]]
        return [(t["session_id"], t["to"]) for t in told]

    def shows(self, wanted: dict[str, str]) -> None:
        """Wait until it publishes exactly these statuses."""

        def same() -> bool:
            assert wanted == self.shown, self.notes
            return True

        eventually(same)

    def is_stale(self, sid: str) -> bool:
        """Return whether a session's machine cannot be reached, as far as it publishes."""
        return "stale" in self.sessions.get(sid, {}).get("markers", ())

    def says(self, text: str) -> None:
        """Wait for a note in its health."""

        def found() -> bool:
            assert self.process.poll() is None, "the host has ended"
            assert text in self.note
            return True

        eventually(found)

    def is_up(self) -> RecordedHost:
        """Wait for its first message."""
        eventually(lambda: self.messages, "the first message")
        return self

    def kill(self, number: int = signal.SIGKILL) -> None:
        self.process.send_signal(number)
        self.process.wait(PATIENCE)


Make = Callable[..., SharedBoard]


@pytest.fixture
def spool(home: Home) -> Spool:
    """Return the spool of this home."""
    return made(home.bellboard)


@pytest.fixture
def make(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """make(**how) → a shared board on the same home; `how` goes to its store."""
    monkeypatch.setattr(turn, "SLICE", 60.0)  # a step folds all files, however slow the machine
    spool = made(tmp_path / "home")
    boards: list[SharedBoard] = []

    def one(spool: Spool = spool, **how: Any) -> SharedBoard:
        boards.append(SharedBoard(spool, Store(spool.home, **how), watching=True))
        if len(boards) == 1:
            watched_since(boards[0], clock())
        return boards[-1]

    yield one
    for shared in boards:
        shared.store.close()


def watched_since(shared: SharedBoard, t: float) -> None:
    with shared.store.transaction() as tx:
        tx.set_option("watched_since", t, 1, t)


def emit(shared: SharedBoard, clock: Clock, event: str, session: str = "s", **fields: Any) -> str:
    """Write an event with the current time."""
    return put(shared.spool, event, session, clock(), **fields)


def work(shared: SharedBoard, clock: Clock) -> None:
    emit(shared, clock, "UserPromptSubmit")
    shared.turn(clock())


@pytest.fixture
def start(home: Home) -> Iterator[Callable[..., RecordedHost]]:
    """start(name, **how) → a running host that records what it publishes."""
    started: list[RecordedHost] = []

    def one(name: str = "host", **how: Any) -> RecordedHost:
        started.append(RecordedHost(home, name, **how))
        return started[-1].is_up()

    yield one
    for host in started:
        host.kill()


@pytest.fixture
def mount(home: Home) -> Iterator[Mounts]:
    """mount(*arguments, at=…): mount something for this test; needs root."""
    made = Mounts()
    yield made
    made.close()


@pytest.fixture
def dev(home: Home) -> FarFeed:
    """A machine called dev, with one session at work, that is to be followed."""
    feed = FarFeed(home.root / "dev")
    feed.moved("s1", "working")
    feed.say(feed.hello(), feed.state())
    made(home.bellboard)
    set_followed(home.bellboard, {"dev": feed.command})
    return feed


@contextlib.contextmanager
def running(link: Link) -> Iterator[None]:
    """Let a link run, and end it."""
    try:
        yield
    finally:
        link.stop()
        link.join(5)
