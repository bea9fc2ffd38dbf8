"""Members of a fleet without a feed and a host: what they receive, and what they are asked."""

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
from bellboard.fleet.member import Joined
from bellboard.fleet.service import Service
from rig import nats


def a_row(sid: str, status: str = "working", **more: Any) -> Row:
    row = row_of({"session_id": sid, "status": status, "agent": "claude", "since": 1.0, **more})
    assert row is not None
    return row


def a_move(number: int, sid: str, to: str = "blocked") -> Moved:
    return Moved(number, time.time(), sid, "working", to, "ask", "It asks.", True)


@pytest.fixture
def there(tmp_path: Path) -> Iterator[nats.Server]:
    """A server that lets anybody do anything."""
    with nats.running(tmp_path / "nats") as made:
        yield made


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
        joined = Joined(url=url, team=settings.pop("team", "t"), machine=machine, **settings)
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
