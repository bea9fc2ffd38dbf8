"""Hosts in a fleet, without the rest of a host: what they receive, and what they are asked."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from bellboard.core.feed import Beat, Change, Cursor, Hello, Moved, State
from bellboard.core.row import Row, row_of
from bellboard.fleet.far import Lost, Said
from bellboard.fleet.member import Joined
from bellboard.fleet.publisher import Update
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


class Peer:
    """One machine in a fleet.  `rows` is what a board would show of the others."""

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
        self.service = Service(
            joined, by or machine, self._hello, self._take, self._do, self._follow
        )
        self.service.start()

    def show(self, *rows: Row, removed: tuple[str, ...] = (), full: bool = False) -> None:
        self.service.publish(Update(rows, removed, full=full))

    def tell(self, *moved: Moved) -> None:
        self.service.publish(Update(moved=moved, cursor=str(Cursor("db", moved[-1].id))))

    def statuses(self, machine: str) -> dict[str, str]:
        return {sid: row.status for (name, sid), row in self.rows.items() if name == machine}

    def close(self) -> None:
        self.service.close()

    def _hello(self) -> Hello:
        return Hello(machine=self.machine, now=time.time(), agents=("claude",))

    async def _take(self, said: list[tuple[str, Said]]) -> None:
        while self.slow.is_set():
            await asyncio.sleep(0.01)
        self.batches += 1
        for machine, what in said:
            self._note(machine, what)

    def _note(self, machine: str, what: Said) -> None:
        if isinstance(what, Lost):
            self.lost[machine] = what.why
            return
        self.lost.pop(machine, None)
        if isinstance(what, Hello):
            self.hellos.append(machine)
        if isinstance(what, Beat | Hello):
            return
        self.moved += [(machine, m) for m in what.transitions]
        for row in what.sessions:
            self.rows[machine, row.session_id] = row
        if isinstance(what, Change):
            for sid in what.removed:
                self.rows.pop((machine, sid), None)
        elif isinstance(what, State):
            gone = [k for k in self.rows if k[0] == machine and k[1] not in what.all]
            for key in gone:
                del self.rows[key]

    def _follow(self) -> None:
        self.changes += 1

    async def _do(self, member: str, do: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        self.asked.append((member, do, dict(fields)))
        return self.reply
