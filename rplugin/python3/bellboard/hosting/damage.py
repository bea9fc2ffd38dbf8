"""Set damaged rows of the database aside, and report them for a day."""

from __future__ import annotations

from typing import Final

from ..storage.rows import Unsound
from ..storage.store import Store

MOST_NOTED: Final = 5
NOTED: Final = 86400.0  # seconds in which health reports rows that were set aside


class DamagedRows:
    """The rows that were set aside recently."""

    def __init__(self) -> None:
        self._rows: list[Unsound] = []

    def set_aside(self, store: Store, now: float) -> set[str]:
        """Set damaged rows aside, within the lock; return the sessions to write again."""
        if store.inspect():
            self._rows = store.set_aside_since(now - NOTED)
        if store.unsound:
            self._rows += store.set_unsound_aside(now)
        mend = set(store.mend)
        store.mend.clear()
        return mend

    def notes(self, now: float) -> dict[str, str]:
        """Return the rows set aside recently, for health."""
        lately = [row for row in self._rows if row.t > now - NOTED]
        if not lately:
            return {}
        named = "; ".join(str(row) for row in lately[-MOST_NOTED:])
        more = f" and {len(lately) - MOST_NOTED} before" if len(lately) > MOST_NOTED else ""
        return {"rows": f"of the database {named}{more}; they are in its table `damaged`"}
