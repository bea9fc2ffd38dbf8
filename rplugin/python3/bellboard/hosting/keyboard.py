"""Type an answer into the dialog of a session, key by key (its terminal: `terminals.py`).

The dialect reads the screen and says which key is next.  Each key is typed only while the terminal
still shows the rows that it follows from, and the next one only after the rows have changed.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, Protocol

from ..agents.dialect import Press
from .beside import Declined, beside, sleep

TAKES: Final = 5.0  # seconds for the CLI to show what a key did; it takes 0.05, on a busy machine 2
GLANCE: Final = 0.03
RESTS: Final = 0.25  # seconds to wait after moving to a row, before Enter; 2.1.330 needs 0.1
MOST: Final = 100  # keys of one answer
MEANWHILE: Final = "it was answered meanwhile"
NOWHERE: Final = "its terminal is neither in tmux nor in a Neovim"
STUCK: Final = "its dialog ignored the keys; go there to answer"


class Terminal(Protocol):
    """The terminal of a session. Its methods may block, and raise `Declined`."""

    def rows(self) -> Sequence[str]: ...

    def type(self, press: Press) -> bool:
        """Type a key if the terminal still shows its rows; return whether it did."""
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
        press = following(await beside(terminal.rows))
        if press != seen:
            seen, since = press, time.monotonic()
        is_new = time.monotonic() < since + (RESTS if typed else rests)
        if press.why and not before.rows and not is_new:
            raise Declined(press.why)
        waits = bool(press.why) or press == before or is_new
        if not await ours(not waits):
            raise Declined(MEANWHILE)
        if waits or not await beside(partial(terminal.type, press)):
            await sleep(GLANCE)  # it is not drawn yet, or is being drawn
            continue
        if press.last:
            return
        before, until, typed = press, time.monotonic() + TAKES, typed + 1
    raise Declined(following(await beside(terminal.rows)).why or STUCK)
