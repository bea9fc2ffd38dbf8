"""`bellboard fleet run`: connects a feed of this machine, its team, and the host that started it.

    feed of this machine ── hello, state, changes, replies ──►  program  ◄── NATS ──►  the others
                         ◄── requests of members of the team ───
    host                 ◄── messages of the others, notes, replies ───
                         ── requests of this machine, and who sits here ──►

All messages are lines as in a feed (`core/feed.py`).  To the host the program is the feed of a
machine without sessions, with an `of` around each message of another machine.  The program stores
nothing: after a restart, it gets the same from the server.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from msgspec.structs import replace

from ..core.feed import (
    BEAT,
    LONGEST,
    MOST,
    Ask,
    Beat,
    FeedChange,
    FeedProblem,
    FeedState,
    HealthNotes,
    Hello,
    OfOne,
    asked,
    asking,
    encoded,
    of,
    read,
    replied,
)
from ..core.feed import Reply as Replied
from ..core.version import VERSION
from ..system.programs import Inlet, Outlet
from .member import Joined
from .nats_wire import together
from .requests import ReplyFields
from .service import Service

ASKED: Final = 256  # requests carried out at a time; `requests.py` limits each member
LOOK: Final = 1.0  # seconds between two checks of the notes
LAST: Final = 0.2  # seconds to write the last lines
NARROW: Final = "join again with --follow, --agent or --repository to choose"
#: Fields of a request that only we may set, as the member's name is proven.
OURS: Final = frozenset(("id", "do", "by", "alone"))

Pipe = tuple[int, int]  # descriptors to read from, and to write to


class Program:
    """Runs from `begin` to `close`, in an event loop."""

    def __init__(self, joined: Joined, by: str, feed: Pipe, host: Pipe) -> None:
        self.why = ""  # why the program ended, if that is a problem
        self._joined, self._by, self._feed, self._host = joined, by, feed, host
        self._hello = Hello(machine=joined.machine)
        self._alone = True  # whether nobody sits at this machine
        self._told: dict[str, str] = {}  # the notes that the host has
        self._replies: dict[int, asyncio.Future[ReplyFields]] = {}  # that our feed owes
        self._count = 0
        self._tasks: set[asyncio.Task[Any]] = set()

    def begin(self, end: Callable[[], object]) -> None:
        """Start; `end` ends the process."""
        self._end = end
        self._to_feed, self._to_host = Sender(self._feed[1]), Sender(self._host[1])
        self.service = Service(
            self._joined, self._by, self._greet, self._deliver, self._do, self._follow
        )
        self._to_host.send(encoded(Hello(VERSION, now=time.time())))
        self._to_host.send(encoded(FeedState(time.time(), "", ())))
        self._from_feed = Inlet(self._feed[0], LONGEST, MOST, self._hear)
        self._from_host = Inlet(self._host[0], LONGEST, ASKED, self._came)
        self._running = self._start(self._run())

    async def close(self) -> None:
        """Leave the team, and write the last lines."""
        self._running.cancel()
        await asyncio.wait((self._running,))
        self._to_host.finish()

    async def _run(self) -> None:
        running = (self.service.run(), self._beat(), self._report())
        await together([asyncio.ensure_future(work) for work in running])

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # ------------------------------------------------------------ our feed

    def _hear(self, raw: bytes) -> None:
        """Take a line of our feed."""
        self._from_feed.done()
        said = read(raw)
        if isinstance(said, Hello):
            self._hello = said
        elif isinstance(said, FeedState | FeedChange):
            self.service.publish(said)
        elif isinstance(said, Replied):
            reply = self._replies.get(said.id)
            if reply is not None and not reply.done():
                reply.set_result(said.fields)
        elif isinstance(said, FeedProblem):
            self.why = said.text
            self._end()

    def _greet(self) -> Hello:
        """Return the hello of this machine."""
        return replace(self._hello, now=time.time())

    async def _do(self, member: str, do: str, fields: Mapping[str, Any]) -> ReplyFields:
        """Have our feed carry out a member's request."""
        self._count += 1
        number = self._count
        reply: asyncio.Future[ReplyFields] = asyncio.get_running_loop().create_future()
        kept = {key: value for key, value in fields.items() if key not in OURS}
        kept["by"] = f"{member}, a member of the fleet"
        self._replies[number] = reply
        try:
            self._to_feed.send(asking(number, do, kept))
            return await reply
        finally:
            del self._replies[number]

    def _follow(self) -> None:
        """Tell our feed whether somebody follows it on a screen while nobody sits here."""
        self._count += 1
        is_left = self.service.is_followed and self._alone
        self._to_feed.send(asking(self._count, "clock", {"alone": not is_left}))

    # ------------------------------------------------------------ the host

    async def _deliver(self, said: list[tuple[str, OfOne]]) -> None:
        """Pass on the messages of others; return once the host has read them."""
        for machine, what in said:
            for line in of(machine, what):
                self._to_host.send(line)
        await self._to_host.sent()

    def _came(self, raw: bytes) -> None:
        """Take a line of the host."""
        self._start(self._reply(asked(raw) or Ask(0, "")))

    async def _reply(self, ask: Ask) -> None:
        machine = ask.fields.pop("machine", "") or self._joined.machine
        if ask.do == "clock" and machine == self._joined.machine:
            reply: ReplyFields = self._sit(ask.fields.get("alone") is not False)
        else:
            reply = await self.service.ask(str(machine), ask.do, ask.fields)
        self._to_host.send(replied(ask.id, reply))
        self._from_host.done()

    def _sit(self, is_alone: bool) -> ReplyFields:
        """Note whether somebody sits at this machine, to be notified."""
        if is_alone != self._alone:
            self._alone = is_alone
            self.service.show_screen(not is_alone)
            self._follow()
        return {"ok": True, "now": time.time()}

    async def _beat(self) -> None:
        """Send beats to the feed and the host, forever."""
        while True:
            self._follow()
            self._to_host.send(encoded(Beat(time.time(), "")))
            await asyncio.sleep(BEAT)

    async def _report(self) -> None:
        """Report problems to the host, forever."""
        while True:
            if (notes := notes_of(self.service)) != self._told:
                self._told = notes
                self._to_host.send(encoded(HealthNotes(notes)))
            await asyncio.sleep(LOOK)


def notes_of(service: Service) -> dict[str, str]:
    """Return the problems, for health."""
    notes = {**service.followed.notes, **service.notes}
    if beyond := service.shelf.beyond:
        notes["fleet limit"] = f"sessions of this machine beyond {MOST:,} are left out: {beyond:,}"
    if left_out := service.followed.left_out:
        counts = ", ".join(f"{n:,} {status}" for status, n in sorted(left_out.items()))
        is_calm = not service.followed.window.is_short
        which = f"{'that do not need you ' if is_calm else ''}are left off this board"
        notes["fleet sessions"] = f"{sum(left_out.values()):,} {which} ({counts}): {NARROW}"
    return notes


class Sender:
    """Writes lines in order, without waiting for their reader."""

    def __init__(self, descriptor: int) -> None:
        self._unsent = bytearray()
        self._is_sent = asyncio.Event()
        self._outlet = Outlet(descriptor, self._write)

    def send(self, line: bytes) -> None:
        self._unsent += line
        self._is_sent.clear()
        self._write()

    async def sent(self) -> None:
        """Wait until all lines were written."""
        await self._is_sent.wait()

    def finish(self) -> None:
        """Write the last lines, for a moment at most."""
        self._outlet.finish(LAST)
        self._write()
        self._outlet.finish(LAST)

    def _write(self) -> None:
        if not self._outlet.is_free:
            return
        if self._unsent:
            piece = bytes(self._unsent)
            self._unsent.clear()
            self._outlet.write(piece)
        else:
            self._is_sent.set()
