"""Which members have somebody at a screen: these notify, and machines without one stay silent.

A member with a screen says so every few seconds, to those whose sessions it follows.  The server
stores nothing of this: a machine that hears of no screen for a while, or that one has left,
notifies again.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection
from typing import Final

from ..core.feed import SILENT_AFTER
from .nats_wire import Down, NatsMessage, NatsWire, is_set
from .subjects import Subjects, screen_of

BEAT: Final = 10.0  # seconds between two reports of a screen
MOST: Final = 4096  # screens to remember
GONE: Final = b"gone"
GRACE: Final = 3.0  # seconds until that counts: another host of the same machine may take over
LOOK: Final = 1.0  # seconds between two checks for silent screens


class TeamScreens:
    """The members with a screen, as far as this machine knows; outlives a connection."""

    def __init__(self, machine: str, by: str, changed: Callable[[], object]) -> None:
        """`changed` is called when `is_followed` has changed."""
        self.is_ours = False  # whether somebody sits here
        self.is_followed = False  # whether another screen shows the sessions of this machine
        self.woken = asyncio.Event()  # set when `is_ours` has changed
        self._machine, self._by, self._changed = machine, by, changed
        self._heard: dict[tuple[str, str], float] = {}  # whose sessions it shows, who → when
        self._listens = 0.0  # until then, some members may not have reported yet

    def show(self, machine: str) -> bool:
        """Return whether another screen shows the sessions of a machine."""
        now = time.monotonic()
        heard = self._heard.items()
        return now < self._listens or any(
            of in ("", machine) and now - t < SILENT_AFTER for (of, _), t in heard
        )

    async def watch(self) -> None:
        """Notice screens that fall silent, forever, also without a connection."""
        while True:
            self._look()
            await asyncio.sleep(LOOK)

    async def run(self, wire: NatsWire, s: Subjects, member: str, of: Collection[str]) -> None:
        """Listen to the others, and say that we are here; `of`: what we follow, or `[""]`: all."""
        self._listens = self._listens or time.monotonic() + BEAT + LOOK
        filters = {s.all_screens} if "" in of else {*map(s.screens_of, ("", self._machine, *of))}
        for each in filters:
            await wire.subscribe(s.seen(each), self._take, MOST, True)
        ours, is_said = [s.screen(machine, member, self._by) for machine in of], False
        try:
            while True:
                self.woken.clear()
                if self.is_ours or is_said:
                    is_said = self.is_ours
                    await _say(wire, ours, b"" if is_said else GONE)
                await is_set(self.woken, BEAT)
        finally:
            if is_said:
                with contextlib.suppress(Down):
                    await _say(wire, ours, GONE)

    async def _take(self, message: NatsMessage) -> None:
        of, by = screen_of(message.subject)
        if by == self._by or of is None:
            return
        is_known, is_gone, now = (of, by) in self._heard, message.data == GONE, time.monotonic()
        if is_known or not (is_gone or len(self._heard) >= MOST):
            self._heard[of, by] = now - (SILENT_AFTER - GRACE) * is_gone
        self._look()

    def _look(self) -> None:
        now = time.monotonic()
        self._heard = {who: t for who, t in self._heard.items() if now - t < SILENT_AFTER}
        was, self.is_followed = self.is_followed, self.show(self._machine)
        if was != self.is_followed:
            self._changed()


async def _say(wire: NatsWire, subjects: Collection[str], what: bytes) -> None:
    for subject in subjects:
        await wire.publish(subject, what)
