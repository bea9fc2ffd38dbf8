"""Follow the other machines of a fleet: their messages become evidence.

All of this runs in the thread of the service, like a link in its own.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ..core.feed import Moved, State, cursor_of
from ..fleet.far import Gone, Lost
from ..storage import machines
from ..storage.spool import Spool
from ..system.failures import described
from .far_evidence import Follower

if TYPE_CHECKING:
    from ..fleet.far import Said

FULL: Final = 500  # events in the spool that are not folded yet; then this waits
PAUSE: Final = 0.1  # seconds until the spool is checked again
AGAIN: Final = 1.0  # seconds until a line is written again that could not be


class Mates:
    """Follows the machines that are followed in no other way."""

    def __init__(self, spool: Spool, cursors: Mapping[str, str]) -> None:
        self.linked: Collection[str] = ()  # machines that a link follows
        self._spool, self._cursors = spool, dict(cursors)
        self.followers: dict[str, Follower] = {}
        self._lost: set[str] = set()
        self._why = ""  # why something cannot be written
        self._unfit: dict[str, str] = {}  # machine → why it cannot be asked

    @property
    def why(self) -> str:
        """Return why something cannot be written, or a machine not be asked."""
        unfit = [why for machine, why in self._unfit.copy().items() if machine not in self.linked]
        return self._why or next(iter(unfit), "")

    async def take(self, said: list[tuple[str, Said]]) -> None:
        """Write messages as evidence; wait while the spool is full."""
        for machine, what in said:
            while self._is_full():
                await asyncio.sleep(PAUSE)
            while machine not in self.linked and self._fails(machine, what):
                await asyncio.sleep(AGAIN)

    def leave(self) -> None:
        """Write that no machine is followed any longer."""
        for follower in self.followers.values():
            follower.leave()

    def lost(self) -> list[str]:
        """Return the machines that cannot be followed now."""
        return sorted(self._lost.copy())

    def _fails(self, machine: str, what: Said) -> bool:
        """Write what a machine said; return whether that failed. The fold refuses duplicates."""
        try:
            self._one(machine, what)
        except (OSError, ValueError) as e:
            self._why = f"changes of {machine} cannot be written: {described(e)}"
            return True
        self._why = ""
        return False

    def _one(self, machine: str, what: Said) -> None:
        if isinstance(what, Gone):
            return self._forget(machine)
        follower = self._follower(machine)
        if isinstance(what, Lost):
            follower.lose(what.why)
            self._lost.add(follower.machine)
        elif isinstance(what, State):
            news = tuple(m for m in what.transitions if is_after(m, follower.cursor, what.cursor))
            follower.take(replace(what, transitions=news))
            self._lost.discard(follower.machine)
        else:
            follower.take(what)
        return None

    def _forget(self, machine: str) -> None:
        """Give up a machine's place; if it returns, it goes on where it was."""
        if (follower := self.followers.get(machine)) is not None:
            follower.leave()
            self._cursors[machine] = follower.cursor
            del self.followers[machine]
            self._unfit.pop(machine, None)
            self._lost.discard(machine)

    def _follower(self, machine: str) -> Follower:
        """Return who follows a machine, even if something else is in the place of its folder."""
        if machine not in self.followers or machine in self._unfit:
            try:
                machines.lend(self._spool.home, machine)
                self._unfit.pop(machine, None)
            except (FileExistsError, NotADirectoryError) as e:  # its sessions show nevertheless
                self._unfit[machine] = f"{machine} cannot be asked: {described(e)}"
        if machine not in self.followers:
            cursor = self._cursors.get(machine, "")
            self.followers[machine] = Follower(machine, self._spool.write, time.time, cursor)
        return self.followers[machine]

    def _is_full(self) -> bool:
        try:
            return len(os.listdir(self._spool.new)) > FULL  # noqa: PTH208
        except OSError:
            return False


def is_after(moved: Moved, cursor: str, now: str) -> bool:
    """Return whether a transition is new to somebody who has everything up to a cursor."""
    known, told = cursor_of(cursor), cursor_of(now)
    if known is None or told is None or known.database != told.database:
        return False
    return moved.id > known.last
