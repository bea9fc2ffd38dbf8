"""What a session asks, as it is shown to whoever may answer it, and the ways that are open.

Each request is read again, and its process is proven again, whenever it is shown or answered.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec
from msgspec.structs import replace

from ..agents.registry import agent_of
from ..core.request import TERMINAL, Choice, Request
from ..core.session import Block, Run, Session
from ..core.text import line
from ..storage.answers import Claims
from ..storage.event_file import NAME
from ..storage.spool import Spool
from ..system.reach import sleep
from .asked import (
    ANSWERED,
    Asked,
    asked_of,
    completed,
    drawn_at,
    in_its_terminal,
    is_served,
    name_of,
    others,
    standing,
    still_asks,
    typed,
    untypeable,
    withheld,
)
from .beside import Declined, Given, Reply, beside
from .keyboard import Terminal
from .outcome import FIRST, by_whom

if TYPE_CHECKING:
    from ..storage.store import Logged

FRESH: Final = 2.0  # seconds after which a dialog has long been drawn
LOOK: Final = 0.1  # seconds between two reads of a screen that does not show the dialog yet
UNTYPED: Final = "Not all can be typed: go there. With answers on, a waiting hook takes all."
WORDS: Final = {
    "hook": "by its hook",
    "server": "by its server",
    "keys": "by keys in its terminal",
    "go": "there",
    "look": "read only",
}


class Desk(Protocol):
    """Where answers are given: a host, or a command."""

    @property
    def spool(self) -> Spool: ...

    def session(self, sid: str) -> Session | None:
        """Fold pending events, and return a session, or None if it is not listed."""
        ...

    def report(self, line: Mapping[str, Any]) -> str: ...

    def answers(self, sid: str) -> Sequence[Logged]:
        """Return the answers to a session that were logged, with what followed, oldest first."""
        ...


def named(desk: Desk, given: Given) -> Session:
    """Return the session that a request names."""
    s = desk.session(str(given.get("session_id")))
    if s is None:
        raise Declined("the session no longer exists")
    return s


class Showing:
    """Shows what sessions ask."""

    def __init__(
        self,
        desk: Desk,
        environ: Mapping[str, str],
        terminal: Callable[[Run], Terminal | None] | None,
    ) -> None:
        self._desk, self._environ = desk, environ
        self.terminal = terminal or _terminal_of
        self._claims = Claims(desk.spool.home)
        self._pipes = desk.spool.pipes

    async def request(self, given: Given) -> Reply:
        """Return what a session asks, in full, and the ways in which it can be answered.

        `digest` selects one of several requests.  Without a name, or if `shown` is true, another
        one is returned if the terminal shows only that.  With `ways` false, do not look for ways:
        it takes a while to ask a terminal.  With `contents` false, who asks may not answer.

        `takes` of the reply says which texts the best way takes, if it does not take all.
        """
        asked = await self.asked(given)
        if digest := given.get("digest"):
            asked = await self._with_digest(asked, str(digest))
        if given.get("ways") is False:
            return {"request": _facts(asked.request, given)}
        is_bound = bool(digest or _name(given)) and given.get("shown") is not True
        asked, ways = await self._ways(asked, is_bound)
        ways = ["look"] if given.get("contents") is False else ways
        shown = _facts(asked.request, given)
        shown["ways"] = [{"name": name, "words": WORDS[name]} for name in ways]
        takes = agent_of(asked.session.agent).takes() if ways[0] == "keys" else ""
        return {"request": {**shown, "way": ways[0], **({"takes": takes} if takes else {})}}

    # ------------------------------------------------------------ what is asked

    async def asked(self, given: Given) -> Asked:
        """Return the request, if it is open and its process is proven to be the session's."""
        s = named(self._desk, given)
        name = _name(given)
        found = standing(s, name)
        if found is None:
            was_shown = bool(NAME.fullmatch(name)) if name else bool(digest_in(given))
            otherwise = FIRST[TERMINAL] if was_shown else ANSWERED
            raise Declined(self._who(name, digest_in(given), otherwise, s.session_id))
        asked = await beside(partial(_read, s, *found, self._desk.spool, self._environ))
        if not await beside(partial(still_asks, asked, self._environ)):
            raise Declined(self._who(name_of(asked.request), "", FIRST[TERMINAL]))
        return asked

    async def _with_digest(self, asked: Asked, digest: str) -> Asked:
        """Return the request of its session with this digest, or else this one."""
        all_others = partial(others, asked, self._desk.spool)
        for other in await beside(all_others) if asked.request.digest != digest else ():
            found = await self._completed(other)
            if found.request.digest == digest:
                return found
        return asked

    async def _completed(self, asked: Asked) -> Asked:
        return await beside(partial(completed, asked, self._environ))

    async def in_its_terminal(self, asked: Asked) -> list[Asked]:
        """Return the other requests of its terminal."""
        return await beside(partial(in_its_terminal, asked, self._desk.spool))

    def stands(self, asked: Asked) -> bool:
        """Return whether its question is still open."""
        s = self._desk.session(asked.session.session_id)
        found = standing(s, asked.block.request) if s is not None else None
        if found is None:
            return False
        now, block = found[1], asked.block
        return (now.since, now.agent, now.tool) == (block.since, block.agent, block.tool)

    def _who(self, name: str, digest: str, otherwise: str, sid: str = "") -> str:
        """Return who has already answered a request, if that was one of us."""
        other = self._claims.claimed(name) if name else self._claims.of(digest) if digest else None
        if other:
            return f"already answered by {other.by}"
        given = [x.event for x in self._desk.answers(sid)] if sid else []
        known = [e for e in given if (e.request == name if name else digest and e.digest == digest)]
        return by_whom(known) or otherwise

    # ------------------------------------------------------------ ways

    async def _ways(self, asked: Asked, is_bound: bool) -> tuple[Asked, list[str]]:
        """Return the ways that are open for any choice, best first.

        If there is none, return another request that its terminal shows, and that one's ways,
        unless only this one is wanted.
        """
        ways = ["hook"] if self.listens(asked) else []
        with suppress(Declined):
            if await beside(partial(is_served, asked, self._desk.spool.home)):
                ways.append("server")
        terminal = self.terminal(asked.run)
        if terminal is not None:
            with suppress(Declined):
                near = await self.in_its_terminal(asked)
                given = [] if ways or is_bound else near
                some = [asked, *[await self._completed(each) for each in given]]
                shown = await self._shown(terminal, some, [asked, *near], patient=not ways)
                if shown is not None:
                    asked, ways = shown if not ways else _as_well(asked, shown), [*ways, "keys"]
        return asked, [*ways, "go"]

    async def _shown(
        self, terminal: Terminal, asked: list[Asked], near: list[Asked], patient: bool
    ) -> Asked | None:
        """Return the request whose dialog the terminal shows, with the choices that keys can give.

        `near` are all open requests of that terminal.  If `patient`, wait for a dialog that is not
        drawn yet: its hook runs first.
        """
        asked = [each for each in asked if not untypeable(each)]
        if not asked:
            return None
        first = asked[0]
        fresh = min(FRESH, drawn_at(first) + FRESH - time.time())  # the clock may have jumped
        until = time.monotonic() + (fresh if patient else 0.0)
        while True:
            screen = await beside(terminal.rows)
            for each in asked:
                rest = [other for other in near if other.block != each.block]
                if choices := typed(screen, each, rest):
                    offers = agent_of(each.session.agent).offers(screen, each.request)
                    return _typeable(each, choices, offers)
            if time.monotonic() > until or not self.stands(first):
                return None
            await sleep(LOOK)

    def listens(self, asked: Asked) -> bool:
        """Return whether the hook that reported it waits for an answer."""
        pipe = asked.block.pipe
        return bool(pipe and asked.payload) and self._pipes.is_read(pipe)


def _read(s: Session, run: Run, block: Block, spool: Spool, environ: Mapping[str, str]) -> Asked:
    """Return what a question asks, with everything that it is about.  May hang."""
    return completed(asked_of(s, run, block, spool), environ)


def _typeable(asked: Asked, choices: Sequence[Choice], offers: Sequence[str]) -> Asked:
    """Return a request with only the choices that keys can give, and what else there is."""
    request, ids = asked.request, {choice.id for choice in choices}
    lost = [choice for choice in request.choices if choice.note and choice.id not in ids]
    there = f"Its terminal offers more: {', '.join(f'“{each}”' for each in offers)}"
    more = [*request.more, *([there] if offers else []), *([UNTYPED] if lost else [])]
    return asked._replace(request=replace(request, choices=tuple(choices), more=tuple(more)))


def _as_well(asked: Asked, shown: Asked) -> Asked:
    """Return a request with what else its terminal offers."""
    is_same = shown.request.digest == asked.request.digest
    more = tuple(words for words in shown.request.more if words != UNTYPED)
    return asked._replace(request=replace(asked.request, more=more)) if is_same else asked


def _terminal_of(run: Run) -> Terminal | None:
    from .keyboard import terminal_of  # imported late: few answers are typed

    return terminal_of(run)


def _facts(request: Request, given: Given) -> dict[str, Any]:
    """Return a request as it is shown to whoever asks for it."""
    seen = withheld(request) if given.get("contents") is False else request
    facts: dict[str, Any] = msgspec.to_builtins(seen)
    return facts


def digest_in(given: Given) -> str:
    return line(str(given.get("digest") or ""), 40)


def _name(given: Given) -> str:
    """Return the name of the request that is wanted, or ""."""
    return str(given.get("request") or given.get("id") or "")
