"""Observe a CLI that has hooks and logs: follow the log of each session while it is needed."""

from __future__ import annotations

from collections.abc import Collection

from ..core.session import Session
from .cli import Means, Witness
from .dialect import Dialect
from .following import Following


class LogWitness(Witness):
    """See `Witness`."""

    def __init__(self, means: Means, dialect: Dialect) -> None:
        self.following = Following(means, dialect)

    @property
    def notes(self) -> dict[str, str]:
        return self.following.transcripts.notes

    def attend(self, s: Session) -> None:
        self.following.attend(s)

    def leave(self, sid: str) -> None:
        self.following.forget(sid)

    def died(self, pid: int) -> None:
        """Ignore the end of a process: a log has none."""

    def changed(self, paths: Collection[str]) -> None:
        self.following.changed(paths)

    def rescan(self) -> None:
        self.following.rescan()

    def renew(self, generation: str) -> None:
        """Do nothing: what was reported of a log stays known."""

    def close(self) -> None:
        """Do nothing: watches and timers belong to the host."""
