"""A fleet on a real NATS server, whose members have no feed and no host."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from bellboard.core.feed import (
    Beat,
    Cursor,
    FeedChange,
    FeedProblem,
    FeedState,
    Gone,
    Hello,
    Moved,
    OfOne,
)
from bellboard.core.row import Row, row_of
from bellboard.fleet.member import Joined, credentials, key_of
from bellboard.fleet.nats_wire import NatsWire
from bellboard.fleet.permits import ADMIN, Grant, server_configuration
from bellboard.fleet.service import Service
from bellboard.fleet.streams import ensure
from bellboard.fleet.subjects import Subjects
from rig.machines import nats
from rig.waiting import eventually

TEAM = "t"


def a_row(sid: str, status: str = "working", **more: Any) -> Row:
    row = row_of({"session_id": sid, "status": status, "agent": "claude", "since": 1.0, **more})
    assert row is not None
    return row


def a_move(number: int, sid: str, to: str = "blocked") -> Moved:
    return Moved(number, time.time(), sid, "working", to, "ask", "It asks.", True)


class Threaded(Service):
    """A service whose event loop runs in a thread of its own, for tests in theirs."""

    def start(self) -> None:
        """Start the thread; the service belongs to its loop."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()

    def ask(  # type: ignore[override]
        self, machine: str, do: str, fields: Mapping[str, Any]
    ) -> concurrent.futures.Future[dict[str, Any]]:
        return asyncio.run_coroutine_threadsafe(super().ask(machine, do, fields), self._loop)

    def publish(self, said: FeedState | FeedChange) -> None:
        self._call(super().publish, said)

    def show_screen(self, is_ours: bool) -> None:
        self._call(super().show_screen, is_ours)

    def close(self) -> None:
        with contextlib.suppress(RuntimeError):  # it is closed already
            self._loop.call_soon_threadsafe(self._running.cancel)
        self._thread.join(5.0)

    def _call(self, work: Callable[..., object], *args: object) -> None:
        self._loop.call_soon_threadsafe(work, *args)

    def _live(self) -> None:
        async def main() -> None:
            self._running = asyncio.ensure_future(self.run())
            await asyncio.wait((self._running,))

        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(main())
        rest = asyncio.all_tasks(self._loop)
        for task in rest:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*rest, return_exceptions=True))
        self._loop.close()


class Peer:
    """A machine in a fleet.  `rows` is what a board would show of the others."""

    def __init__(self, url: str, machine: str, by: str = "", **settings: Any) -> None:
        self.machine = machine
        self.rows: dict[tuple[str, str], Row] = {}
        self.moved: list[tuple[str, Moved]] = []
        self.hellos: list[str] = []
        self.lost: dict[str, str] = {}
        self.asked: list[tuple[str, str, dict[str, Any]]] = []
        self.batches = 0
        self.changes = 0  # of whether somebody follows it
        self.reply: dict[str, Any] = {"ok": True, "text": "done"}
        self.slow = threading.Event()  # set: it takes nothing
        joined = Joined(url=url, team=TEAM, machine=machine, **settings)
        self.service = Threaded(
            joined, by or machine, self._hello, self._take, self._do, self._follow
        )
        self.service.start()
        self.service.publish(FeedState(time.time(), "", ()))  # its feed has begun

    def show(self, *rows: Row, removed: tuple[str, ...] = (), full: bool = False) -> None:
        now = time.time()
        if full:
            self.service.publish(FeedState(now, "", tuple(row.session_id for row in rows), rows))
        else:
            self.service.publish(FeedChange(now, "", rows, removed))

    def tell(self, *moved: Moved) -> None:
        cursor = str(Cursor("db", moved[-1].id))
        self.service.publish(FeedChange(time.time(), cursor, transitions=moved))

    def statuses(self, machine: str) -> dict[str, str]:
        return {sid: row.status for (name, sid), row in self.rows.items() if name == machine}

    def close(self) -> None:
        self.service.close()

    def _hello(self) -> Hello:
        return Hello(machine=self.machine, now=time.time(), agents=("claude",))

    async def _take(self, said: list[tuple[str, OfOne]]) -> None:
        while self.slow.is_set():
            await asyncio.sleep(0.01)
        self.batches += 1
        for machine, what in said:
            self._note(machine, what)

    def _note(self, machine: str, what: OfOne) -> None:
        if isinstance(what, FeedProblem):
            self.lost[machine] = what.text
            return
        self.lost.pop(machine, None)
        if isinstance(what, Hello):
            self.hellos.append(machine)
        if isinstance(what, Beat | Hello | Gone):
            return
        self.moved += [(machine, m) for m in what.transitions]
        for row in what.sessions:
            self.rows[machine, row.session_id] = row
        if isinstance(what, FeedChange):
            for sid in what.removed:
                self.rows.pop((machine, sid), None)
        elif isinstance(what, FeedState):
            gone = [k for k in self.rows if k[0] == machine and k[1] not in what.all]
            for key in gone:
                del self.rows[key]

    def _follow(self) -> None:
        self.changes += 1

    async def _do(self, member: str, do: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        self.asked.append((member, do, dict(fields)))
        return self.reply


class Fleet:
    """A server, and the members that have joined there.  At first anybody may do anything."""

    def __init__(self, server: nats.Server, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.grants: dict[str, Grant] = {}
        self.peers: list[Peer] = []

    def admit(self, *grants: Grant) -> None:
        """Let in only these, as `bellboard fleet setup` does; the admin creates the streams."""
        admin = Grant(ADMIN, "", frozenset({ADMIN}))
        made = (g._replace(key=key_of(self.folder, g, TEAM)) for g in (*grants, admin))
        self.grants = {g.member: g for g in made}
        self.server.kill()
        self.server.accounts = self.accounts()
        self.server.start()

        async def create() -> None:
            wire = await self.wire(ADMIN)
            await ensure(wire, Subjects(TEAM))
            await wire.close()

        asyncio.run(create())

    def accounts(self, without: str = "") -> str:
        """Return what is configured about the members, but for one that is revoked."""
        left = [grant for member, grant in self.grants.items() if member != without]
        return "accounts" + server_configuration(TEAM, left, "").partition("\naccounts")[2]

    def creds(self, member: str) -> str:
        return str(self.folder / f"{member}.creds")

    async def wire(self, member: str) -> NatsWire:
        """Connect as a member that need not be a bellboard."""
        file = self.creds(member)
        joined = Joined(self.server.url, TEAM, member, file)
        wire = NatsWire(joined, credentials(file), lambda subject: None)
        await wire.open()
        return wire

    def join(
        self, machine: str, member: str = "", kind: type[Peer] = Peer, **settings: Any
    ) -> Peer:
        """Join as a machine, with the roles of that member if there are members."""
        if self.grants:
            roles = self.grants[member or machine].roles
            may = {"publishes": "publish" in roles, "reads": "read" in roles}
            settings = {"creds": self.creds(member or machine), **may, **settings}
        self.peers.append(kind(self.server.url, machine, **settings))
        return self.peers[-1]

    def close(self) -> None:
        for peer in self.peers:
            peer.close()


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """A fleet on a server of its own; everybody leaves at the end."""
    with nats.running(tmp_path / "nats") as server:
        made = Fleet(server, tmp_path)
        yield made
        made.close()


@pytest.fixture
def there(fleet: Fleet) -> nats.Server:
    return fleet.server


def sees(peer: Peer, machine: str, statuses: dict[str, str]) -> None:
    """Wait until it sees exactly these."""

    def same() -> bool:
        assert statuses == peer.statuses(machine), (peer.service.notes, peer.lost)
        return True

    eventually(same)
