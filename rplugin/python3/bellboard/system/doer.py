"""Who does what may hang: `Reach` beside the event loop, or whoever waits for it at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Doer(Protocol):
    """Does the work, some time, and gives its result to `then` in the event loop."""

    def do(
        self,
        path: str,
        work: Callable[[], T],
        then: Callable[[T], None],
        *,
        key: str = "",
        where: Callable[[], str] | None = None,
    ) -> None:
        """`path`: what the work touches; `where`: which of many it touches just now.

        Of jobs with one key only the newest is done.
        """

    def lane(self, name: str, patience: float) -> Doer:
        """For work that takes longer: it is done in an order of its own."""


class AtOnce:
    """Does it here and now: for what is our own, and where nobody else waits."""

    def do(
        self,
        path: str,
        work: Callable[[], T],
        then: Callable[[T], None],
        *,
        key: str = "",
        where: Callable[[], str] | None = None,
    ) -> None:
        """Without any deadline."""
        then(work())

    def lane(self, name: str, patience: float) -> Doer:
        """No work has to wait for other work."""
        return self
