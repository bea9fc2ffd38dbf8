"""A host's part in a fleet: one thread with an event loop of its own, and one connection.

It connects again for ever, with a growing pause and jitter, and says in `notes` what is wrong.
Everything public may be called from the host's thread, and returns at once.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import hashlib
import random
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final

import msgspec

from ..core.feed import Hello
from .member import Joined, Unusable, credentials
from .publisher import AGAIN, Publisher, Shelf, Taken, Told
from .reader import Deliver, Followed, Reader, deliver, together, watch
from .streams import ensure
from .subjects import INBOX, Subjects
from .tail import Lost
from .wire import WRONG_LAST, Denied, Down, Message, Refused, Wire

FIRST: Final = 0.5  # seconds until the second try to connect
LONGEST: Final = 60.0
GRACE: Final = 8.0  # seconds without a server until that is shown: a restart takes less
ASKED: Final = 16  # requests that are carried out at the same time
LARGEST: Final = 64 << 10  # bytes of a request
ANSWER: Final = 12.0  # seconds for the other machine to carry it out

Reply = dict[str, Any]
#: Carries out what a member asks: who, what, with which fields.
Do = Callable[[str, str, Mapping[str, Any]], Awaitable[Reply]]


class Service:
    """Publishes, follows and asks for one host."""

    def __init__(
        self, joined: Joined, by: str, hello: Callable[[], Hello], deliver: Deliver, do: Do
    ) -> None:
        self.joined = joined
        self.notes: dict[str, str] = {}  # for health
        self._by, self._hello, self._deliver, self._do = by, hello, deliver, do
        self._subjects = Subjects(joined.team)
        self._loop = asyncio.new_event_loop()
        self._main: asyncio.Task[None] | None = None
        self._wire: Wire | None = None
        self._member = "anybody"
        self._running = 0
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._live, name="fleet", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()
        self._ready.wait()

    def close(self, patience: float = 2.0) -> None:
        """Disconnect, and end the thread."""
        self._call(lambda: self._main.cancel() if self._main is not None else None)
        self._thread.join(patience)

    def publish(self, told: Told) -> None:
        """Take what changed on this machine."""
        if self.joined.publishes:
            self._call(lambda: self.shelf.take(told))

    def ask(
        self, machine: str, do: str, fields: Mapping[str, Any]
    ) -> concurrent.futures.Future[Reply]:
        """Ask another machine for something; the reply has `ok`, and `why` if that is false."""
        return self._run(self._ask(machine, do, fields))

    # ------------------------------------------------------------ the thread

    def _call(self, work: Callable[[], object]) -> None:
        with contextlib.suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(work)

    def _run(self, work: Coroutine[Any, Any, Any]) -> concurrent.futures.Future[Any]:
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:
            work.close()
            raise Down("this host has left the fleet") from None

    def _live(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            with contextlib.suppress(asyncio.CancelledError):
                self._loop.run_until_complete(self._all())
        finally:
            self._ready.set()
            rest = asyncio.all_tasks(self._loop)
            for task in rest:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*rest, return_exceptions=True))
            self._loop.close()

    async def _all(self) -> None:
        self._main = asyncio.current_task()
        j = self.joined
        self.shelf = Shelf(j.machine, self._by, self._hello)
        self.followed = Followed(j.machine, j.follow)
        self._ready.set()
        parts: list[asyncio.Future[Any]] = [asyncio.ensure_future(self._stay())]
        if j.reads:
            parts.append(asyncio.ensure_future(deliver(self.followed, self._deliver)))
            parts.append(asyncio.ensure_future(watch(self.followed)))
        await together(parts)

    async def _stay(self) -> None:
        """Connect, use the connection until it breaks, and begin again."""
        tries, since = 0, 0.0
        while True:
            begun = time.monotonic()
            try:
                await self._once()
            except (Down, Lost, Refused, Unusable, ImportError) as e:
                why = _words(e)
            if time.monotonic() - begun > LONGEST:
                tries = 0
            if not since or time.monotonic() - begun > GRACE:
                since = time.time()
            self._note_down(why, since)
            tries += 1
            pause = min(FIRST * 2.0 ** min(tries - 1, 10), LONGEST)
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))

    def _note_down(self, why: str, since: float) -> None:
        at = time.strftime("%H:%M:%S", time.localtime(since))
        self.notes["fleet"] = f"down since {at}: {why}"
        if time.time() - since >= GRACE or not self.followed.machines:
            self.followed.lose(why)
        else:
            self._loop.call_later(GRACE, self._lose_still, why)

    def _lose_still(self, why: str) -> None:
        if self._wire is None:
            self.followed.lose(why)

    async def _once(self) -> None:
        """Connect, and publish and follow until that breaks; raise why."""
        creds = credentials(self.joined.creds)
        self._member = creds.member
        wire = Wire(self.joined, creds, self._deaf)
        await wire.open()
        tasks: list[asyncio.Future[Any]] = []
        try:
            await ensure(wire, self._subjects)
            if self.joined.publishes:
                asks = self._subjects.asks_of(self.joined.machine)
                await wire.subscribe(asks, self._asked, 4 * ASKED)
                tasks.append(asyncio.ensure_future(self._publish(wire)))
            if self.joined.reads:
                tasks.append(asyncio.ensure_future(self._read(wire)))
            self._wire = wire
            self.notes.pop("fleet", None)
            await together([asyncio.ensure_future(self._broken(wire)), *tasks])
        finally:
            self._wire = None
            await wire.close()

    def _deaf(self, subject: str) -> None:
        """Note that we may not listen to something: requests, as replies are permitted to all."""
        self.notes["fleet requests"] = (
            f"{self._member} may not take requests for {self.joined.machine}, so nobody can "
            f"answer from elsewhere ({subject}): ask who set up the fleet"
        )

    async def _broken(self, wire: Wire) -> None:
        raise Down(await wire.broken)

    async def _publish(self, wire: Wire) -> None:
        """Publish; while that is not possible, go on with the rest, and try again."""
        name = self.joined.machine
        while True:
            try:
                await Publisher(wire, self._subjects, self.shelf).run(
                    lambda: self.notes.pop("fleet publishing", None)
                )
            except Taken as e:
                self.notes["fleet publishing"] = str(e)
            except Denied:
                self.notes["fleet publishing"] = (
                    f"{self._member} may not publish as {name}: ask who set up the fleet, "
                    "or join again with --read-only"
                )
            except Refused as e:
                self.notes["fleet publishing"] = f"the server refuses what we publish: {e}"
            await asyncio.sleep(AGAIN * random.uniform(0.5, 1.0))

    async def _read(self, wire: Wire) -> None:
        """Follow; while that is not permitted, go on with the rest, and try again."""
        while True:
            try:
                await Reader(wire, self._subjects, self.followed).run(
                    lambda: self.notes.pop("fleet reading", None)
                )
            except Denied:
                which = ", ".join(self.joined.follow) or "all machines"
                self.notes["fleet reading"] = (
                    f"{self._member} may not read {which}: ask who set up the fleet, "
                    "or join again with --follow MACHINE"
                )
            await asyncio.sleep(AGAIN * random.uniform(0.5, 1.0))

    # ------------------------------------------------------------ requests and claims

    async def _ask(self, machine: str, do: str, fields: Mapping[str, Any]) -> Reply:
        if do == "claim":
            return await self._claimed(machine, fields)
        wire = self._wire
        if wire is None:
            return _no(self.notes.get("fleet", "the fleet is not connected yet"))
        subject = self._subjects.ask(machine, do, self._member)
        body = msgspec.json.encode(fields)
        if len(body) > LARGEST:
            return _no("the request is too long")
        try:
            reply = await wire.ask(subject, body, patience=ANSWER)
            given = msgspec.json.decode(reply.data, type=dict[str, Any])
        except Denied:
            return _no(f"{self._member} may not {do} on {machine}: ask who set up the fleet")
        except Refused:
            return _no(f"{machine} does not listen: no host runs there that has joined the fleet")
        except TimeoutError:
            return _no(f"{machine} did not reply within {ANSWER:g} s; look whether it was done")
        except Down as e:
            return _no(f"{e}; look whether it was done")
        except msgspec.MsgspecError:
            return _no(f"the reply of {machine} cannot be read")
        return given

    async def _claimed(self, machine: str, fields: Mapping[str, Any]) -> Reply:
        """Claim a notification, as a feed would, but from the team: its machine may be gone."""
        what = f"{machine} {fields.get('transition')} {fields.get('effect')}"
        try:
            return {"ok": True, "granted": await self._claim(what)}
        except Down as e:
            return _no(str(e))

    async def _claim(self, what: str) -> bool:
        wire = self._wire
        if wire is None:
            raise Down(self.notes.get("fleet", "the fleet is not connected yet"))
        digest = hashlib.sha256(what.encode("utf-8", "replace")).hexdigest()[:40]
        try:
            expected = {"Nats-Expected-Last-Subject-Sequence": "0"}
            await wire.put(self._subjects.claim(digest), self._member.encode(), expected)
        except Refused as e:
            if e.code == WRONG_LAST:
                return False
            raise Down(f"the server refuses a claim: {e}") from None
        except Denied as e:
            raise Down(str(e)) from None
        return True

    async def _asked(self, message: Message) -> None:
        """Start what a member asks; only an inbox of theirs gets the reply."""
        if not str(message.reply or "").startswith(f"{INBOX}."):
            return
        do, member = self._subjects.asked(message.subject)
        if self._running >= ASKED:
            await _reply(message, _no("too many requests at the same time; try again"))
            return
        try:
            if len(message.data) > LARGEST:
                raise ValueError
            fields = msgspec.json.decode(message.data, type=dict[str, Any])
        except (ValueError, RecursionError):
            await _reply(message, _no("the request cannot be read"))
            return
        self._running += 1
        running = asyncio.ensure_future(self._carry_out(message, member, do, fields))
        running.add_done_callback(self._carried_out)

    async def _carry_out(
        self, message: Message, member: str, do: str, fields: Mapping[str, Any]
    ) -> None:
        try:
            reply = await asyncio.wait_for(self._do(member, do, fields), ANSWER - 1)
        except asyncio.TimeoutError:
            reply = _no("it takes too long; look whether it was done")
        except Exception as e:
            reply = _no(f"internal error: {type(e).__name__}")
        await _reply(message, reply)

    def _carried_out(self, running: asyncio.Future[None]) -> None:
        self._running -= 1
        if not running.cancelled():
            running.exception()


async def _reply(message: Message, reply: Mapping[str, Any]) -> None:
    with contextlib.suppress(Exception):  # whoever asked is gone, or the connection is
        await message.respond(msgspec.json.encode(reply))


def _no(why: str) -> Reply:
    return {"ok": False, "why": why}


def _words(e: Exception) -> str:
    if isinstance(e, ImportError):
        return "nats-py is not installed here: pip install 'bellboard[fleet]'"
    return str(e)
