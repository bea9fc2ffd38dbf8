"""The events that asked, in answers/ (`answers.py`) while their question is open."""

# ruff: noqa: PTH104, PTH108
# Paths are strings here, as in spool.py.

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Collection, Iterable
from typing import Final

from .answers import CLAIM
from .contents import is_event
from .ground import briefly, listing
from .item import NAME, Item, read_item

#: The most that is kept; people answer a few, of some kB.
KEPT_FILES: Final = 1000
KEPT_BYTES: Final = 64 << 20
KEPT_AGE: Final = 10.0  # seconds until a file that no question needs was left by a killed host


class Questions:
    """The events that are kept in a folder."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def read(self, name: str) -> Item | None:
        """Read an event by the rules of the spool; return None if it is not kept."""
        return read_item(self._folder, name)

    def holds(self, name: str) -> bool:
        """Return whether an event is kept."""
        return os.path.lexists(f"{self._folder}/{name}")

    def keep(self, path: str, name: str) -> None:
        """Move the file of an event here."""
        os.rename(path, f"{self._folder}/{name}")

    def drop(self, names: Iterable[str]) -> None:
        """Remove the events of questions that are no longer open."""
        for name in names:
            if NAME.fullmatch(name) is not None:
                with contextlib.suppress(OSError):  # `drop_all_but` tries again
                    os.unlink(f"{self._folder}/{name}")

    def drop_all_but(self, standing: Collection[str]) -> None:
        """Remove what killed hosts left in answers/."""
        old = time.time() - KEPT_AGE
        for name in briefly(listing(self._folder)):
            if name not in standing and is_event(name.removesuffix(CLAIM)):
                with contextlib.suppress(OSError):
                    status = os.lstat(path := f"{self._folder}/{name}")
                    if stat.S_ISREG(status.st_mode) and status.st_ctime < old:
                        os.unlink(path)

    def drop_oldest(self) -> None:
        """Keep no more than the newest events."""
        found: list[tuple[int, int, str]] = []
        for name in listing(self._folder):
            if is_event(name):
                with contextlib.suppress(OSError):
                    status = os.lstat(f"{self._folder}/{name}")
                    found.append((status.st_mtime_ns, status.st_size, name))
        files = size = 0
        for _, length, name in sorted(found, reverse=True):
            if files + 1 > KEPT_FILES or size + length > KEPT_BYTES:
                self.drop([name])
            else:
                files, size = files + 1, size + length
