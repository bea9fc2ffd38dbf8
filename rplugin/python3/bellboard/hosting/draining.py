"""Let another host work through a backlog alone, as long as it makes progress."""

from __future__ import annotations

import time
from typing import Final

from ..storage.store import Draining, Store
from ..system.processes import is_suspended, stat_of

STALLED: Final = 0.4  # seconds without a commit after which a suspended draining host is ignored
LOST = 10.0  # seconds without a commit after which any draining host is ignored
GLANCE: Final = 2.0  # seconds between two reads of its progress


class Others:
    """Knows whether another host drains, and how far it has come."""

    def __init__(self) -> None:
        #: Its last progress: when, how many commits.
        self._progress: tuple[float, int] | None = None
        self._is_ignored = False  # until it is done: our own commits would look like its progress
        self._read = 0.0  # when the commits of others were last shown

    def let_drain(self, store: Store) -> None:
        """Raise Draining while another host works through a backlog and makes progress."""
        now = time.monotonic()
        if not store.drain.is_taken():
            self._progress, self._is_ignored = None, False
            return
        if self._is_ignored:
            return
        store.check_commits()
        if self._progress is None or self._progress[1] != store.commits:
            self._progress = now, store.commits
        quiet = now - self._progress[0]
        if quiet < STALLED or (quiet < LOST and not _is_suspended(store.drain.holder())):
            raise Draining
        self._is_ignored = True

    def check_again(self, store: Store) -> None:
        """Raise Draining if one began while we waited for the lock."""
        if self._progress is None and store.drain.is_taken():
            raise Draining

    def is_to_read(self) -> bool:
        """Return whether to read what others committed; during a backlog, only now and then.

        Reading and showing every step of it took the hosts longer than the backlog itself.
        """
        now = time.monotonic()
        waits = self._progress is not None and not self._is_ignored
        if waits and now < self._read + GLANCE:
            return False
        self._read = now
        return True


def _is_suspended(pid: int | None) -> bool:
    return not pid or stat_of(pid) is None or is_suspended(pid)
