"""What bellboard asks of a CLI besides its dialect: to observe it, and to take answers."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from ..core.finding import Finding
from ..core.request import Sent, Went
from ..core.session import Session
from .abilities import Abilities
from .installing.hookline import Hooked

if TYPE_CHECKING:
    from ..system.packaged import Version
    from ..system.reach import Doer
    from ..system.watch import Watched
    from .installing.installer import Installer


NAMED: Final[Mapping[str, str]] = {"name": "bellboard"}
SPARED: Final = frozenset({"activity", "note"})  # kinds of events whose hooks add nothing
_PLAIN_ID: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")  # cannot be taken for an option


class Means(NamedTuple):
    """What a witness observes with, and where it reports."""

    reach: Doer
    watched: Watched
    report: Callable[[Finding], None]
    clock: Callable[[], float]
    environ: Mapping[str, str]
    generation: str = ""
    brief: bool = False  # only once: what shows the state now is enough


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


class Waiting(NamedTuple):
    """A request that is open on the board, for a CLI to find on its own side."""

    session_id: str
    pid: int  # the process that asks: alive, and the session's
    tool_id: str  # the CLI's id of the tool that asks, if it is known
    payload: bytes  # payload of the hook that reported it
    home: Path  # the state folder


class Unanswered(Exception):
    """An answer was not given; the text says why."""


class Unclear(Unanswered):
    """An answer was sent, and it is not known whether it counted: a slow CLI may still take it."""


class Unreachable(Unanswered):
    """Nobody can take it this way; another way may be open."""


@contextmanager
def sent(to: str) -> Iterator[None]:
    """Raise `Unclear` if the connection fails once an answer has been sent to somebody."""
    try:
        yield
    except OSError as error:
        raise Unclear(f"{to}: {error}") from None


class Cli(Hooked):
    """A CLI; its dialect is in `dialects.py`."""

    abilities: ClassVar[Abilities] = {}  # empty if nothing was measured
    tested: ClassVar[Version] = ()  # the newest version that our tests run; empty if none does
    variable: ClassVar[str] = ""  # names the folder of its files, where it is not in the home
    resuming: ClassVar[tuple[str, ...]] = ()  # the arguments that resume the session named next
    keeps: ClassVar[str] = ""  # the folder that it makes in the state folder
    keeps_transcripts: ClassVar[bool] = True  # in files, without which it cannot resume
    #: Event → how long its hook may take, if the settings have the form that most CLIs share.
    timeouts: ClassVar[Mapping[str, int]] = {}
    named: ClassVar[Mapping[str, str]] = {}  # NAMED, if hooks have a name there

    def reporting(self, line: Callable[[str], str]) -> str:
        """See `Hooked`."""
        hooks = {}
        for event, t in self.timeouts.items():
            hook = {"type": "command", **self.named, "command": line(event), "timeout": t}
            hooks[event] = [{"hooks": [hook]}]
        return json.dumps({"hooks": hooks}, indent=2, ensure_ascii=False) if hooks else ""

    def version(self, environ: Mapping[str, str]) -> Version | None:
        """Return the version on PATH, or None if its package does not show it."""
        from ..system.mounts import near
        from ..system.packaged import version_at

        found = near(self.program, environ.get("PATH", ""))
        return version_at(found, self.program) if found else None

    def witness(self, means: Means) -> Witness | None:
        """Start observing, if there is more than hooks; needs a running event loop."""
        return None

    def installer(self, home: Path, environ: Mapping[str, str]) -> Installer:
        """Return what puts the hooks into its files."""
        from .installing.installer import Installer

        return Installer(home, environ, self)

    def resume(self, session_id: str) -> list[str]:
        """Return the command that resumes a session, or nothing if there is none."""
        if not self.resuming or not _PLAIN_ID.fullmatch(session_id):
            return []
        return [self.program, *self.resuming, session_id]

    def session_of(self, pid: int, environ: Mapping[str, str]) -> str:
        """Return the session that a process claims to run, or "" if it claims none. May hang."""
        return ""

    def went_on(
        self, pid: int, s: Session, since: float, environ: Mapping[str, str]
    ) -> Went | None:
        """Return how a session went on after `since`, if the CLI itself says so. May hang."""
        return None

    def asking(self, s: Session, environ: Mapping[str, str]) -> bytes:
        """Return what a hook would report of what the main thread asks, or b"".  May hang.

        It is known only if the CLI itself has recorded it in full.
        """
        return b""

    def winner(self, s: Session, asked: Waiting, since: float, sent: Sent) -> str | None:
        """Return whose answer counted: "" if nobody can know, None if it may soon be known.

        May hang.
        """
        return ""

    def find(self, waiting: Waiting) -> None:
        """Find a request in the CLI's own server or plugin, to answer it there.

        Raise `Unanswered`.  This may take seconds, so call it outside the event loop.
        """
        raise Unreachable("it has no server that takes answers")

    def answer(self, waiting: Waiting, reply: bytes) -> None:
        """Find it and deliver what `Dialect.reply` wrote; return once that was accepted.

        Raise `Unanswered` if it was not: somebody else answered, or something else is asked now.
        Raise `Unclear` if it was sent, and may have been accepted.
        """
        self.find(waiting)
