"""Follow a stream: what it holds first, then each new message, in order and without gaps.

We fetch messages, so those not processed yet stay on the server: our memory is bounded however slow
we are.  After a gap, or if the server has forgotten us, `Ended` is raised.

A fetch that waits for nothing ends when everything that was there has come.  The server's count of
messages left is of no use: nats-server 2.9 miscounts when a key is written at that moment, so the
count may reach 0 too early, or never.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from .streams import NANO
from .wire import Down, Message, Wire

BATCH: Final = 256  # messages that may be on their way to us
EXPIRES: Final = 30.0  # seconds until an unused fetch ends
BEAT: Final = 5.0  # seconds in which the server says that it is still there
IDLE: Final = 0.5  # seconds in which it says that it has nothing more, while we read what is there
FORGOTTEN: Final = 60.0  # seconds after which the server forgets us


class Ended(Exception):
    """The stream can be followed no further, and has to be read from the start again."""


class Item(NamedTuple):
    """A message of a stream."""

    subject: str
    data: bytes
    operation: str  # "DEL" or "PURGE" for a key that is gone
    seq: int
    t: float  # when the server stored it, by its clock


class Tail:
    """Follows the messages of one filter.

    Calls `take` with each, and `caught_up` once, when it has taken all that were there.
    """

    def __init__(
        self,
        wire: Wire,
        stream: str,
        subject: str,
        take: Callable[[Item], None],
        caught_up: Callable[[], object],
    ) -> None:
        self._wire, self._stream, self._filter = wire, stream, subject
        self._take, self._caught_up = take, caught_up
        self._name = f"bb-{secrets.token_hex(8)}"
        self._next = 1  # the number of the next message to us
        self._open = 0  # messages that were requested and have not come
        self._is_new = False  # whether the messages that come now are newer than our start
        self._heard = 0.0
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.created = 0.0  # by the server's clock

    async def begin(self, start: dict[str, Any]) -> None:
        """Tell the server where to start."""
        config = {
            "name": self._name,
            "ack_policy": "none",
            "filter_subject": self._filter,
            "replay_policy": "instant",
            "mem_storage": True,
            "num_replicas": 1,
            "inactive_threshold": int(FORGOTTEN * NANO),
            **start,
        }
        subject = f"$JS.API.CONSUMER.CREATE.{self._stream}.{self._name}.{self._filter}"
        told = await self._wire.call(subject, {"stream_name": self._stream, "config": config})
        self.created = _seconds(str(told.get("created", "")))
        self._is_empty = not told.get("num_pending", 0)

    async def run(self) -> None:
        """Fetch until the connection breaks; raise `Ended` after a gap."""
        self._inbox = self._wire.inbox()
        subscription = await self._wire.subscribe(self._inbox, self._receive, 4 * BATCH)
        try:
            if self._is_empty:
                self._catch_up()
            self._heard = time.monotonic()
            await self._fetch()
            while not self._over.done():
                left = self._heard + 3 * BEAT - time.monotonic()
                if left <= 0:
                    raise Ended("the server has stopped sending")
                await asyncio.wait((self._over,), timeout=left)
            self._over.result()
        finally:
            if not self._over.done():
                self._over.cancel()
            with contextlib.suppress(Exception):  # the connection is closed
                await subscription.unsubscribe()

    async def _fetch(self) -> None:
        wanted = {
            "batch": BATCH,
            "expires": int(EXPIRES * NANO),
            "idle_heartbeat": int((BEAT if self._is_new else IDLE) * NANO),
            "no_wait": not self._is_new,  # it ends when there is nothing more
        }
        self._open = BATCH
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{self._name}"
        await self._wire.publish(subject, msgspec.json.encode(wanted), self._inbox)

    async def _receive(self, message: Message) -> None:
        self._heard = time.monotonic()
        try:
            if item := self._item(message):
                self._take(item)
                self._open -= 1
                if self._open > 0:
                    return
            elif (status := (message.headers or {}).get("Status", "")) in ("100", "404", "408"):
                self._catch_up()
                if status == "100":  # it has nothing more for now, and continues
                    return
            else:
                raise Ended(f"the server ended the subscription ({status})")
            await self._fetch()
        except (Ended, Down) as e:
            if not self._over.done():
                self._over.set_exception(e)

    def _catch_up(self) -> None:
        if not self._is_new:
            self._is_new = True
            self._caught_up()

    def _item(self, message: Message) -> Item | None:
        """Return what a message holds, or None for one about the fetch itself."""
        told = str(message.reply or "").split(".")
        if told[:2] != ["$JS", "ACK"] or len(told) < 9:
            return None
        # $JS.ACK.stream.consumer.delivered.seq.number.t.pending; or with a domain, and more
        seq, number, t = (int(x) for x in (told[5:8] if len(told) == 9 else told[7:10]))
        if number != self._next:
            raise Ended("messages are missing")
        self._next += 1
        operation = (message.headers or {}).get("KV-Operation", "")
        return Item(message.subject, message.data, operation, seq, t / NANO)


def _seconds(text: str) -> float:
    """Return a time that the server wrote: 2026-11-22T21:47:15.558378123Z."""
    try:
        return datetime.fromisoformat(f"{text[:19]}+00:00").timestamp()
    except ValueError:
        return 0.0
