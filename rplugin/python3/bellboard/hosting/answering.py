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
from typing import Final

from ..agents.agent import Press
from ..agents.registry import agent_of
from ..core.request import TERMINAL, Answer, SentAnswer, answer_of, check
from ..core.session import Run
from ..core.text import line
from ..storage.answers import Claim, Claims
from ..system.failures import described
from .asked import THERE, Asked, drawn_at, is_served, name_of, pressed, serve, untypeable
from .beside import Declined, Given, Reply, Unheard, beside
from .keyboard import NOWHERE, Terminal, enter
from .outcome import DID, FIRST, followed
from .showing import FRESH, Desk, Showing, digest_in

READY: Final = 0.5  # seconds until a dialog takes keys: it ignores them for the first 0.15


class Late(Declined):
    """Somebody else's answer counted."""


class Answering:
    """Shows requests, and answers them."""

    def __init__(
        self,
        desk: Desk,
        by: str,
        environ: Mapping[str, str],
        terminal: Callable[[Run], Terminal | None] | None = None,
    ) -> None:
        self._desk, self._by, self._environ = desk, by, environ
        self._showing = Showing(desk, environ, terminal)
        self.request = self._showing.request
        self._claims = Claims(desk.spool.home)
        self._pipes = desk.spool.pipes

    async def answer(self, given: Given) -> Reply:
        """Give an answer; log it with its outcome, or why it was refused."""
        answer = answer_of({k: v for k, v in given.items() if k in Answer.__struct_fields__})
        by = line(str(given.get("by") or self._by), 80)
        choice, digest = line(answer.choice, 20) if answer else "", digest_in(given)
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
            raise Declined("this bellboard cannot read that answer; update bellboard on both sides")
        asked = await self._showing.asked(given)
        given = {**given, "request": asked.request.id}  # so that it is known which one was answered
        if asked.request.digest != given.get("digest"):
            raise Declined("the request has changed since you read it; read it again")
        if why := check(asked.request, answer):
            raise Declined(why)
        name = name_of(asked.request)
        if other := await beside(partial(self._claims.claim, name, claim)):
            raise Declined(f"already answered by {other.by}")
        try:
            if not self._showing.stands(asked):
                raise Declined(FIRST[TERMINAL])
            begun = time.time()
            way = await self._send(given, asked, answer, claim)
            return await self._outcome(
                given, asked, claim, way, SentAnswer(answer, begun, way == "hook")
            )
        except BaseException:
            with suppress(OSError, Declined):  # then nobody can answer for a few seconds
                await beside(partial(self._claims.release, name, claim))
            raise
        finally:
            if written := _for_hook(asked, answer):  # what was not obeyed by now never is
                with suppress(OSError, Declined):
                    await beside(partial(self._pipes.take_back, *written))

    # ------------------------------------------------------------ what is sent

    async def _send(self, given: Given, asked: Asked, answer: Answer, claim: Claim) -> str:
        """Send an answer in the best way that takes it; return that way."""
        home, reply = self._desk.spool.home, _reply(asked, answer)
        if (written := _for_hook(asked, answer)) and self._showing.listens(asked):
            if why := self._log(given, claim, "hook", pid=asked.run.pid):
                raise Declined(f"an answer to a hook must be logged first: {why}{THERE}")
            if await beside(partial(self._pipes.send, *written)):
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
        name, terminal = name_of(asked.request), self._showing.terminal(asked.run)
        if terminal is None:
            raise Declined(f"{NOWHERE}{THERE}")
        begun, is_fresh = False, time.time() < drawn_at(asked) + FRESH
        near = await self._showing.in_its_terminal(asked)

        def following(screen: Sequence[str]) -> Press:
            why = untypeable(asked)
            return Press(why=why) if why else pressed(screen, asked, answer, near)

        async def is_ours(types: bool) -> bool:
            nonlocal begun
            stands = self._showing.stands(asked)
            if not (stands or begun):
                raise Declined(FIRST[TERMINAL])
            if types and not begun:
                begun = True
                self._log(given, claim, "keys", pid=asked.run.pid)
            return stands and await beside(partial(self._claims.renew, name, claim))

        await enter(terminal, following, is_ours, READY if is_fresh else 0.0)

    # ------------------------------------------------------------ what follows

    async def _outcome(
        self, given: Given, asked: Asked, claim: Claim, way: str, sent: SentAnswer
    ) -> Reply:
        """Wait until the agent goes on; log whether it did and, if known, whose answer counted.

        Raise `Late` if somebody else's counted.
        """
        begun = time.monotonic()
        stands = partial(self._showing.stands, asked)
        home = self._desk.spool.home
        if (found := await followed(asked, stands, sent, home, self._environ)) is None:
            nothing = f"no reaction within {time.monotonic() - begun:.0f} s"
            self._log(given, claim, way, nothing)
            return {"way": way, "outcome": "nothing", "text": nothing + THERE}
        took, counted = found
        if counted in FIRST:
            self._log(given, claim, way, FIRST[counted])
            raise Late(FIRST[counted])
        text = f"{DID.get(counted, 'it went on')} after {seconds(took)}"
        self._log(given, claim, way, text)
        return {"way": way, "outcome": "taken", "text": text}

    def _log(self, given: Given, claim: Claim, way: str, outcome: str = "", pid: int = 0) -> str:
        """Log an answer before it is sent, its outcome, or why it was refused.

        Return why that failed, or is delayed.
        """
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
        try:
            return self._desk.report({"t": time.time(), "answer": facts})
        except (ValueError, OSError) as error:
            return described(error)


def _reply(asked: Asked, answer: Answer) -> bytes:
    """Return an answer as its agent takes it from a program; empty if it takes none."""
    return agent_of(asked.session.agent).reply(asked.payload, answer) if asked.payload else b""


def _for_hook(asked: Asked, answer: Answer) -> tuple[str, str, bytes, bytes] | None:
    """Return what to write for the hook that waits; None if none does, or that takes no answer."""
    block, reply = asked.block, _reply(asked, answer)
    is_line = bool(block.pipe and reply) and b"\n" not in reply
    return (block.pipe, block.request, asked.payload, reply) if is_line else None


def seconds(took: float) -> str:
    """Return a duration in words; a reaction took some time, however short."""
    return f"{took:.1f} s" if took >= 0.05 else "less than 0.1 s"
