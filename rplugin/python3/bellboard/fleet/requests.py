"""Requests between members: each is carried out once, or refused with a reason.

The subject of a request names the asker, the machine and the action, and the reply goes to a
subject made of the same names: nothing in a message says who sent it, or where the reply goes.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec

from ..core.feed import reply_of
from ..core.request import CHECK, refusal
from ..core.row import Row
from ..core.untrusted import value_of
from ..system.failures import described
from .nats_wire import WRONG_LAST, Down, NatsMessage, NatsWire, NotPermitted, ServerRefused
from .subjects import Key, MemberRequest, Subjects

MOST: Final = 16  # requests of one member that are carried out at the same time
PENDING: Final = 1024  # messages that may wait; if others send more, some are missed
LARGEST: Final = 64 << 10  # bytes of a request
#: Seconds for the other machine to carry out a request: an answer to a slow CLI takes 3 to find the
#: request, 3 to be sent, and 6 until the agent goes on.
ANSWER: Final = 14.0
LOOK: Final = "request"
#: A look that also shows the content of the file in a question: not for members that only read.
REVIEW: Final = "review"

#: What is asked for, where that is no verb.
IN_WORDS: Final = {"turn": "read replies", "diff": "see diffs"}

ReplyFields = dict[str, Any]
#: Carries out a member's request: member, action, fields.
Do = Callable[[str, str, Mapping[str, Any]], Awaitable[ReplyFields]]


class Asking:
    """Our requests to other machines, over one connection."""

    def __init__(self, wire: NatsWire, subjects: Subjects) -> None:
        self._wire, self._subjects = wire, subjects
        self._waiting: dict[tuple[str, str], asyncio.Future[bytes]] = {}

    async def listen(self) -> None:
        """Expect replies."""
        s = self._subjects
        await self._wire.subscribe(
            s.seen(s.reply("*", self._wire.member)), self._take, PENDING, True
        )

    async def ask(self, machine: str, do: str, fields: Mapping[str, Any]) -> ReplyFields:
        """Send a request; the reply has `ok`, and `why` if that is false.

        A question on that machine is shown as far as this member may see it.
        """
        if do == LOOK:
            with contextlib.suppress(NotPermitted):
                return await self._ask(machine, REVIEW, fields)
        try:
            return await self._ask(machine, do, fields)
        except NotPermitted:
            may_not = f"{self._wire.member} may not {IN_WORDS.get(do, do)}"
            return refusal(f"{may_not} on {machine}: ask whoever set up the fleet")

    async def _ask(self, machine: str, do: str, fields: Mapping[str, Any]) -> ReplyFields:
        body = msgspec.json.encode(fields)
        if len(body) > LARGEST:
            return refusal("the request is too long")
        number = secrets.token_hex(8)
        replied: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting[machine, number] = replied
        try:
            await self._wire.put(self._subjects.ask(machine, do, self._wire.member, number), body)
            given = value_of(await asyncio.wait_for(replied, ANSWER))
        except asyncio.TimeoutError:
            return refusal(f"{machine} did not reply within {ANSWER:g} s{CHECK}")
        except (Down, ServerRefused) as e:
            return refusal(f"{e}{CHECK}")
        finally:
            del self._waiting[machine, number]
        if not isinstance(given, dict):
            return refusal(f"the reply of {machine} cannot be read")
        return reply_of(given).fields

    async def _take(self, message: NatsMessage) -> None:
        waiting = self._waiting.get(self._subjects.replied(message.subject))
        if waiting is not None and not waiting.done():
            waiting.set_result(message.data)


class Incoming:
    """Carries out the requests of members to this machine."""

    def __init__(self, subjects: Subjects, machine: str, do: Do) -> None:
        self._subjects, self._machine, self._do = subjects, machine, do
        self._running: Counter[str] = Counter()  # by member

    async def listen(self, wire: NatsWire) -> None:
        """Expect requests over a connection."""

        async def take(message: NatsMessage) -> None:
            await self._take(wire, message)

        s = self._subjects
        await wire.subscribe(s.seen(s.asks_of(self._machine)), take, PENDING, True)

    async def _take(self, wire: NatsWire, message: NatsMessage) -> None:
        """Start to carry out a member's request."""
        asked = self._subjects.asked(message.subject, self._machine)
        if asked is None:
            return
        if self._running[asked.member] >= MOST:
            why = "too many requests at the same time; try again"
            await self._reply(wire, asked, refusal(why))
            return
        try:
            if len(message.data) > LARGEST:
                raise ValueError
            fields = msgspec.json.decode(message.data, type=dict[str, Any])
        except (ValueError, RecursionError):
            await self._reply(wire, asked, refusal("the request cannot be read"))
            return
        self._running[asked.member] += 1
        running = asyncio.ensure_future(self._carry_out(wire, asked, fields))
        running.add_done_callback(lambda done: self._carried_out(asked.member, done))

    async def _carry_out(
        self, wire: NatsWire, asked: MemberRequest, fields: Mapping[str, Any]
    ) -> None:
        try:
            doing = self._do(asked.member, *_allowed(asked.do, fields))
            reply = await asyncio.wait_for(doing, ANSWER - 1)
        except asyncio.TimeoutError:
            reply = refusal(f"it takes too long{CHECK}")
        except Exception as e:
            reply = refusal(described(e))
        await self._reply(wire, asked, reply)

    def _carried_out(self, member: str, running: asyncio.Future[None]) -> None:
        self._running[member] -= 1
        if not running.cancelled():
            running.exception()

    async def _reply(self, wire: NatsWire, asked: MemberRequest, reply: Mapping[str, Any]) -> None:
        made = msgspec.json.encode(reply)
        if len(made) > wire.most:
            why = f"the reply is too long for the fleet: {len(made) >> 10} kB"
            made = msgspec.json.encode(refusal(why))
        with contextlib.suppress(Down):  # the asker gets no reply
            await wire.publish(self._subjects.reply(self._machine, *asked[1:]), made)


def _allowed(do: str, fields: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return the action: the server lets only members that may answer ask for a review."""
    return (LOOK, {**fields, "contents": do == REVIEW}) if do in (LOOK, REVIEW) else (do, fields)


# Claim a notification for this machine: the team grants each notification once.
#
# A claim names the status of a session as its machine shows it, with the time by that machine's
# clock, so all machines that claim it use the same name.


CLAIM_WITHIN: Final = 3.0  # seconds for the server, while the notification waits


async def claim(
    wire: NatsWire, s: Subjects, machine: str, rows: Mapping[Key, Row], fields: Mapping[str, Any]
) -> bool:
    """Return whether a notification is granted to us; raise `Down` if nobody can say.

    A claim with the same `token` is granted again, as the first reply may have been lost.
    """
    sid = str(fields.get("session_id"))
    key = next((k for k in rows if k.session == sid), None)
    if key is None or rows[key].status != fields.get("status"):
        return False  # the session has changed since
    row = rows[key]
    what = key.agent, sid, row.status, repr(row.since), str(fields.get("effect"))
    digest = hashlib.sha256("\0".join(what).encode("utf-8", "replace")).hexdigest()[:40]
    headers = {"Nats-Expected-Last-Subject-Sequence": "0"}
    if token := fields.get("token"):
        headers["Nats-Msg-Id"] = f"{digest} {token}"
    try:
        await wire.put(s.claim(machine, digest), b"", headers, CLAIM_WITHIN)
    except ServerRefused as e:
        if e.code == WRONG_LAST:
            return False
        raise Down(f"the server refuses a claim: {e}") from None
    except NotPermitted as e:
        raise Down(str(e)) from None
    return True
