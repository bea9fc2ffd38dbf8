"""Type an answer into the dialog of a session, key by key, in a tmux pane or a terminal of Neovim.

The dialect reads the screen and says which key is next.  Each key is typed only while the terminal
still shows the rows that it follows from, and the next one only after the rows have changed.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from msgspec.structs import replace

from ..agents.agent import Press
from ..agents.registry import agent_of
from ..core.request import OFFER, Answer, Choice, Request
from ..core.session import Run, owns_pane
from ..system.failures import Declined
from ..system.processes import is_in_front
from ..system.reach import reach, sleep
from .asked import THERE, Asked

if TYPE_CHECKING:
    from ..system import tmux

TAKES: Final = 5.0  # seconds for the CLI to show what a key did; it takes 0.05, on a busy machine 2
GLANCE: Final = 0.03
RESTS: Final = 0.25  # seconds to wait after moving to a row, before Enter; 2.1.330 needs 0.1
MOST: Final = 100  # keys of one answer
MEANWHILE: Final = "it was answered meanwhile"
STUCK: Final = "its dialog ignored the keys; go there to answer"


class Terminal(Protocol):
    """The terminal of a session. Its methods may block, and raise `Declined`."""

    def rows(self) -> Sequence[str]: ...

    def type(self, press: Press) -> bool:
        """Type a key if the terminal still shows its rows; return whether it did."""
        ...

    def is_hint(self, text: str) -> bool:
        """Return whether it shows a text faint, as CLIs show a hint in an empty input."""
        ...

    def paste(self, pieces: Sequence[str], rows: Sequence[str]) -> bool:
        """Paste texts one after the other, if the terminal still shows these rows."""
        ...


async def enter(
    terminal: Terminal,
    following: Callable[[Sequence[str]], Press],
    ours: Callable[[bool], Awaitable[bool]],
    rests: float = 0.0,
) -> None:
    """Type the keys of an answer; `following` returns the next key for what the terminal shows.

    Before each key, `ours` says whether the session still asks and we still hold the claim; its
    argument says whether a key comes next.  The first key waits until the terminal has shown its
    rows for `rests` seconds.
    """
    before, until, typed = Press(), time.monotonic() + TAKES, 0
    seen, since = before, time.monotonic()
    while typed < MOST and time.monotonic() < until:
        press = following(await reach(terminal.rows))
        if press != seen:
            seen, since = press, time.monotonic()
        is_new = time.monotonic() < since + (RESTS if typed else rests)
        if press.why and not before.rows and not is_new:
            raise Declined(press.why)
        waits = bool(press.why) or press == before or is_new
        if not await ours(not waits):
            raise Declined(MEANWHILE)
        if waits or not await reach(partial(terminal.type, press)):
            await sleep(GLANCE)  # it is not drawn yet, or is being drawn
            continue
        if press.last:
            return
        before, until, typed = press, time.monotonic() + TAKES, typed + 1
    raise Declined(following(await reach(terminal.rows)).why or STUCK)


# The terminals that keys can be typed into: a pane of tmux, a terminal buffer of a Neovim.


DEPTH: Final = 60  # rows of a terminal: more than any dialog has
GONE: Final = "its Neovim no longer has its terminal"

#: Run in a Neovim, which may have another version of this plugin.
READ: Final = "local ok, rows = pcall(require('bellboard')._rows, ...) return ok and rows or false"
TYPE: Final = "local ok, typed = pcall(require('bellboard')._type, ...) return ok and typed"
#: Names of keys → what a terminal sends for them.
SENT: Final = {
    "Down": "\x1b[B",
    "Right": "\x1b[C",
    "Tab": "\t",
    "Enter": "\r",
    "Escape": "\x1b",
    "Space": " ",
}
#: Around a text that is pasted, so that no line of it is submitted.
PASTE: Final = "\x1b[200~{}\x1b[201~"


class PaneTerminal:
    """A pane of tmux."""

    def __init__(self, socket: str, pane: str, tty: str) -> None:
        from ..system.tmux import Tmux  # it loads an event loop

        self._tmux, self._pane, self._tty = Tmux(socket), pane, tty

    def rows(self) -> Sequence[str]:
        if astray := self._proven().astray:
            raise Declined(f"its tmux pane {astray}; go there")
        return self._tmux.capture(self._pane, DEPTH)

    def read(self) -> Sequence[str]:
        """Return the rows, whether keys can be typed or not."""
        self._proven()
        return self._tmux.capture(self._pane, DEPTH)

    def _proven(self) -> tmux.Pane:
        """Return the pane, if it is the terminal of the session."""
        for pane in self._tmux.panes() or ():
            if (pane.id, pane.tty, pane.dead) == (self._pane, self._tty, False):
                return pane
        why = f"tmux pane {self._pane} is not its terminal {self._tty}"
        raise Declined(self._tmux.why or why)

    def type(self, press: Press) -> bool:
        if not _shows(self._tmux.capture(self._pane, DEPTH), press.rows):
            return False
        named = press.key in SENT
        done = (
            self._tmux.press(self._pane, press.key)
            if named
            else self._tmux.type(self._pane, press.key or press.text)
        )
        if not done:
            raise Declined(f"tmux did not take the key: {self._tmux.why}")
        return True

    def is_hint(self, text: str) -> bool:
        from ..core.colors import painted

        shown = painted(self._tmux.painted(self._pane))
        rest = text.partition("\n")[0][1:].strip()  # the cursor is on its first character
        faint = (
            shown.rows[row].encode()[start:end].decode(errors="replace")
            for row, start, end, look in shown.spans
            if shown.looks[look].get("faint")
        )
        return bool(rest) and any(piece.strip() == rest for piece in faint)

    def paste(self, pieces: Sequence[str], rows: Sequence[str]) -> bool:
        if not _shows(self._tmux.capture(self._pane, DEPTH), rows):
            return False
        if not self._tmux.paste(self._pane, pieces):
            raise Declined(f"tmux did not take the text: {self._tmux.why}")
        return True


class BufferTerminal:
    """A terminal buffer of a Neovim."""

    def __init__(self, address: str, tty: str) -> None:
        self._address, self._tty = address, tty

    def rows(self) -> Sequence[str]:
        rows = self._ask(READ, self._tty)
        if not isinstance(rows, list):
            raise Declined(GONE)
        return [str(row) for row in rows]

    def type(self, press: Press) -> bool:
        sent = press.text or SENT.get(press.key, press.key)
        return self._ask(TYPE, self._tty, list(press.rows), sent) is True

    def is_hint(self, text: str) -> bool:
        return False  # no other process sees how Neovim shows it

    def paste(self, pieces: Sequence[str], rows: Sequence[str]) -> bool:
        sent = "".join(map(PASTE.format, pieces))
        return self._ask(TYPE, self._tty, list(rows), sent) is True

    def _ask(self, code: str, *arguments: object) -> object:
        from ..system import neovim

        return neovim.ask(self._address, code, *arguments)


def terminal_of_run(run: Run) -> Terminal | None:
    """Return the terminal that keys can be typed into, if it is known."""
    if not run.tty:
        return None
    if run.nvim and not owns_pane(run):
        return BufferTerminal(run.nvim, run.tty)
    if run.pane and run.tmux.startswith("/"):
        return PaneTerminal(run.tmux, run.pane, run.tty)
    return None


def _shows(screen: Sequence[str], rows: Sequence[str]) -> bool:
    """Return whether rows are on a screen, one below the other."""
    text = "\n".join(["", *(row.rstrip() for row in screen), ""])
    return "\n".join(["", *rows, ""]) in text


# ---------------------------------------------------------------- which keys a screen takes

ANOTHER: Final = "its terminal shows another request first; answer that one, or go there"
ALIKE: Final = f"another request of this session looks the same in its terminal{THERE}"
UNTYPED: Final = "Not all can be typed: go there. With answers on, a waiting hook takes all."


def drawn_at(asked: Asked) -> float:
    """Return the earliest time at which its dialog can have been drawn.

    That is when it asked, or when the dialog before it was answered.
    """
    return max(asked.block.since, asked.run.answered)


def untypeable(asked: Asked) -> str:
    """Return why keys cannot answer it, whatever its terminal shows, or ""."""
    if asked.block.sent:  # the keys would wait for what is asked next
        return f"an earlier answer may still take effect{THERE}"
    if not is_in_front(asked.request.pid):
        return f"another program is in front of it in its terminal{THERE}"
    return ""


def pressed(screen: Sequence[str], asked: Asked, answer: Answer, near: Sequence[Asked]) -> Press:
    """Return the next key of an answer; none if the screen may show one of those `near` instead.

    A terminal wraps a command, so it does not prove its blanks; of a file it shows no more than a
    relative path.
    """
    press = agent_of(asked.session.agent).press
    key = press(screen, asked.request, answer, asked.about)
    if key.why:
        return Press(why=ANOTHER) if any(typed(screen, each) for each in near) else key

    def fits(other: Asked) -> bool:
        if other.block.request and not other.request.complete:  # a screen cannot rule it out
            return other.request.kind == asked.request.kind
        return not press(screen, other.request, answer, other.about).why

    return Press(why=ALIKE) if any(map(fits, near)) else key


def typed(screen: Sequence[str], asked: Asked, near: Sequence[Asked] = ()) -> tuple[Choice, ...]:
    """Return the choices that keys can give to what a screen shows, with what each then needs."""
    request = asked.request

    def takes(choice: Choice) -> bool:
        return not pressed(screen, asked, _sample(request, choice), near).why

    full = (c if takes(c) else replace(c, needs=c.needs.removesuffix("?")) for c in request.choices)
    return tuple(filter(takes, full))


def _sample(request: Request, choice: Choice) -> Answer:
    """Return an answer with that choice and no more than it needs."""
    first: dict[str, list[str] | str] = {}
    if choice.needs == "answers":
        first = {q.text: [o.label for o in q.options[:1]] for q in request.questions}
    return Answer(choice.id, "x" if choice.needs == "message" else "", first)


def typeable(asked: Asked, choices: Sequence[Choice], offers: Sequence[Choice]) -> Asked:
    """Return a request with only the choices that keys can give, and what else there is."""
    request, ids = asked.request, {choice.id for choice in choices}
    lost = [choice for choice in request.choices if choice.note and choice.id not in ids]
    more = [*request.more, *([UNTYPED] if lost else [])]
    return asked._replace(request=replace(request, choices=(*choices, *offers), more=tuple(more)))


def as_well(asked: Asked, shown: Asked) -> Asked:
    """Return a request with the further choices of its terminal."""
    if shown.request.digest != asked.request.digest:
        return asked
    offers = (choice for choice in shown.request.choices if choice.id.startswith(OFFER))
    choices = (*asked.request.choices, *offers)
    return asked._replace(request=replace(asked.request, choices=choices))
