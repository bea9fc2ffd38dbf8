"""What bellboard asks of a CLI besides its dialect: to observe it, and to take answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

from ..core.finding import Finding
from ..core.session import Session
from ..system.doer import Doer
from ..system.watched import Watched


@dataclass(frozen=True)
class Means:
    """What a witness observes with, and whom it reports to."""

    reach: Doer
    watched: Watched
    report: Callable[[Finding], None]
    clock: Callable[[], float]
    environ: Mapping[str, str]
    generation: str = ""


class Witness(ABC):
    """Observes what a CLI shows of its sessions besides its hooks."""

    @property
    @abstractmethod
    def notes(self) -> dict[str, str]:
        """Return what is wrong, for health."""

    @abstractmethod
    def attend(self, s: Session) -> None:
        """Adapt what is observed to a session that changed."""

    @abstractmethod
    def leave(self, sid: str) -> None:
        """Drop a session that has ended."""

    @abstractmethod
    def died(self, pid: int) -> None:
        """Take the end of a process."""

    @abstractmethod
    def changed(self, paths: Collection[str]) -> None:
        """Take paths that a watch reported; ignore those that are not its own."""

    @abstractmethod
    def rescan(self) -> None:
        """Check everything, and search for sessions that nothing has reported."""

    @abstractmethod
    def renew(self, generation: str) -> None:
        """Report everything again at the next rescan."""

    @abstractmethod
    def close(self) -> None:
        """Stop observing."""


class Asked(NamedTuple):
    """A request that stands on the board, for a CLI to find it again on its own side."""

    session_id: str
    pid: int  # the process that asks: alive, and the session's
    payload: bytes  # of the hook that reported it
    home: Path  # the state folder
    tool_id: str = ""  # the CLI's id of the tool that asks, if it is known


class Unanswered(Exception):
    """An answer was not given; the text says why, and completes "it was not answered: …"."""


class Cli(ABC):
    """A CLI; its dialect is in `dialects.py`."""

    key: ClassVar[str]  # its name in evidence
    modules: ClassVar[Collection[str]] = ()  # of its folder, whose work may run in another process

    def witness(self, means: Means) -> Witness | None:
        """Start observing, if there is more than hooks; needs a running event loop."""
        return None

    def unanswerable(self, asked: Asked) -> str:
        """Return why no server or plugin of the CLI can take an answer now; "" if one can.

        May take seconds: call it outside the event loop.
        """
        return "it has no server that takes answers"

    def answer(self, asked: Asked, reply: bytes) -> None:
        """Give the server or plugin what `Dialect.reply` wrote; return once it has taken it.

        Raise `Unanswered` if it did not: the request was answered, or is no longer the same.  May
        take seconds, like `unanswerable`.
        """
        raise Unanswered(self.unanswerable(asked))
