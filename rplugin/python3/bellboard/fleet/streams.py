"""The three streams of a team on the server, each bounded by age and size, and how to read them.

The server repeats each message that it stores (`republish`), so all that others see was sent under
a subject that its member may use.  Nobody can have the server deliver a message elsewhere, as no
member makes consumers.  Replies come to us alone, wherever a member wants them; see `permits.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from .nats_wire import (
    NO_STREAM,
    NOBODY,
    PATIENCE,
    Down,
    NatsMessage,
    NatsWire,
    NotPermitted,
    ServerRefused,
)
from .subjects import Subjects

TTL: Final = 900.0  # seconds that a row stays after its machine has stopped writing it
CLAIMED: Final = 2 * 86400.0  # seconds that a claim stays: longer than anything is escalated
PASSING: Final = 2.0  # seconds that a message stays that is only passed on
SAME_CLAIM: Final = 600.0  # seconds in which the server recognizes a claim by its id
LARGEST_ROW: Final = 16 << 10  # bytes of a row
HEADERS: Final = 1 << 10  # bytes of a row's headers
MOST_ROWS: Final = 256 << 20  # bytes of all rows: 10,000 take 8 MB
MOST_CLAIMS: Final = 16 << 20
MOST_PASSING: Final = 16 << 20

NANO: Final = 1_000_000_000


def streams(s: Subjects) -> list[dict[str, Any]]:
    """Return the settings of a team's streams."""
    seen = {"republish": {"src": s.said, "dest": s.seen(s.said)}}
    latest = {"max_msgs_per_subject": 1, "discard": "new", "max_msg_size": LARGEST_ROW + HEADERS}
    passing = [
        *(s.moved_of(), s.ask("*", "*", "*"), s.reply("*", "*"), s.all_screens, s.tick("*")),
    ]
    window = {"duplicate_window": int(SAME_CLAIM * NANO)}
    passed = {"discard": "old", "duplicate_window": int(PASSING * NANO)}
    return [
        _stream(s.rows, [s.rows_of()], TTL, MOST_ROWS, {**latest, **seen, "allow_direct": True}),
        _stream(s.claims, [s.claim("*", "*")], CLAIMED, MOST_CLAIMS, {**latest, **window}),
        _stream(s.relay, passing, PASSING, MOST_PASSING, {**passed, **seen}),
    ]


async def ensure(wire: NatsWire, s: Subjects) -> bool:
    """Create missing streams; return whether any were missing; raise `Down` if that fails."""
    missing = False
    for stream in streams(s):
        try:
            await wire.info(stream["name"])
        except NotPermitted as e:
            if wire.is_walled:
                raise Down(
                    f"{wire.url} has no account for {wire.member} in team {s.team}, or was set up "
                    "by an older bellboard: whoever set up the fleet has to run "
                    "`bellboard fleet setup` again, and to restart the server"
                ) from e
        except ServerRefused as e:
            if e.code != NO_STREAM:
                raise Down(f"the server refuses {stream['name']}: {e}") from None
            missing = True
            await _create(wire, stream, s.team)
    return missing


async def has_older(wire: NatsWire, s: Subjects) -> bool:
    """Return whether machines with an older bellboard publish here, which no member sees."""
    if wire.is_walled:
        return False  # they have no account on such a server
    try:
        found = await wire.info(s.older)
    except (NotPermitted, ServerRefused):
        return False
    return bool(found["state"].get("messages"))


async def _create(wire: NatsWire, stream: dict[str, Any], team: str) -> None:
    try:
        if wire.is_walled:
            raise NotPermitted(f"{wire.member} is not the admin")
        await wire.call(f"$JS.API.STREAM.CREATE.{stream['name']}", stream)
    except NotPermitted:
        raise Down(
            f"team {team} has no streams on the server yet, and we may not create them: "
            "whoever set up the fleet has to run `bellboard fleet setup FOLDER --create URL`"
        ) from None
    except ServerRefused as e:
        raise Down(f"the server does not create {stream['name']}: {e}") from None


def _stream(
    name: str, subjects: list[str], age: float, size: int, more: dict[str, Any]
) -> dict[str, Any]:
    return {
        "name": name,
        "subjects": subjects,
        "retention": "limits",
        "storage": "file",
        "num_replicas": 1,
        "max_consumers": -1,
        "max_msgs": -1,
        "max_age": int(age * NANO),
        "max_bytes": size,
        "deny_delete": True,
        "deny_purge": True,
        "allow_rollup_hdrs": False,  # a message with such a header would delete all others
        **more,
    }


# Read the content of a stream: its subjects, then the last message of each.


BATCH: Final = 256  # most messages on their way to us


class Stored(NamedTuple):
    """A message of a stream."""

    subject: str
    data: bytes
    operation: str  # "DEL" or "PURGE" for a key that is gone
    seq: int
    t: float  # when the server stored it, by its clock; 0: just now


def stored_in(subject: str, message: NatsMessage) -> Stored | None:
    """Return the content of a message, if the server has stored it.

    The writer may have chosen any header, so the subject is never taken from headers.
    """
    headers = message.headers or {}
    seq = headers.get("Nats-Sequence", "")
    if not (seq.isascii() and seq.isdigit() and len(seq) < 20):
        return None
    t = server_seconds(headers.get("Nats-Time-Stamp", ""))
    return Stored(subject, message.data, headers.get("KV-Operation", ""), int(seq), t)


async def stored_subjects(wire: NatsWire, stream: str, which: str) -> list[str]:
    """Return the subjects in a stream that a filter matches."""
    told = await wire.info(stream, {"subjects_filter": which})
    return sorted(told["state"].get("subjects") or ())


async def last_stored(wire: NatsWire, stream: str, subject: str) -> Stored | None:
    """Return the last message of a subject."""
    return stored_in(subject, await wire.ask(wire.where(stream, subject), b""))


async def read_stored(
    wire: NatsWire, stream: str, subjects: Sequence[str], take: Callable[[Stored], None]
) -> None:
    """Call `take` with the last message of each subject; raise `NotPermitted` if one is denied."""
    if not subjects:
        return
    if (first := await last_stored(wire, stream, subjects[0])) is not None:
        take(first)
    inbox, left, over = wire.inbox(), 0, asyncio.Event()
    denied = ""

    async def receive(message: NatsMessage) -> None:
        nonlocal left, denied
        if (message.headers or {}).get("Status") == str(NOBODY):
            denied = message.subject
        else:
            number = int(message.subject.rpartition(".")[2])
            if (item := stored_in(subjects[number], message)) is not None:
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
                raise NotPermitted("not permitted")
    finally:
        with contextlib.suppress(Exception):  # the connection is closed
            await subscription.unsubscribe()


async def server_time(wire: NatsWire, s: Subjects) -> float:
    """Return the time by the server's clock, at which it stored a message of ours just now."""
    try:
        await wire.put(s.tick(wire.member), b"")
        return server_seconds(str((await wire.info(s.relay))["state"]["last_ts"]))
    except NotPermitted:
        return 0.0


def server_seconds(text: str) -> float:
    """Return a time that the server wrote: 2026-11-22T21:47:15.558378123Z."""
    try:
        return datetime.fromisoformat(f"{text[:19]}+00:00").timestamp()
    except ValueError:
        return 0.0
