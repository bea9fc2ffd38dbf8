"""How to run work that may hang: in threads outside the event loop (`reach.py`), or at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

DEADLINE: Final = 1.0  # seconds; reading a file takes 0.2 ms

T = TypeVar("T")


@dataclass(slots=True)
class Job:
    """Work on a path, and who takes its result."""

    path: str
    work: Callable[[], Any]
    then: Callable[[Any], None]
    key: str
    where: Callable[[], str] | None
    lane: str = ""
    patience: float = DEADLINE  # seconds until it counts as hanging


class Doer(ABC):
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
        self.take(Job(path, work, then, key or path, where))

    @abstractmethod
    def take(self, job: Job) -> None:
        """Run a job, or queue it."""

    @abstractmethod
    def lane(self, name: str, patience: float) -> Doer:
        """Return a queue of its own, for work that takes longer."""


class AtOnce(Doer):
    """Runs work at once, without a deadline: for our own files, and where nothing else waits."""

    def take(self, job: Job) -> None:
        """Run a job."""
        job.then(job.work())

    def lane(self, name: str, patience: float) -> Doer:
        """Return this one: nothing is queued."""
        return self
