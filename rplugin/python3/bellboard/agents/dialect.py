"""The dialect of a CLI: it decodes what the CLI reports into events.

Each CLI has a folder of its own here, and `dialects.py` and `clis.py` list them.  Other files that
name one are listed in `tests/test_house.py`, each with its reason.  A dialect does no I/O, knows no
clock, and tolerates any input.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar, Final, NamedTuple

from ..core.events import Event, Origin
from ..core.finding import Finding
from ..core.program_status import Report
from ..core.request import Answer, Request
from ..core.untrusted import Facts

DEPTH: Final = 48  # rows of a screen to read for its status, from the bottom up
#: How a session starts, as most CLIs say it → kind.
STARTS: Final = {"resume": "resume", "compact": "compacted"}
#: What an event of a subagent becomes, because it says nothing about the parent.
BY_AGENT: Final = {
    "tool": "agent tool",
    "question": "agent question",
    "request": "agent request",
    "granted": "agent tool end",
    "tool end": "agent tool end",
    "batch": "agent batch",
    "agent start": "agent start",
    "agent stop": "agent stop",
    "form": "agent request",
    "form answer": "agent tool end",
}


class Seen(NamedTuple):
    """What a screen, a title or a server shows, in the values of a session file."""

    says: str  # idle, busy or waiting; "": only that it asks nothing
    asks: str = ""
    tool: str = ""
    detail: str = ""

    def finding(
        self, now: float, sid: str, pid: int, found: bool = False, where: str = "screen"
    ) -> Finding:
        """Report what the screen, the title or the server (`where`) of a session means.

        `found`: it may have been shown for a long time already.
        """
        facts = {"session_id": sid, "pid": pid, **self._asdict()}
        return Finding({"t": now, where: facts | ({"found": True} if found else {})}, "")


class Heard(NamedTuple):
    """What the CLI's server says of a session."""

    session_id: str
    seen: Seen


class About(NamedTuple):
    """What a dialog must ask about: a line, a digest, and folders that paths are relative to."""

    detail: str
    shown_digest: str = ""
    folders: Collection[str] = ()


class OnDisk(NamedTuple):
    """A file that a request is about, and what would happen to it."""

    path: str
    how: str  # read | changed | replaced, by what the request shows
    holds: str | None = None  # what it must still hold when the CLI reads it after the answer
    folder: str = ""  # that the path is relative to


class Press(NamedTuple):
    """A key for a dialog, or a text to type into it; or why there is none."""

    key: str = ""  # a digit, or Down, Right, Tab, Enter
    text: str = ""
    rows: tuple[str, ...] = ()  # rows that the terminal must still show
    last: bool = False  # gives the answer
    why: str = ""


class Dialect(ABC):
    """Decodes what a CLI reports, and encodes the user's answers."""

    key: str  # the CLI's name in evidence
    kinds: Mapping[str, str]  # kinds of its hook events, by name
    has_titles: ClassVar[bool] = False  # whether it shows its state in terminal titles
    rules: ClassVar[str] = ""  # where a project lists what is allowed

    @abstractmethod
    def event(
        self,
        payload: bytes,
        t: float,
        clock: float,
        origin: Origin,
        truncated: bool = False,
        name: str = "",
    ) -> Event:
        """Decode the payload of a hook; return junk, with the reason, if that is impossible.

        `name` is the event that was the argument of the hook; most payloads name it themselves.
        """

    def account(self, record: Facts, about: Event) -> Event:
        """Return the event, completed with what the CLI's session file says of its session."""
        raise ValueError("this CLI has no session files")

    def reported(self, report: Report) -> str:
        """Return what its own report says: the words of the protocol, or `background`."""
        return report.state

    def entry(self, session_id: str, entry: Facts, t: float, now: float) -> Event:
        """Decode an entry of a transcript; raise an error of WRONG_SHAPE if it is invalid."""
        return Event("note", "transcript", t, now, session_id)

    def is_noise(self, raw: bytes) -> bool:
        """Return whether to skip a line of a transcript undecoded."""
        return False

    def head_of(self, raw: bytes) -> Facts | None:
        """Return the entry in a line of a transcript of which only the head may be read."""
        return None

    def log_of(self, name: str, latest: str) -> str:
        """Return the session of a recorded log that no hook named; `latest`: the newest session."""
        return ""

    def titled(self, text: str) -> Seen | None:
        """Read the title that the CLI gave its terminal; return None if that says nothing."""
        return None

    def at_rest(self, text: str) -> str:
        """Return how the title would begin if the CLI were at rest; "" if that is not known."""
        return ""

    def heard(self, message: Facts) -> Heard | None:
        """Read what the CLI's server tells its clients; return None if that says nothing."""
        return None

    def serves(self, argv: Sequence[str]) -> bool:
        """Return whether a process with these arguments is a server of many terminals' sessions."""
        return False

    def on_screen(self, rows: Sequence[str]) -> Seen | None:
        """Read what the last rows of a terminal show; return None if that is unknown."""
        return None

    @abstractmethod
    def request(
        self, payload: bytes, name: str, t: float, origin: Origin, truncated: bool = False
    ) -> Request | None:
        """Return what the payload of a hook asks, under this name; None if it asks nothing."""

    def on_disk(self, payload: bytes) -> tuple[OnDisk, ...]:
        """Return the files that a request is about."""
        return ()

    def reply(self, payload: bytes, answer: Answer) -> bytes:
        """Return an answer that `check` found nothing against, in the form that the CLI takes.

        A hook prints it as one line, or `Cli.answer` delivers it.  It is empty if the CLI takes no
        answer of this kind.
        """
        return b""

    def press(self, screen: Sequence[str], request: Request, answer: Answer, about: About) -> Press:
        """Return the next key for the dialog on a screen, which must ask exactly this."""
        return Press(why="its dialogs are not known; go there to answer")

    def offers(self, screen: Sequence[str], request: Request) -> tuple[str, ...]:
        """Return what the dialog on a screen offers beside the choices of its request, in words."""
        return ()

    def takes(self) -> str:
        """Return which texts `press` can type, in words; it refuses others."""
        return ""


def tells(event: Event) -> bool:
    """Return whether an entry shows anything; a note does if it has a fact about the session."""
    return event.kind != "note" or bool(event.title or event.reviewer or event.headless)
