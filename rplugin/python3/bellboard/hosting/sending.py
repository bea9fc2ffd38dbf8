"""Send a prompt to a session, or interrupt it: only the one that is meant, and only where it fits.

A prompt goes to the server of the CLI, if that takes one, or as a paste into its terminal, if the
input there is empty and nothing else takes the keys.  It is submitted only if that is wanted, and
counts as taken once the session shows a new turn.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Final
from unicodedata import normalize

from ..agents.agent import Agent, Press, Prompt, Unanswered, Unclear, Unreachable
from ..agents.registry import agent_of, is_known_agent
from ..core.request import Given, Reply, Went, fault_in
from ..core.session import Session, own, status_of
from ..core.text import cut, line
from ..system import processes
from ..system.failures import Declined
from ..system.locks import Lock
from ..system.reach import Hangs, reach, sleep
from ..witnesses.proof import objection
from .answering import NOWHERE
from .asked import RequestReader
from .keyboard import GLANCE, TAKES, Terminal, terminal_of_run

if TYPE_CHECKING:
    from ..core.session import Process

LEAVES: Final = 5.0  # seconds for a text to leave its input after Enter; a busy machine takes 3
STANDS: Final = 0.3  # seconds for it to stand there before: an Enter right after is a part of it
FOLLOWS: Final = 3.0  # seconds for a turn to begin, or to end
SHOWN: Final = 60  # cells of what somebody has typed, in a message
THERE: Final = "; go there"
BETWEEN: Final = 0.3  # seconds between two presses of Esc; at once they would be another key
LOCK: Final = "send.lock"  # in the state folder: one paste at a time
BUSY: Final = frozenset({"working", "background"})
KNOWN_BY: Final = 12  # letters at either end of a text, by which it is known again in an input
MOST_PIECES: Final = 60  # a longer text is pasted at once, as the document that it is
#: The words with which CLIs show a long text instead of it; other words name a file.
PASTED: Final = ("[Pasted", "[Paste #", "[paste #")

#: Characters that nobody sees, of which CLIs warn; joiners of letters and emoji are none of them.
_INVISIBLE: Final = re.compile(
    "[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)

#: Says how a session shows what was wanted since a time; None if it does not.
Shows = Callable[[Session, float, Went | None], Reply | None]


class Sending:
    """Sends prompts to sessions, and interrupts them."""

    def __init__(self, requests: RequestReader) -> None:
        self._requests = requests

    async def send(self, given: Given, submits: Callable[[str], object]) -> Reply:
        """Put a text into the prompt of a session; `submit` it if that is true.

        `submits` is called with the id of the session before that.

        `outcome` is "kept" if it stands there, "queued" if the CLI will submit it after what it
        does now, "taken" if a turn has begun, "nothing" if none has.
        """
        text, submit = _text_of(given), given.get("submit") is True
        s, process = await self._proven(given)
        agent = agent_of(s.agent)
        if status_of(s) in BUSY and not agent.queues:
            raise Declined("it works, and takes no prompt meanwhile; send it when it rests")
        begun = time.time()
        if submit:
            submits(s.session_id)
        is_for_server = submit and not text.startswith("/")  # where that would be no command
        say = partial(agent.say, s, process.pid, text, self._requests.spool.home)
        if not is_for_server or await self._by_server(say) is None:
            await self._paste(s, process.pid, text, submit)
        if not submit:
            return {"outcome": "kept", "text": "it stands in its prompt, not submitted"}
        if text.startswith("/"):  # a command of the CLI, which may begin no turn
            return {"outcome": "taken", "text": "it took the command"}
        if status_of(s) in BUSY:  # old ones say nothing of it until it is its turn
            return {"outcome": "queued", "text": "it works; the prompt waits in its queue"}
        return await self._followed(s, begun, _prompted)

    async def interrupt(self, given: Given) -> Reply:
        """Interrupt the turn of a session, by the server of its CLI or as Esc does there."""
        s, process = await self._proven(given)
        if status_of(s) != "working":
            raise Declined("it does not work, so there is nothing to interrupt")
        begun = time.time()
        home = self._requests.spool.home
        more = await self._by_server(partial(agent_of(s.agent).interrupt, s, process.pid, home))
        if more is None:
            await self._escape(s, process.pid)
        reply = await self._followed(s, begun, _stopped)
        return {**reply, "text": f"{reply['text']}; {more}"} if more else reply

    # ------------------------------------------------------------ to whom

    async def _proven(self, given: Given) -> tuple[Session, Process]:
        """Return a session that takes keys, and its process; raise `Declined` with the reason."""
        s = self._requests.named(given)
        process = own(s)
        if process is not None and await reach(partial(_is_above_us, process.pid)):
            raise Declined("that is the session that this command was started by")
        if status_of(s) == "blocked":
            raise Declined("it asks something: answer that first")
        if process is None:
            raise Declined(f"its process is not known{THERE}")
        if not is_known_agent(s.agent):
            raise Declined(f"how {line(s.agent, 20)} takes a prompt is not known{THERE}")
        pid = process.pid
        if why := await reach(partial(objection, s, process, self._requests.environ)):
            raise Declined(why)
        if processes.is_suspended(pid):
            raise Declined(f"process {pid} is suspended: kill -CONT {pid}")
        return s, process

    async def _by_server(self, order: Callable[[], str | None]) -> str | None:
        """Give an order to the server of a CLI; return what it says, or None if there is none."""
        try:
            with closing(await self._alone()):  # of two prompts, the second has to wait its turn
                return await reach(order) or ""
        except Unreachable:
            return None
        except (Unclear, Hangs):
            return ""  # what follows shows it
        except Unanswered as why:
            raise Declined(str(why)) from None

    # ------------------------------------------------------------ into its terminal

    async def _paste(self, s: Session, pid: int, text: str, submit: bool) -> None:
        """Paste a text into the empty input of a terminal, and press Enter if it is to go."""
        terminal, agent = await self._terminal(s, pid), agent_of(s.agent)
        with closing(await self._alone()):
            prompt = await reach(partial(_empty_input, agent, terminal))
            piece = partial(agent.piece, pid, s, self._requests.environ)
            pieces = _pieces(text, await reach(piece))
            if not await reach(partial(terminal.paste, pieces, prompt.rows)):
                raise Declined(f"its terminal changed meanwhile{THERE}")
            prompt = await self._holding(agent, terminal, text)
            if not submit:
                return
            key = "Enter" if text.startswith("/") else agent.submits
            if not await reach(partial(terminal.type, Press(key, rows=prompt.rows))):
                raise Declined(f"its prompt changed meanwhile, so it was not submitted{THERE}")
            await self._gone(agent, terminal, key)

    async def _escape(self, s: Session, pid: int) -> None:
        """Press Esc in a terminal, as often as its CLI wants that, while its input is empty."""
        terminal, agent = await self._terminal(s, pid), agent_of(s.agent)
        with closing(await self._alone()):
            for n in range(agent.escapes):
                if n:
                    await sleep(BETWEEN)
                prompt = await reach(partial(_empty_input, agent, terminal))
                if not await reach(partial(terminal.type, Press("Escape", rows=prompt.rows))):
                    raise Declined(f"its terminal changed meanwhile{THERE}")

    async def _terminal(self, s: Session, pid: int) -> Terminal:
        """Return the terminal in which keys reach a session."""
        unshown = partial(agent_of(s.agent).unshown, s, pid, self._requests.spool.home)
        if why := await reach(unshown):
            raise Declined(f"{why}{THERE}")
        terminal = terminal_of_run(s)
        if terminal is None:
            raise Declined(f"{NOWHERE}{THERE}")
        if not processes.is_in_front(pid):
            raise Declined(f"another program is in front of it in its terminal{THERE}")
        return terminal

    async def _alone(self) -> Lock:
        """Take the lock of all that is put into prompts from here."""
        lock = Lock(self._requests.spool.home / LOCK)
        if not await reach(partial(lock.take, TAKES), within=2 * TAKES):
            lock.close()
            raise Declined("something else is being sent; try again")
        return lock

    async def _holding(self, agent: Agent, terminal: Terminal, text: str) -> Prompt:
        """Wait until its input shows the text, and rests; return that."""
        since = begun = time.monotonic()
        before = None
        while (now := time.monotonic()) < begun + TAKES:
            prompt = agent.prompt(await reach(terminal.rows))
            if prompt is None or prompt != before:
                since = now
            elif now > since + STANDS and _holds(prompt.text, text):
                return prompt
            before = prompt
            await sleep(GLANCE)
        shown = f"shows “{cut(line(before.text), SHOWN)}” instead" if before else "is gone"
        raise Declined(f"it was pasted, but its prompt {shown}; it was not submitted{THERE}")

    async def _gone(self, agent: Agent, terminal: Terminal, key: str) -> None:
        """Wait until a submitted text has left its input."""
        until = time.monotonic() + LEAVES
        while (prompt := agent.prompt(await reach(terminal.rows))) is not None and prompt.text:
            if time.monotonic() > until:
                raise Declined(f"its prompt still holds it after {key}{THERE}")
            await sleep(GLANCE)

    # ------------------------------------------------------------ what follows

    async def _followed(self, before: Session, since: float, shows: Shows) -> Reply:
        """Wait until a session shows what was wanted; say so, or that nothing followed."""
        look = partial(agent_of(before.agent).went_on, before.pid, before, since)
        until = time.monotonic() + FOLLOWS
        while time.monotonic() < until:
            s = self._requests.session(before.session_id)
            if s is None:
                return {"outcome": "nothing", "text": "the session has ended"}
            went = await reach(partial(look, self._requests.environ))
            if reply := shows(s, since, went):
                return reply
            await sleep(GLANCE)
        nothing = f"nothing followed within {FOLLOWS:.0f} s; go there to look"
        return {"outcome": "nothing", "text": nothing}


def _text_of(given: Given) -> str:
    """Return a text as a prompt takes it; raise `Declined` if it is none."""
    text = given.get("text")
    text = (
        text.replace("\r\n", "\n").replace("\r", "\n").strip("\n") if isinstance(text, str) else ""
    )
    if not text.strip():
        raise Declined("there is nothing to send")
    if why := fault_in(text, "the text"):
        raise Declined(why)
    if (found := _INVISIBLE.search(text)) is not None:
        raise Declined(f"the text has the invisible character U+{ord(found[0]):04X}; remove it")
    if text.lstrip().startswith("!"):
        raise Declined("it begins with “!”, which would run it as a shell command there")
    last = text.split()[-1]
    return f"{text} " if last.startswith("@") else text  # or Enter would complete that name


def _prompted(s: Session, since: float, went: Went | None) -> Reply | None:
    """Return how a session shows that a prompt came, or None."""
    has_come = s.began >= since or (went is not None and not went.rests)
    return {"outcome": "taken", "text": "it took the prompt"} if has_come else None


def _stopped(s: Session, since: float, went: Went | None) -> Reply | None:
    """Return how a session shows that it was interrupted, or None."""
    if went is not None and not went.rests:
        return {"outcome": "taken", "text": "it stopped, and goes on with the next prompt"}
    has_ended = status_of(s) != "working" or went is not None
    return {"outcome": "taken", "text": "it stopped"} if has_ended else None


def _empty_input(agent: Agent, terminal: Terminal) -> Prompt:
    """Return the empty input of a terminal; raise `Declined` if it is not empty, or not there."""
    prompt = agent.prompt(terminal.rows())
    if prompt is None:
        raise Declined(f"its terminal shows a dialog or a menu, and no prompt{THERE}")
    if prompt.text and not terminal.is_hint(prompt.text):
        raise Declined(f"its prompt holds “{cut(line(prompt.text), SHOWN)}”{THERE}")
    return prompt


def _pieces(text: str, most: int) -> Sequence[str]:
    """Return a text in the pieces in which to paste it.

    Claude Code tells the model of a paste of several lines that somebody else may have written it.
    """
    found = re.findall(rf"[^\n]{{1,{most}}}\n?|\n", text) if most else []
    return found if 0 < len(found) <= MOST_PIECES else (text,)


def _holds(shown: str, text: str) -> bool:
    """Return whether an input shows a text that was pasted, an end of it, or a word for it.

    Terminals change blanks and marks, but no letters.
    """
    letters, wanted = (re.sub(r"\W", "", normalize("NFC", part)) for part in (shown, text))
    is_start = letters.startswith(wanted[:KNOWN_BY]) or (letters and wanted.startswith(letters))
    is_end = len(letters) > KNOWN_BY and wanted.endswith(letters)
    return bool(shown) and (bool(is_start) or is_end or shown.startswith(PASTED))


def _is_above_us(pid: int) -> bool:
    """Return whether this process was started by another, or by what that started."""
    return pid in processes.ancestors(os.getpid())
