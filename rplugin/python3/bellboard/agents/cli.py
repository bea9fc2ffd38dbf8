"""What bellboard asks of a CLI besides its dialect: to observe it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar

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


class Cli(ABC):
    """A CLI; its dialect is in `dialects.py`."""

    key: ClassVar[str]  # its name in evidence
    modules: ClassVar[Collection[str]]  # of its folder, whose work may run in another process

    @abstractmethod
    def witness(self, means: Means) -> Witness:
        """Start observing; needs a running event loop."""
