"""Observe what follows an answer: whether the agent goes on, and whose answer counted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from ..core.events import Event
from ..core.request import HOOK, OURS, STOPPED, TERMINAL, SentAnswer, Went
from ..system.reach import sleep
from .asked import Asked, went_on, winner
from .beside import Declined, beside

FOLLOWS: Final = 2.0  # seconds for the agent to go on
LOOKS: Final = 25  # checks to make in each second; if they take longer, wait longer
LATEST: Final = 6.0  # seconds for both, however slow
SHOWS: Final = 0.5  # seconds to show whose answer counted, unless a tool still runs; or FOLLOWS
GLANCE: Final = 0.02
#: Whose answer counted instead → how to say it.
FIRST: Final = {
    TERMINAL: "you answered in the terminal first",
    HOOK: "another hook answered first",
}
#: Other outcomes, in words.
DID: Final = {OURS: "it took this answer", STOPPED: "you stopped it in the terminal"}

T = TypeVar("T")


async def followed(
    asked: Asked,
    stands: Callable[[], bool],
    sent: SentAnswer,
    home: Path,
    environ: Mapping[str, str],
) -> tuple[float, str] | None:
    """Return after how many seconds the agent goes on, and whose answer counted, if it shows that.

    Return None if it does not go on.
    """
    latest = time.monotonic() + LATEST
    if (looked := await _goes_on(asked, stands, environ, latest)) is None:
        return None
    took, went = looked
    return took, await _whose(asked, sent._replace(went=went), home, latest)


async def _goes_on(
    asked: Asked, stands: Callable[[], bool], environ: Mapping[str, str], latest: float
) -> tuple[float, Went | None] | None:
    """Return after how many seconds the agent goes on, and how, or None if it does not."""
    look, waits = partial(went_on, asked, environ), Patience(FOLLOWS, latest)
    while True:
        took, went = waits.took, await _read(look)
        if went or not stands():
            return took, went or await _read(look)
        if waits.is_over():
            return None
        await sleep(GLANCE)


async def _whose(asked: Asked, sent: SentAnswer, home: Path, latest: float) -> str:
    """Return whose answer counted, or "" if the agent does not show it soon."""
    is_over = sent.went is not None and sent.went.rests
    look = partial(winner, asked, sent, home)
    waits = Patience(FOLLOWS if is_over else SHOWS, latest)
    while (counted := await _read(look)) is None and not waits.is_over():
        await sleep(GLANCE)
    return counted or ""


class Patience:
    """How long to look: for some seconds, or until `latest` where each look is slow."""

    def __init__(self, seconds: float, latest: float) -> None:
        self._seconds, self._latest = seconds, latest
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


async def _read(work: Callable[[], T]) -> T | None:
    """Read the outcome of an answer; one whose outcome cannot be read was sent all the same."""
    try:
        return await beside(work)
    except (Declined, OSError):
        return None


def by_whom(logged: Iterable[Event]) -> str:
    """Return in words who has answered, from the log of one request; "" if nobody has.

    An answer that was refused before its outcome was known does not count.
    """
    sent: dict[str, Event] = {}
    for e in logged:
        begun = sent.get(e.viewer)
        if e.source != "none":
            sent.pop(e.viewer, None)
            sent[e.viewer] = e
        elif begun is not None and not begun.message:
            del sent[e.viewer]
    if not sent:
        return ""
    last = [*sent.values()][-1]
    return last.message if last.message in FIRST.values() else f"already answered by {last.viewer}"
