"""What the watch has reported and no fold has handled: events in the spool, or anything else."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from ..storage.spool import Spool

MOST: Final = 1000  # paths to remember while they cannot be folded


class Arrivals:
    """Knows whether the spool has to be listed, or which of its files are new."""

    def __init__(self, spool: Spool) -> None:
        self._new, self._slot = f"{spool.new}/", f"{spool.slot}/"
        self._listed = (str(spool.new), str(spool.slot))  # reported when anything may have come
        self._came: set[str] = set()  # into new/
        self._is_partial = False  # nothing else came

    @property
    def only(self) -> Collection[str]:
        """Return the paths in new/, if nothing else can be pending; else none."""
        return self._came if self._is_partial else ()

    def take(self, paths: set[str]) -> set[str]:
        """Note changed paths; return those outside the spool."""
        others = {path for path in paths if not path.startswith(self._new)}
        self._came |= paths - others
        if len(self._came) > MOST:  # they cannot be folded now
            self._came, self._is_partial = set(), False
        outside = {path for path in others if not path.startswith(self._slot)}
        if others - outside or not outside.isdisjoint(self._listed):
            self._is_partial = False
        return outside

    def clear(self) -> None:
        """Note that everything was folded."""
        self._came, self._is_partial = set(), True
