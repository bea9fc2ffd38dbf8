"""What members ask of each other: each request is carried out once, or refused with a reason."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec

from ..core.feedread import reply_of
from ..core.lenient import value_of
from ..core.replies import CHECK, refusal
from ..system.failures import described
from .subjects import Subjects, inbox
from .wire import Denied, Down, Message, Refused, Wire

MOST: Final = 16  # requests that are carried out at the same time
LARGEST: Final = 64 << 10  # bytes of a request
#: Seconds for the other machine to carry it out: an answer to a slow CLI takes 3 to find what asks,
#: 3 to be sent, and 6 until the agent goes on.
ANSWER: Final = 14.0
LOOK: Final = "request"
#: A look that also shows what the file holds that is asked about: not for members that only read.
REVIEW: Final = "review"

Reply = dict[str, Any]
#: Carries out what a member asks: who, what, with which fields.
Do = Callable[[str, str, Mapping[str, Any]], Awaitable[Reply]]


async def ask(
    wire: Wire, s: Subjects, member: str, machine: str, do: str, fields: Mapping[str, Any]
) -> Reply:
    """Ask another machine for something; the reply has `ok`, and `why` if that is false.

    What somebody asks there is shown as far as this member may see it.
    """
    if do == LOOK:
        with contextlib.suppress(Denied):
            return await _ask(wire, s, member, machine, REVIEW, fields)
    try:
        return await _ask(wire, s, member, machine, do, fields)
    except Denied:
        return refusal(f"{member} may not {do} on {machine}: ask whoever set up the fleet")


async def _ask(
    wire: Wire, s: Subjects, member: str, machine: str, do: str, fields: Mapping[str, Any]
) -> Reply:
    body = msgspec.json.encode(fields)
    if len(body) > LARGEST:
        return refusal("the request is too long")
    try:
        reply = await wire.ask(s.ask(machine, do, member), body, patience=ANSWER)
    except Refused:
        return refusal(f"{machine} does not listen: no background process there is in the fleet")
    except TimeoutError:
        return refusal(f"{machine} did not reply within {ANSWER:g} s{CHECK}")
    except Down as e:
        return refusal(f"{e}{CHECK}")
    given = value_of(reply.data)
    if not isinstance(given, dict):
        return refusal(f"the reply of {machine} cannot be read")
    return reply_of(given).fields


class Incoming:
    """Carries out what members ask of this machine."""

    def __init__(self, subjects: Subjects, do: Do) -> None:
        self._subjects, self._do = subjects, do
        self._running = 0

    async def take(self, message: Message) -> None:
        """Start what a member asks; only an inbox of theirs gets the reply."""
        do, member = self._subjects.asked(message.subject)
        if not str(message.reply or "").startswith(f"{inbox(member)}."):
            return
        if self._running >= MOST:
            await _reply(message, refusal("too many requests at the same time; try again"))
            return
        try:
            if len(message.data) > LARGEST:
                raise ValueError
            fields = msgspec.json.decode(message.data, type=dict[str, Any])
        except (ValueError, RecursionError):
            await _reply(message, refusal("the request cannot be read"))
            return
        self._running += 1
        running = asyncio.ensure_future(self._carry_out(message, member, do, fields))
        running.add_done_callback(self._carried_out)

    async def _carry_out(
        self, message: Message, member: str, do: str, fields: Mapping[str, Any]
    ) -> None:
        try:
            reply = await asyncio.wait_for(self._do(member, *_allowed(do, fields)), ANSWER - 1)
        except asyncio.TimeoutError:
            reply = refusal(f"it takes too long{CHECK}")
        except Exception as e:
            reply = refusal(described(e))
        await _reply(message, reply)

    def _carried_out(self, running: asyncio.Future[None]) -> None:
        self._running -= 1
        if not running.cancelled():
            running.exception()


def _allowed(do: str, fields: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return what to carry out: the server lets only members that may answer ask for a review."""
    return (LOOK, {**fields, "contents": do == REVIEW}) if do in (LOOK, REVIEW) else (do, fields)


async def _reply(message: Message, reply: Mapping[str, Any]) -> None:
    import nats.errors

    made = msgspec.json.encode(reply)
    with contextlib.suppress(Exception):  # the asker is gone, or the connection is
        try:
            await message.respond(made)
        except nats.errors.MaxPayloadError:
            why = f"the reply is too long for the fleet: {len(made) >> 10} kB"
            await message.respond(msgspec.json.encode(refusal(why)))
