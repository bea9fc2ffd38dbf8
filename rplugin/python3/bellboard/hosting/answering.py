"""Answer a request: exactly this one, exactly once, and observe the outcome.

Hosts do this for their editors, and the command line does it by itself.  An answer is bound to a
session, a process, a request and the digest of all that it asks; each is checked again when the
answer is given, and if anything differs, the answer is refused with a reason, which is logged.
Of several answers at the same moment, the first to claim the request counts.  An answer succeeds
once the agent goes on, not when it is sent.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec
from msgspec.structs import replace

from ..agents.dialect import Press
from ..agents.dialects import dialect_of
from ..core.detail import line
from ..core.request import (
    TERMINAL,
    Answer,
    Request,
    Sent,
    answer_of,
    check,
)
from ..core.session import Block, Run, Session
from ..storage.claims import Claim, Claims
from ..storage.item import NAME
from ..storage.spool import Spool
from .aftermath import DID, FIRST, by_whom, goes_on, whose
from .beside import Declined, Given, Reply, Unheard, beside, pause
from .keyboard import Terminal, enter
from .standing import (
    ANSWERED,
    THERE,
    Asked,
    asked_of,
    drawn_at,
    in_its_terminal,
    is_served,
    name_of,
    others,
    serve,
    standing,
    still_asks,
    typed,
    untypeable,
)
from .whole import completed, withheld

if TYPE_CHECKING:
    from ..storage.history import Logged

FRESH: Final = 2.0  # seconds after which a dialog has long been drawn
READY: Final = 0.5  # seconds until a dialog takes keys: it ignores them for the first 0.15
LOOK: Final = 0.1  # seconds between two reads of a screen that does not show the dialog yet
ANOTHER: Final = "its terminal shows another of its requests first; answer that, or go there"
WORDS: Final = {
    "hook": "by its hook",
    "server": "by its server",
    "keys": "by keys in its terminal",
    "go": "there",
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


class Late(Declined):
    """Somebody else's answer counted."""


class Answering:
    """Shows requests, and answers them."""

    def __init__(
        self,
        desk: Desk,
        by: str,
        environ: Mapping[str, str] = os.environ,
        terminal: Callable[[Run], Terminal | None] | None = None,
    ) -> None:
        self._desk, self._by, self._environ = desk, by, dict(environ)
        self._terminal = terminal or _terminal_of
        self._claims = Claims(desk.spool.home)
        self._pipes = desk.spool.pipes

    async def request(self, given: Given) -> Reply:
        """Return what a session asks, in full, and the ways in which it can be answered.

        `takes` says which texts the best way takes, if it does not take all.

        `digest` selects one of several requests.  Without a name, or if `shown` is true, another
        one is returned if the terminal shows only that.  With `ways` false, do not look for ways:
        it takes a while to ask a terminal.  With `contents` false, leave out what its file holds.
        """
        asked = await self._asked(given)
        if digest := given.get("digest"):
            asked = await self._with_digest(asked, str(digest))
        if given.get("ways") is False:
            return {"request": _facts(asked.request, given)}
        is_bound = bool(digest or _name(given)) and given.get("shown") is not True
        asked, ways = await self._ways(asked, is_bound)
        shown = _facts(asked.request, given)
        shown["ways"] = [{"name": name, "words": WORDS[name]} for name in ways]
        takes = dialect_of(asked.session.agent).takes() if ways[0] == "keys" else ""
        return {"request": {**shown, "way": ways[0], **({"takes": takes} if takes else {})}}

    async def answer(self, given: Given) -> Reply:
        """Give an answer; log it with its outcome, or why it was refused."""
        answer = answer_of({k: v for k, v in given.items() if k in Answer.__struct_fields__})
        by = line(str(given.get("by") or self._by), 80)
        choice, digest = line(answer.choice, 20) if answer else "", _digest(given)
        claim = Claim(by, time.time(), choice, os.getpid(), digest)
        try:
            return await self._answer(given, answer, claim)
        except Late:
            raise
        except (Declined, OSError) as error:
            why = str(error.strerror or error) if isinstance(error, OSError) else str(error)
            self._log(given, claim, "none", f"refused: {why}")
            raise Declined(why) from None

    async def _answer(self, given: Given, answer: Answer | None, claim: Claim) -> Reply:
        if answer is None:
            raise Declined("this bellboard does not know that form of an answer; update both")
        asked = await self._asked(given)
        given = {**given, "request": asked.request.id}  # so that it is known which one was answered
        if asked.request.digest != given.get("digest"):
            raise Declined("it no longer asks what you were shown; read it again")
        if why := check(asked.request, answer):
            raise Declined(why)
        name = name_of(asked.request)
        if other := await beside(partial(self._claims.claim, name, claim)):
            raise Declined(f"already answered by {other.by}")
        try:
            if not self._stands(asked):
                raise Declined(FIRST[TERMINAL])
            begun = time.time()
            way = await self._send(given, asked, answer, claim)
            return await self._outcome(given, asked, claim, way, Sent(answer, begun, way == "hook"))
        except BaseException:
            with suppress(OSError, Declined):  # then nobody can answer for a few seconds
                await beside(partial(self._claims.release, name, claim))
            raise

    # ------------------------------------------------------------ what is asked

    async def _asked(self, given: Given) -> Asked:
        """Return the request, if it is open and its process is proven to be the session's."""
        s = named(self._desk, given)
        name = _name(given)
        found = standing(s, name)
        if found is None:
            was_shown = bool(NAME.fullmatch(name)) if name else bool(_digest(given))
            otherwise = FIRST[TERMINAL] if was_shown else ANSWERED
            raise Declined(self._who(name, _digest(given), otherwise, s.session_id))
        asked = await beside(partial(_read, s, *found, self._desk.spool, self._environ))
        if not await beside(partial(still_asks, asked, self._environ)):
            raise Declined(self._who(name_of(asked.request), "", FIRST[TERMINAL]))
        return asked

    async def _with_digest(self, asked: Asked, digest: str) -> Asked:
        """Return the request of its session that has a digest; without one, this one."""
        all_others = partial(others, asked, self._desk.spool)
        for other in await beside(all_others) if asked.request.digest != digest else ():
            found = await self._completed(other)
            if found.request.digest == digest:
                return found
        return asked

    async def _completed(self, asked: Asked) -> Asked:
        return await beside(partial(completed, asked, self._environ))

    async def _in_its_terminal(self, asked: Asked) -> list[Asked]:
        return await beside(partial(in_its_terminal, asked, self._desk.spool))

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
        ways = ["hook"] if self._listens(asked) else []
        with suppress(Declined):
            if await beside(partial(is_served, asked, self._desk.spool.home)):
                ways.append("server")
        terminal = self._terminal(asked.run)
        if terminal is not None:
            with suppress(Declined):
                given = [] if ways or is_bound else await self._in_its_terminal(asked)
                some = [await self._completed(each) for each in given]
                shown = await self._shown(terminal, [asked, *some], patient=not ways)
                if shown is not None:
                    asked, ways = asked if ways else shown, [*ways, "keys"]
        return asked, [*ways, "go"]

    async def _shown(self, terminal: Terminal, asked: list[Asked], patient: bool) -> Asked | None:
        """Return the request that keys can answer, with the choices that they can give.

        A dialog may be drawn a moment after its hook.
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
                if choices := typed(screen, each):
                    return each._replace(request=replace(each.request, choices=choices))
            if time.monotonic() > until or not self._stands(first):
                return None
            await pause(LOOK)

    def _listens(self, asked: Asked) -> bool:
        pipe = asked.block.pipe
        return bool(pipe and asked.payload) and self._pipes.is_read(pipe)

    async def _send(self, given: Given, asked: Asked, answer: Answer, claim: Claim) -> str:
        """Send an answer in the best way that takes it; return that way."""
        agent, home = asked.session.agent, self._desk.spool.home
        reply = dialect_of(agent).reply(asked.payload, answer) if asked.payload else b""
        if reply and b"\n" not in reply and self._listens(asked):
            self._log(given, claim, "hook", pid=asked.run.pid)
            if await beside(partial(self._pipes.send, asked.block.pipe, reply)):
                return "hook"
        served = bool(reply) and await beside(partial(is_served, asked, home))
        if served:
            self._log(given, claim, "server", pid=asked.run.pid)
            with suppress(Unheard):  # a slow agent may still take it, as what follows will show
                await beside(partial(serve, asked, home, reply))
            return "server"
        await self._type(given, asked, answer, claim)
        return "keys"

    async def _type(self, given: Given, asked: Asked, answer: Answer, claim: Claim) -> None:
        """Type an answer, key by key."""
        dialect, name = dialect_of(asked.session.agent), name_of(asked.request)
        terminal = self._terminal(asked.run)
        if terminal is None:
            raise Declined(f"its terminal is neither in tmux nor in a Neovim{THERE}")
        begun, is_fresh = False, time.time() < drawn_at(asked) + FRESH
        after = await self._in_its_terminal(asked)

        def following(screen: Sequence[str]) -> Press:
            if why := untypeable(asked):
                return Press(why=why)
            press = dialect.press(screen, asked.request, answer, asked.about)
            is_other = bool(press.why) and any(typed(screen, each) for each in after)
            return Press(why=ANOTHER) if is_other else press

        async def is_ours(types: bool) -> bool:
            nonlocal begun
            stands = self._stands(asked)
            if not (stands or begun):
                raise Declined(FIRST[TERMINAL])
            if types and not begun:
                begun = True
                self._log(given, claim, "keys", pid=asked.run.pid)
            return stands and await beside(partial(self._claims.renew, name, claim))

        await enter(terminal, following, is_ours, READY if is_fresh else 0.0)

    # ------------------------------------------------------------ what follows

    async def _outcome(
        self, given: Given, asked: Asked, claim: Claim, way: str, sent: Sent
    ) -> Reply:
        """Wait until the agent goes on; log whether it did and, if known, whose answer counted.

        Raise `Late` if somebody else's counted.
        """
        begun = time.monotonic()
        stands = partial(self._stands, asked)
        if (looked := await goes_on(asked, stands, self._environ)) is None:
            nothing = f"no reaction within {time.monotonic() - begun:.0f} s"
            self._log(given, claim, way, nothing)
            return {"way": way, "outcome": "nothing", "text": nothing + THERE}
        took, went = looked
        counted = await whose(asked, sent._replace(went=went), self._desk.spool.home)
        if counted in FIRST:
            self._log(given, claim, way, FIRST[counted])
            raise Late(FIRST[counted])
        text = f"{DID.get(counted, 'it went on')} after {took:.1f} s"
        self._log(given, claim, way, text)
        return {"way": way, "outcome": "taken", "text": text}

    def _stands(self, asked: Asked) -> bool:
        s = self._desk.session(asked.session.session_id)
        found = standing(s, asked.block.request) if s is not None else None
        if found is None:
            return False
        now, block = found[1], asked.block
        return (now.since, now.agent, now.tool) == (block.since, block.agent, block.tool)

    def _log(self, given: Given, claim: Claim, way: str, outcome: str = "", pid: int = 0) -> None:
        """Log an answer before it is sent, its outcome, or why it was refused."""
        facts = {
            "session_id": line(str(given.get("session_id")), 200),
            "request": line(str(given.get("request") or ""), 200),
            "digest": claim.digest,
            "choice": claim.choice or "none",
            "way": way,
            "by": claim.by,
            "outcome": line(outcome, 200),
            **({"pid": pid} if pid else {}),
        }
        with suppress(ValueError, OSError):  # the answer counts, even if it cannot be logged
            self._desk.report({"t": time.time(), "answer": facts})


def _read(s: Session, run: Run, block: Block, spool: Spool, environ: Mapping[str, str]) -> Asked:
    """Return what a question asks, with everything that it is about.  May hang."""
    return completed(asked_of(s, run, block, spool), environ)


def _terminal_of(run: Run) -> Terminal | None:
    from .terminals import terminal_of  # imported late: few answers are typed

    return terminal_of(run)


def _facts(request: Request, given: Given) -> dict[str, Any]:
    """Return a request as it is shown to whoever asks for it."""
    seen = withheld(request) if given.get("contents") is False else request
    facts: dict[str, Any] = msgspec.to_builtins(seen)
    return facts


def _digest(given: Given) -> str:
    return line(str(given.get("digest") or ""), 40)


def _name(given: Given) -> str:
    """Return the name of the request that is wanted, or ""."""
    return str(given.get("request") or given.get("id") or "")
