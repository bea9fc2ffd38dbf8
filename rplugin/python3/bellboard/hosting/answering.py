"""Answer a request: exactly this one, exactly once, and observe what follows.

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
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from ..agents.agent import Press
from ..agents.registry import agent_of
from ..core.evidence import TraceLine
from ..core.request import (
    OFFER,
    OURS,
    STOPPED,
    TERMINAL,
    Answer,
    Given,
    Reply,
    Request,
    SentAnswer,
    Went,
    answer_of,
    check,
)
from ..core.session import Run
from ..core.text import line
from ..storage.answers import Claim
from ..system.failures import Declined, described
from ..system.reach import Hangs, reach, sleep
from .asked import (
    FIRST,
    THERE,
    Asked,
    RequestReader,
    all_completed,
    answer_by_server,
    claimed_name,
    digest_in,
    how_it_went_on,
    in_its_terminal,
    is_served,
    name_in,
    winner,
    withheld,
)

if TYPE_CHECKING:
    from .keyboard import Terminal

FRESH: Final = 2.0  # seconds after which a dialog has long been drawn
LOOK: Final = 0.1  # seconds between two reads of a screen that does not show the dialog yet
READY: Final = 0.5  # seconds until a dialog takes keys: it ignores them for the first 0.15
FOLLOWS: Final = 2.0  # seconds for the agent to go on
LOOKS: Final = 25  # checks to make in each second; if they take longer, wait longer
LATEST: Final = 6.0  # seconds for both, however slow
SHOWS: Final = 0.5  # seconds to show whose answer counted, unless a tool still runs; or FOLLOWS
GLANCE: Final = 0.02
NOWHERE: Final = "its terminal is neither in tmux nor in a Neovim"
WORDS: Final = {
    "hook": "by its hook",
    "server": "by its server",
    "keys": "by keys in its terminal",
    "go": "there",
    "look": "read only",
}
#: Whose answer counted, in words; the others are in `FIRST`.
DID: Final = {OURS: "it took this answer", STOPPED: "you stopped it in the terminal"}

T = TypeVar("T")


class Late(Declined):
    """Somebody else's answer counted."""


class Answering:
    """Shows requests, and answers them.

    `report` writes evidence, and returns why that is delayed; `by` says who answers, and `agent`
    which agent has started us, in words, if one has.
    """

    def __init__(
        self,
        requests: RequestReader,
        report: Callable[[Mapping[str, Any]], str],
        by: str,
        agent: Callable[[], str] | None = None,
        terminal: Callable[[Run], Terminal | None] | None = None,
    ) -> None:
        self._requests, self._report, self._by, self._agent = requests, report, by, agent
        self._claims, self._pipes = requests.claims, requests.spool.pipes
        self._terminal = terminal or _terminal_of

    async def show(self, given: Given) -> Reply:
        """Return the request of a session in full, and the ways in which it can be answered.

        `digest` selects one of several requests.  Without a name, or if `shown` is true, another
        one is returned if the terminal shows only that.  With `ways` false, do not look for ways:
        it takes a while to ask a terminal.  With `contents` false, who asks may not answer.

        `takes` of the reply says which texts the best way takes, if it does not take all.
        """
        digest = str(given.get("digest") or "")
        asked = await self._requests.open(given, digest)
        if given.get("ways") is False:
            return {"request": _facts(asked.request, given)}
        is_bound = bool(digest or name_in(given)) and given.get("shown") is not True
        asked, ways = await self._ways(asked, is_bound)
        ways = ["look"] if given.get("contents") is False else ways
        shown = _facts(asked.request, given)
        shown["ways"] = [{"name": name, "words": WORDS[name]} for name in ways]
        takes = agent_of(asked.session.agent).takes() if ways[0] == "keys" else ""
        return {"request": {**shown, "way": ways[0], **({"takes": takes} if takes else {})}}

    async def admit(self, given: Given) -> None:
        """Refuse an answer by an agent: an agent asks because a person is to decide."""
        if self._agent is not None and (agent := await reach(self._agent)):
            why = f"only a person answers, and {agent}, has started this command (what is typed "
            why += "after ! as well); answer in Neovim or in a terminal of your own"
            self._log(given, self._claim(given), "none", f"refused: {why}")
            raise Declined(why)

    async def answer(self, given: Given) -> Reply:
        """Give an answer; log it with its outcome, or why it was refused."""
        claim = self._claim(given)
        try:
            return await self._answer(given, _answer_in(given), claim)
        except Late:
            raise
        except (Declined, OSError) as error:
            why = str(error.strerror or error) if isinstance(error, OSError) else str(error)
            self._log(given, claim, "none", f"refused: {why}")
            raise Declined(why) from None

    def _claim(self, given: Given) -> Claim:
        answer, by = _answer_in(given), line(str(given.get("by") or self._by), 80)
        choice = line(answer.choice, 20) if answer else ""
        return Claim(by, time.time(), choice, os.getpid(), digest_in(given))

    async def _answer(self, given: Given, answer: Answer | None, claim: Claim) -> Reply:
        if answer is None:
            raise Declined("this bellboard cannot read that answer; update bellboard on both sides")
        asked = await self._requests.open(given)
        given = {**given, "request": asked.request.id}  # so that it is known which one was answered
        if asked.request.digest != given.get("digest"):
            raise Declined("the request has changed since you read it; read it again")
        if why := check(asked.request, answer):
            raise Declined(why)
        name = claimed_name(asked.request)
        if other := await reach(partial(self._claims.claim, name, claim)):
            raise Declined(f"already answered by {other.by}")
        try:
            if not self._requests.stands(asked):
                raise Declined(FIRST[TERMINAL])
            begun = time.time()
            way = await self._send(given, asked, answer, claim)
            return await self._outcome(
                given, asked, claim, way, SentAnswer(answer, begun, way == "hook")
            )
        except BaseException:
            with suppress(OSError, Declined):  # then nobody can answer for a few seconds
                await reach(partial(self._claims.release, name, claim))
            raise
        finally:
            if written := _for_hook(asked, answer):  # what was not obeyed by now never is
                with suppress(OSError, Declined):
                    await reach(partial(self._pipes.take_back, *written))

    # ------------------------------------------------------------ the open ways

    async def _ways(self, asked: Asked, is_bound: bool) -> tuple[Asked, list[str]]:
        """Return the ways that are open for any choice, best first.

        If there is none, return another request that its terminal shows, and that one's ways,
        unless only this one is wanted.
        """
        ways = ["hook"] if self._listens(asked) else []
        with suppress(Declined):
            if await reach(partial(is_served, asked, self._requests.spool.home)):
                ways.append("server")
        terminal = self._terminal(asked.run)
        if terminal is not None:
            from . import keyboard

            with suppress(Declined):
                near = await reach(partial(in_its_terminal, asked, self._requests.spool))
                some = [asked]
                if not (ways or is_bound):
                    some += await reach(partial(all_completed, near, self._requests.environ))
                shown = await self._shown(terminal, some, [asked, *near], patient=not ways)
                if shown is not None:
                    asked = keyboard.as_well(asked, shown) if ways else shown
                    ways.append("keys")
        return asked, [*ways, "go"]

    async def _shown(
        self, terminal: Terminal, asked: list[Asked], near: list[Asked], patient: bool
    ) -> Asked | None:
        """Return the request whose dialog the terminal shows, with the choices that keys can give.

        `near` are all open requests of that terminal.  If `patient`, wait for a dialog that is not
        drawn yet: its hook runs first.
        """
        from . import keyboard

        asked = [each for each in asked if not keyboard.untypeable(each)]
        if not asked:
            return None
        first = asked[0]
        left = keyboard.drawn_at(first) + FRESH - time.time()
        fresh = min(FRESH, left)  # the clock may have jumped
        until = time.monotonic() + (fresh if patient else 0.0)
        while True:
            screen = await reach(terminal.rows)
            for each in asked:
                rest = [other for other in near if other.block != each.block]
                if choices := keyboard.typed(screen, each, rest):
                    offers = agent_of(each.session.agent).offers(screen, each.request)
                    return keyboard.typeable(each, choices, offers)
            if time.monotonic() > until or not self._requests.stands(first):
                return None
            await sleep(LOOK)

    def _listens(self, asked: Asked) -> bool:
        """Return whether the hook that reported it waits for an answer."""
        pipe = asked.block.pipe
        return bool(pipe and asked.payload) and self._pipes.is_read(pipe)

    # ------------------------------------------------------------ what is sent

    async def _send(self, given: Given, asked: Asked, answer: Answer, claim: Claim) -> str:
        """Send an answer in the best way that takes it; return that way."""
        home, reply = self._requests.spool.home, _reply(asked, answer)
        if (written := _for_hook(asked, answer)) and self._listens(asked):
            if why := self._log(given, claim, "hook", pid=asked.run.pid):
                raise Declined(f"an answer to a hook must be logged first: {why}{THERE}")
            if await reach(partial(self._pipes.send, *written)):
                return "hook"
        served = bool(reply) and await reach(partial(is_served, asked, home))
        if served:
            self._log(given, claim, "server", pid=asked.run.pid)
            with suppress(Hangs):  # a slow agent may still take it, as what follows will show
                await reach(partial(answer_by_server, asked, home, reply))
            return "server"
        await self._type(given, asked, answer, claim)
        return "keys"

    async def _type(self, given: Given, asked: Asked, answer: Answer, claim: Claim) -> None:
        """Type an answer, key by key."""
        name, terminal = claimed_name(asked.request), self._terminal(asked.run)
        if terminal is None:
            raise Declined(f"{NOWHERE}{THERE}")
        from . import keyboard

        begun, is_fresh = False, time.time() < keyboard.drawn_at(asked) + FRESH
        near = await reach(partial(in_its_terminal, asked, self._requests.spool))

        def following(screen: Sequence[str]) -> Press:
            why = keyboard.untypeable(asked)
            return Press(why=why) if why else keyboard.pressed(screen, asked, answer, near)

        async def is_ours(types: bool) -> bool:
            nonlocal begun
            stands = self._requests.stands(asked)
            if not (stands or begun):
                raise Declined(FIRST[TERMINAL])
            if types and not begun:
                begun = True
                self._log(given, claim, "keys", pid=asked.run.pid)
            return stands and await reach(partial(self._claims.renew, name, claim))

        await keyboard.enter(terminal, following, is_ours, READY if is_fresh else 0.0)

    # ------------------------------------------------------------ what follows

    async def _outcome(
        self, given: Given, asked: Asked, claim: Claim, way: str, sent: SentAnswer
    ) -> Reply:
        """Wait until the agent goes on; log whether it did and, if known, whose answer counted.

        Raise `Late` if somebody else's counted.
        """
        patience = Patience(FOLLOWS, begun := time.monotonic())
        if (looked := await self._goes_on(asked, patience)) is None:
            nothing = f"no reaction within {time.monotonic() - begun:.0f} s"
            self._log(given, claim, way, nothing)
            return {"way": way, "outcome": "nothing", "text": nothing + THERE}
        took, went = looked
        counted = await self._whose(asked, sent._replace(went=went), begun)
        if counted in FIRST:
            self._log(given, claim, way, FIRST[counted])
            raise Late(FIRST[counted])
        text = f"{DID.get(counted, 'it went on')} after {seconds(took)}"
        self._log(given, claim, way, text)
        return {"way": way, "outcome": "taken", "text": text}

    async def _goes_on(self, asked: Asked, patience: Patience) -> tuple[float, Went | None] | None:
        """Return after how many seconds the agent goes on, and how, or None if it does not."""
        look = partial(how_it_went_on, asked, self._requests.environ)
        while True:
            took, went = patience.took, await _seen(look)
            if went or not self._requests.stands(asked):
                return took, went or await _seen(look)
            if patience.is_over():
                return None
            await sleep(GLANCE)

    async def _whose(self, asked: Asked, sent: SentAnswer, begun: float) -> str:
        """Return whose answer counted, or "" if the agent does not show it soon."""
        is_over = sent.went is not None and sent.went.rests
        look = partial(winner, asked, sent, self._requests.spool.home)
        patience = Patience(FOLLOWS if is_over else SHOWS, begun)
        while (counted := await _seen(look)) is None and not patience.is_over():
            await sleep(GLANCE)
        return counted or ""

    def _log(self, given: Given, claim: Claim, way: str, outcome: str = "", pid: int = 0) -> str:
        """Log an answer before it is sent, its outcome, or why it was refused.

        Return why that failed, or is delayed.
        """
        said = TraceLine(
            session_id=line(str(given.get("session_id")), 200),
            pid=pid,
            request=line(str(given.get("request") or ""), 200),
            digest=claim.digest,
            choice=claim.choice or "none",
            way=way,
            by=claim.by,
            outcome=line(outcome, 200),
        )
        try:
            return self._report(said.line(time.time(), "answer"))
        except (ValueError, OSError) as error:
            return described(error)


def _answer_in(given: Given) -> Answer | None:
    return answer_of({k: v for k, v in given.items() if k in Answer.__struct_fields__})


def _terminal_of(run: Run) -> Terminal | None:
    from .keyboard import terminal_of_run  # imported late: few answers are typed

    return terminal_of_run(run)


def _facts(request: Request, given: Given) -> dict[str, Any]:
    """Return a request as it is shown to whoever asks for it."""
    seen = withheld(request) if given.get("contents") is False else request
    facts: dict[str, Any] = msgspec.to_builtins(seen)
    return facts


def _reply(asked: Asked, answer: Answer) -> bytes:
    """Return an answer as its agent takes it from a program; empty if it takes none."""
    if not asked.payload or answer.choice.startswith(OFFER):
        return b""
    return agent_of(asked.session.agent).reply(asked.payload, answer)


def _for_hook(asked: Asked, answer: Answer) -> tuple[str, str, bytes, bytes] | None:
    """Return the output for the hook that waits; None if none does, or if it takes no answer."""
    block, reply = asked.block, _reply(asked, answer)
    is_line = bool(block.pipe and reply) and b"\n" not in reply
    return (block.pipe, block.request, asked.payload, reply) if is_line else None


class Patience:
    """How long to look: for some seconds; where each look is slow, until LATEST after `begun`."""

    def __init__(self, seconds: float, begun: float) -> None:
        self._seconds, self._latest = seconds, begun + LATEST
        self._begun, self._looks = time.monotonic(), 0

    @property
    def took(self) -> float:
        return time.monotonic() - self._begun

    def is_over(self) -> bool:
        """Count a look; return whether it was the last."""
        self._looks += 1
        is_quick = self._looks >= LOOKS * self._seconds
        is_late = time.monotonic() >= self._latest
        return is_late or (is_quick and self.took >= self._seconds)


async def _seen(work: Callable[[], T]) -> T | None:
    """Read the outcome of an answer; one whose outcome cannot be read was sent all the same."""
    try:
        return await reach(work)
    except (Declined, OSError):
        return None


def seconds(took: float) -> str:
    """Return a duration in words; a reaction took some time, however short."""
    return f"{took:.1f} s" if took >= 0.05 else "less than 0.1 s"
