"""How to run work that may hang: in threads beside the event loop (`Reach`), or at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Doer(Protocol):
    """Runs work at some time, and passes its result to `then` in the event loop."""

    def do(
        self,
        path: str,
        work: Callable[[], T],
        then: Callable[[T], None],
        *,
        key: str = "",
        where: Callable[[], str] | None = None,
    ) -> None:
        """Queue work on a path; `where` returns the current path of work that touches many.

        Of several jobs with the same key, only the newest is run.
        """

    def lane(self, name: str, patience: float) -> Doer:
        """Return a queue of its own, for work that takes longer."""


class AtOnce:
    """Runs work at once: for our own files, and where nothing else waits."""

    def do(
        self,
        path: str,
        work: Callable[[], T],
        then: Callable[[T], None],
        *,
        key: str = "",
        where: Callable[[], str] | None = None,
    ) -> None:
        """Run work without a deadline."""
        then(work())

    def lane(self, name: str, patience: float) -> Doer:
        """Return this one: nothing is queued."""
        return self
