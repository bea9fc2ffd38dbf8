"""Which sessions of a fleet are shown: all that need somebody, and as many others as there is room.

A person reads the board, and this machine stores, draws and announces each of its rows.  So it
shows a limited part of a large fleet, and counts the rest.  If more need somebody than there is
room for, the machine that shows most of them makes room for the others: none fills the board alone.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain, islice
from operator import itemgetter
from typing import Final

from ..core.published import needs_somebody
from ..core.row import Row
from .subjects import Key

SHOWN: Final = 1000


class Window:
    """The keys of sessions, with their statuses: those that are shown, and the others."""

    def __init__(self, most: int = SHOWN) -> None:
        self._most = most
        self._urgent: dict[Key, str] = {}  # shown, the oldest change first
        self._calm: dict[Key, str] = {}
        self._waiting: dict[Key, str] = {}  # not shown, but urgent
        self._others: dict[Key, str] = {}

    def __contains__(self, key: object) -> bool:
        return key in self._urgent or key in self._calm

    @property
    def left_out(self) -> dict[str, int]:
        """Return how many of those not shown have each status."""
        return dict(Counter([*self._waiting.values(), *self._others.values()]))

    @property
    def is_short(self) -> bool:
        """Return whether some that need somebody are not shown."""
        return bool(self._waiting)

    def put(self, key: Key, row: Row, rotates: bool = False) -> Key | None:
        """Note that a session changed; return one that is shown no longer, to make room for it.

        An urgent session replaces a calm one, or one of a machine that shows more than its own.
        A calm session replaces a calm one if `rotates`.
        """
        self.drop(key)
        is_urgent, gone = needs_somebody(row.status, row.markers, row.hidden), None
        if not self._room():
            gone = next(iter(self._calm), None) if is_urgent or rotates else None
            if gone is not None:
                self._others[gone] = self._calm.pop(gone)
            elif is_urgent and (gone := self._excess(key.machine)) is not None:
                self._waiting[gone] = self._urgent.pop(gone)
            else:
                (self._waiting if is_urgent else self._others)[key] = row.status
                return None
        (self._urgent if is_urgent else self._calm)[key] = row.status
        return gone

    def drop(self, key: Key) -> None:
        """Forget a session."""
        for part in (self._urgent, self._calm, self._waiting, self._others):
            part.pop(key, None)

    def vacancies(self) -> list[Key]:
        """Return sessions that are not shown, but for which there is room now."""
        return list(islice(chain(self._waiting, self._others), max(self._room(), 0)))

    def _excess(self, machine: str) -> Key | None:
        """Return an urgent session of the machine that shows most, if that leaves it no fewer."""
        shown = Counter(key.machine for key in self._urgent)
        most, count = max(shown.items(), key=itemgetter(1))
        if count <= shown[machine] + 1:
            return None
        return next(key for key in self._urgent if key.machine == most)

    def _room(self) -> int:
        return self._most - len(self._urgent) - len(self._calm)
