"""The files that wait in the spool, and how many of them the next transaction folds.

If a transaction cannot be written although it was folded, the next ones hold half as many files
each, until a single file fails; that file goes to `spool/bad`, and the rest continues.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Collection
from functools import cached_property
from typing import TYPE_CHECKING, Final, Protocol

from ..core.board import Board
from ..core.events import Event
from ..core.ledger import Folded
from ..storage.ground import Refused
from ..storage.item import OF_THE_SYSTEM, Item
from ..storage.spool import Spool
from ..storage.store import Store

if TYPE_CHECKING:
    from .decoding import Decoder

BATCH: Final = 1000  # files in one transaction, so that other hosts need not wait long
SLICE: Final = 0.1  # seconds to read and fold in one transaction, because files may be large


class Owner(Protocol):
    """Whoever folds the files."""

    spool: Spool
    store: Store
    board: Board


class Backlog:
    """What waits in a spool, as far as it was listed."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self.names: list[str] = []  # newest first
        self.batch: list[str] = []  # the files of the current transaction, which may be to blame
        self.refused = 0  # files set aside
        self._listed = 0.0  # when
        self._unloaded: dict[str, str] = {}  # files that wait for code that cannot be loaded → why
        self._again = False  # whether to try those again
        self._most = BATCH  # files in the next transaction
        self._suspect = ""  # a file that failed alone

    @cached_property
    def _decoder(self) -> Decoder:
        try:
            from .decoding import Decoder  # a command rarely finds a file to decode
        except (MemoryError, OSError):
            raise
        except Exception as e:
            raise ImportError(f"hosting.decoding: {e}") from e
        return Decoder()

    def scan(self, arrived: Collection[str], now: float) -> None:
        """List what waits; if that is more than one transaction holds, claim to work through it."""
        if self._again:
            self._unloaded, self._again, arrived = {}, False, ()
        self._listed = now
        names = self._owner.spool.only(arrived) or self._owner.spool.scan()[::-1]
        self.names = [n for n in names if n not in self._unloaded] if self._unloaded else names
        if len(self.names) > self._most:
            self._owner.store.drain.take()

    def fold(self, folded: list[tuple[str, Folded]], now: float) -> tuple[list[str], list[str]]:
        """Fold the oldest files; return the names of all folded, and of those just folded."""
        until = time.monotonic() + SLICE
        batch = self.batch = self.names[: -self._most - 1 : -1]
        applied = self._owner.store.applied(batch)
        names: list[str] = []
        fresh: list[str] = []
        done = 0
        for name in batch:
            if name in applied:
                names.append(name)
            elif done and time.monotonic() > until:
                break
            elif (item := self._read(name)) is not None and self._fold_item(item, now, folded):
                fresh.append(name)
                names.append(name)
            done += 1
        del self.names[len(self.names) - done :]
        return names, fresh

    def events(self, item: Item, now: float) -> list[Event]:
        """Decode a file."""
        # A backlog is folded with the clock of its events, so that deadlines between them count.
        return self._decoder.events(item, max(self._owner.board.ledger.clock, min(now, item.t)))

    def oldest(self, otherwise: float) -> float:
        """Return the time of the next file, if one waits."""
        while self.names:
            with contextlib.suppress(FileNotFoundError):
                return os.lstat(self._owner.spool.new / self.names[-1]).st_mtime
            self.names.pop()  # it is gone
        return otherwise

    def reaches(self, now: float) -> float:
        """Return up to when nothing waits any more: what waits may end a later deadline.

        If the last transaction failed, this one may be without a file, for the deadlines alone.
        """
        if not self.batch:
            return now
        return min(now, self.oldest(otherwise=self._listed))  # more may have come since

    def narrow(self, error: Exception) -> str:
        """Take fewer files next time; return the one that cannot be written, once it is known.

        Raise the error if no file is to blame.
        """
        if not self.batch:
            raise error
        if len(self.batch) > 1:
            self._most = len(self.batch) // 2
        elif self.batch[0] != self._suspect:
            self._suspect, self._most = self.batch[0], 0  # a deadline may be the cause
        else:
            return self._suspect
        return ""

    def widen(self) -> bool:
        """Take more files again, after a success; return False if nothing had failed."""
        is_narrow = self._most < BATCH
        self._most = min(2 * self._most, BATCH) or 1
        return is_narrow

    @property
    def unloaded(self) -> str:
        """Return why files wait for code that cannot be loaded, or ""."""
        while self._unloaded:
            name, why = self._unloaded.popitem()
            if self._owner.spool.is_there(name):  # no other host has folded it
                self._unloaded[name] = why
                return why
        return ""

    def try_again(self) -> None:
        """Fold what waits for code, if that can be loaded now."""
        self._again = bool(self._unloaded)

    def blame(self, name: str, reason: str) -> None:
        """Set a file aside with the traceback of the error that is being handled."""
        import traceback

        self._refuse(name, reason, traceback.format_exc())

    def _refuse(self, name: str, reason: str, detail: str = "") -> None:
        self.refused += 1
        self._owner.spool.set_aside(name, reason, detail)

    def _read(self, name: str) -> Item | None:
        """Read a file; return None if it is gone, refused, or left for later."""
        try:
            return self._owner.spool.read(name)
        except Refused as why:
            self._refuse(name, str(why))
        except OSError as e:
            if e.errno in OF_THE_SYSTEM:
                raise
            self._owner.spool.leave(name)
        return None

    def _fold_item(self, item: Item, now: float, into: list[tuple[str, Folded]]) -> bool:
        """Fold the events of a file; refuse what cannot be folded; return False if it is left."""
        name = item.name
        try:
            for event in self.events(item, now):
                if event.kind == "junk":
                    self._refuse(name, "not an event", event.why)
                folded = self._owner.board.fold(event)
                into += [(name if f.event.kind == event.kind else "", f) for f in folded]
        except MemoryError:
            raise
        except (ImportError, SyntaxError, OSError) as e:
            # No event's fault: another host may be able to fold it.
            if isinstance(e, OSError) and e.errno in OF_THE_SYSTEM:
                raise
            self._unloaded[name] = str(e)
            return False
        except Exception:
            # one poisoned event must not crash-loop every Neovim
            self.blame(name, "it cannot be folded")
        return True
