"""Read what a stream holds: which subjects, then the last message of each.

The replies come to us alone, wherever a member wants them: `permits.py` says why.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from .subjects import Subjects
from .wire import NOBODY, PATIENCE, Denied, Down, Message, Wire

BATCH: Final = 256  # messages that may be on their way to us


class Item(NamedTuple):
    """A message of a stream."""

    subject: str
    data: bytes
    operation: str  # "DEL" or "PURGE" for a key that is gone
    seq: int
    t: float  # when the server stored it, by its clock; 0: just now


def item_of(subject: str, message: Message) -> Item | None:
    """Return what a message holds, if it is one that the server has stored.

    Its writer may have chosen any header, so the subject is never taken from there.
    """
    headers = message.headers or {}
    seq = headers.get("Nats-Sequence", "")
    if not (seq.isascii() and seq.isdigit() and len(seq) < 20):
        return None
    t = seconds(headers.get("Nats-Time-Stamp", ""))
    return Item(subject, message.data, headers.get("KV-Operation", ""), int(seq), t)


async def listed(wire: Wire, stream: str, which: str) -> list[str]:
    """Return the subjects in a stream that a filter matches."""
    told = await wire.info(stream, {"subjects_filter": which})
    return sorted(told["state"].get("subjects") or ())


async def last(wire: Wire, stream: str, subject: str) -> Item | None:
    """Return the last message of a subject."""
    return item_of(subject, await wire.ask(wire.where(stream, subject), b""))


async def read(
    wire: Wire, stream: str, subjects: Sequence[str], take: Callable[[Item], None]
) -> None:
    """Call `take` with the last message of each subject; raise `Denied` if we may not read one."""
    if not subjects:
        return
    if (first := await last(wire, stream, subjects[0])) is not None:
        take(first)
    inbox, left, over = wire.inbox(), 0, asyncio.Event()
    denied = ""

    async def receive(message: Message) -> None:
        nonlocal left, denied
        if (message.headers or {}).get("Status") == str(NOBODY):
            denied = message.subject
        else:
            number = int(message.subject.rpartition(".")[2])
            if (item := item_of(subjects[number], message)) is not None:
                take(item)
        left -= 1
        if not left:
            over.set()

    subscription = await wire.subscribe(f"{inbox}.*", receive, 2 * BATCH)
    try:
        for begin in range(1, len(subjects), BATCH):
            part = range(begin, min(begin + BATCH, len(subjects)))
            left = len(part)
            over.clear()
            for number in part:
                where = wire.where(stream, subjects[number])
                await wire.publish(where, b"", f"{inbox}.{number}")
            try:
                await asyncio.wait_for(over.wait(), PATIENCE)
            except asyncio.TimeoutError:
                raise Down(f"{wire.url} does not respond") from None
            if denied:
                raise Denied("not permitted")
    finally:
        with contextlib.suppress(Exception):  # the connection is closed
            await subscription.unsubscribe()


async def server_time(wire: Wire, s: Subjects) -> float:
    """Return the time by the server's clock: when it stored what we said just now."""
    try:
        await wire.put(s.tick(wire.member), b"")
        return seconds(str((await wire.info(s.relay))["state"]["last_ts"]))
    except Denied:
        return 0.0


def seconds(text: str) -> float:
    """Return a time that the server wrote: 2026-11-22T21:47:15.558378123Z."""
    try:
        return datetime.fromisoformat(f"{text[:19]}+00:00").timestamp()
    except ValueError:
        return 0.0
