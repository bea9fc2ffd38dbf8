"""Carry out the requests of a feed's reader: answer, stop, label, preview, claim a notification.

A reader may do what the user of this machine may do, as only that user can start a feed.  Still,
its requests are checked like any other input.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

from ..core.evidence import ASKABLE, MARKS
from ..core.feed import Ask
from ..core.notices import CHANNELS
from ..core.published import publish
from ..core.request import Reply
from ..core.row import count_in, id_of
from ..core.session import Session, published_status
from ..core.untrusted import LARGEST, list_of, number_of
from ..storage.feed_position import token_of
from ..storage.store import Store
from ..system.failures import Declined
from ..system.reach import reach
from .answering import NOWHERE
from .asked import RequestReader
from .connection import Connection
from .errands import Errands, in_reply
from .notify import is_published
from .preview import of_terminal

BY: Final = "another machine"
ERRANDS: Final = ("request", "answer", "send", "interrupt", "stop", "turn", "diff")
MOST_CLIENTS: Final = 200  # terminals of another machine to look for
EFFECTS: Final = frozenset(f"notice {channel}" for channel in CHANNELS if channel != "float")


class FeedRequests:
    """Carries out the requests of readers; `report` writes evidence, see `Answering`."""

    def __init__(
        self,
        connection: Connection,
        requests: RequestReader,
        report: Callable[[Mapping[str, Any]], str],
    ) -> None:
        self._connection, self._requests, self._report = connection, requests, report
        self._errands = Errands(requests, report, BY, self._agent_above)
        self._known: dict[str, Callable[[Ask], Awaitable[Reply]]] = {
            **dict.fromkeys(ERRANDS, self._errand),
            **dict.fromkeys(ASKABLE, self._evidence),
            "goto": self._goto,
            "preview": self._preview,
            "claim": self._claim,
            "clock": self._clock,
        }

    def _agent_above(self) -> str:
        """Return the agent that has started this feed, if one has, instead of ssh."""
        from ..witnesses.proof import agent_above

        shared = self._connection.shared
        return agent_above(shared.board if shared is not None else None)

    async def do(self, ask: Ask) -> Reply:
        """Carry out a request; return `ok`, and `why` if it failed."""
        return await in_reply(self._do(ask))

    async def _do(self, ask: Ask) -> Reply:
        if ask.do not in self._known:
            raise Declined(f"unknown request; known here: {', '.join(sorted(self._known))}")
        return await self._known[ask.do](ask)

    async def _errand(self, ask: Ask) -> Reply:
        sid = self._session(ask).session_id
        return await self._errands.do(ask.do, {**ask.fields, "session_id": sid})

    async def _evidence(self, ask: Ask) -> Reply:
        what = ASKABLE[ask.do]
        _, field, kind = MARKS[what]
        fields: dict[str, Any] = {"session_id": self._session(ask).session_id}
        if field:
            value = ask.fields.get(field)
            value = number_of(value) if kind is float else value
            if type(value) is not kind:
                raise Declined(f"{ask.do} needs “{field}”")
            fields[field] = value
        try:
            why = self._report({what: fields})
        except ValueError as error:
            raise Declined(f"{ask.do} failed: {error}") from None
        return {"why": f"{ask.do} is delayed: {why}"} if why else {}

    async def _preview(self, ask: Ask) -> Reply:
        shown = await reach(partial(of_terminal, publish(self._session(ask))))
        if shown is None:
            raise Declined(f"{NOWHERE} there")
        return {"rows": shown.rows}

    async def _goto(self, ask: Ask) -> Reply:
        """Show it on the terminal here that a user of another machine sits at, if there is one.

        `clients` are the ssh connections that have a terminal on that machine.
        """
        from . import jump

        s, clients = self._session(ask), list_of(ask.fields.get("clients"))
        ends = [end for end in clients[:MOST_CLIENTS] if isinstance(end, str)]
        return {"client": await reach(partial(jump.arrive_over_ssh, publish(s), ends))}

    async def _claim(self, ask: Ask) -> Reply:
        """Grant a notification once, also to this machine's own hosts, and in its fleet."""
        effect, pid, now = ask.fields.get("effect"), self._connection.pid, time.time()
        token = id_of(ask.fields.get("token"))
        if effect not in EFFECTS:
            raise Declined("claim needs “effect”, such as “notice desktop”")

        granted, ours = None, ""
        with self._connection.use() as shared:
            if shared is not None:
                number, store = _announced(ask, shared.store), shared.store
                granted = number and store.grant((number, str(effect)), token, pid, now)
                if granted and is_published(store):
                    ours = token_of(store, number, pid, now)
        if granted is None:
            raise Declined("its database is busy; try again")
        return {"granted": bool(granted) and (not ours or await self._in_fleet(ask, ours))}

    async def _in_fleet(self, ask: Ask, token: str) -> bool:
        """Return whether the fleet grants it to this machine, as it would to our own hosts.

        If it cannot be asked, nobody else can claim it.
        """
        from .other_machine import OtherMachines

        s = self._session(ask)
        status = ask.fields.get("status") or published_status(s)
        about = {"effect": ask.fields.get("effect"), "token": token}
        try:
            reply = await OtherMachines(self._connection.home).claim(s, {"status": status, **about})
        except Declined:
            return True
        return reply.get("granted") is True

    async def _clock(self, ask: Ask) -> Reply:
        return {"now": time.time()}

    def _session(self, ask: Ask) -> Session:
        return self._requests.named({"session_id": ask.session_id})


def _announced(ask: Ask, store: Store) -> int:
    """Return the transition that a notification is about; 0 if there is none.

    That is the newest one of the session, if it led to that status, or one that is named.
    """
    if number := count_in(ask.fields, "transition", LARGEST):
        return number if store.has_transition(number) else 0
    number, status = store.last_transition(ask.session_id)
    return number if status and status == ask.fields.get("status") else 0
