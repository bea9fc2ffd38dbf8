"""What bellboard asks of a CLI: to decode what it reports, to observe it, to take answers.

Each CLI has a file or a folder of its own here, and `registry.py` lists them.  Other files that
name one are listed in `tests/test_house.py`, each with its reason.  What decodes touches nothing
outside, knows no clock, and tolerates any input; what does is imported where it runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from ..core.events import Event, Origin
from ..core.evidence import Evidence, TraceLine
from ..core.program_status import Report
from ..core.request import Answer, Request, SentAnswer, Went
from ..core.session import Session
from ..core.untrusted import Facts
from .installing.hookline import Hooked
from .words import Words, event_of

if TYPE_CHECKING:
    from ..system.packaged import Version
    from .installing.installer import Installer
    from .need import Observing

NAMED: Final[Mapping[str, str]] = {"name": "bellboard"}
SPARED: Final = frozenset({"activity", "note"})  # kinds of events whose hooks add nothing
NOTES: Final = frozenset({"note"})  # the kind of those that say nothing
_PLAIN_ID: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")  # cannot be taken for an option
DEPTH: Final = 48  # rows of a screen to read for its status, from the bottom up

#: What may happen to a session → the heading of that row for users.
MOMENTS: Final = {
    "unprompted": "shows before its first prompt",
    "working": "works",
    "permission": "asks for a permission",
    "question": "asks a question",
    "granted": "a permission was granted",
    "denied": "a permission was denied",
    "completed": "has completed its turn",
    "interrupted": "was interrupted",
    "failed": "failed with an error",
    "ended": "has ended",
    "itself": "says so itself",
    "answer": "takes answers from here",
}
#: Those that a CLI has or lacks, however it is observed.
HAD: Final = frozenset({"itself", "answer"})


class Ability(NamedTuple):
    """How a moment is known; without a source, it is not known."""

    source: str
    inferred: bool = False  # it follows from something else that was observed
    when: str = ""  # with what limits


Abilities = Mapping[str, Ability]  # for each of `MOMENTS`


def ability_mark(moment: str, ability: Ability) -> str:
    """Return how it is known: `observed`, `inferred` or `not known`; of some, `yes` or `no`."""
    if moment in HAD:
        return "yes" if ability.source else "no"
    if not ability.source:
        return "not known"
    return "inferred" if ability.inferred else "observed"


def ability_words(moment: str, ability: Ability) -> str:
    """Return how it is known, in full."""
    source = f" ({ability.source})" if ability.source else ""
    return f"{ability_mark(moment, ability)}{source}" + (
        f", {ability.when}" if ability.when else ""
    )


class Seen(NamedTuple):
    """What a screen, a title or a server shows, in the values of a session file."""

    says: str  # idle, busy or waiting; "": only that it asks nothing
    asks: str = ""
    tool: str = ""
    detail: str = ""

    def evidence(
        self, now: float, sid: str, pid: int, found: bool = False, where: str = "screen"
    ) -> Evidence:
        """Report what the screen, the title or the server (`where`) of a session means.

        `found`: it may have been shown for a long time already.
        """
        shown = TraceLine(session_id=sid, pid=pid, found=found, **self._asdict())
        return Evidence(shown.line(now, where), "")


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


class Prompt(NamedTuple):
    """The input of a CLI, ready for what is typed next: no dialog or menu is before it."""

    text: str  # what stands in it; "" also where the CLI only shows a hint
    rows: tuple[str, ...]  # of the screen


def timeouts_of(
    words: Words, each: int, *also: str, spared: Collection[str] = SPARED
) -> Mapping[str, int]:
    """Return how long each hook may take: those of all kinds but `spared`, and of `also`."""
    names = (name for name, kind in words.kinds.items() if kind not in spared)
    return dict.fromkeys((*names, *also), each)


class OpenRequest(NamedTuple):
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


class Agent(Hooked):
    """A CLI: what it is called, what it reports, and how it takes answers.

    Whatever its doors look at may hang; all else is pure.
    """

    words: ClassVar[Words]  # kinds of its hook events by name, and where payloads have the rest
    abilities: ClassVar[Abilities] = {}  # empty if nothing was measured
    tested: ClassVar[Version] = ()  # the newest version that our tests run; empty if none does
    variable: ClassVar[str] = ""  # names the folder of its files, where it is not in the home
    resuming: ClassVar[tuple[str, ...]] = ()  # the arguments that resume the session named next
    keeps: ClassVar[str] = ""  # the folder that it makes in the state folder
    keeps_transcripts: ClassVar[bool] = True  # in files, without which it cannot resume
    #: Event → how long its hook may take, if the settings have the form that most CLIs share.
    timeouts: ClassVar[Mapping[str, int]] = {}
    named: ClassVar[Mapping[str, str]] = {}  # NAMED, if hooks have a name there
    has_titles: ClassVar[bool] = False  # whether it shows its state in terminal titles
    queues: ClassVar[bool] = False  # whether it takes a prompt while it works, to submit it later
    rules: ClassVar[str] = ""  # where a project lists what is allowed

    # ------------------------------------------------------------ what it reports

    @property
    def kinds(self) -> Mapping[str, str]:
        """Return the kinds of its hook events, by name."""
        return self.words.kinds

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
        return event_of(payload, t, clock, origin, truncated, name, self.words)

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

    def conversation(self, path: str) -> list[str]:
        """Return what was said at the end of a transcript, as lines. May block."""
        return []

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

    def request(
        self, payload: bytes, name: str, t: float, origin: Origin, truncated: bool = False
    ) -> Request | None:
        """Return what the payload of a hook asks, under this name; None if it asks nothing."""
        return None

    def on_disk(self, payload: bytes) -> tuple[OnDisk, ...]:
        """Return the files that a request is about."""
        return ()

    def reply(self, payload: bytes, answer: Answer) -> bytes:
        """Return an answer that `check` found nothing against, in the form that the CLI takes.

        A hook prints it as one line, or `answer` delivers it.  It is empty if the CLI takes no
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

    def prompt(self, screen: Sequence[str]) -> Prompt | None:
        """Return the input that a screen shows; None if something else takes the keys."""
        return None

    # ------------------------------------------------------------ doors

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

    def observing(self, environ: Mapping[str, str], brief: bool) -> Observing | None:
        """Return what observes its sessions, if there is more than hooks.

        `brief`: only once, and what shows the state now is enough.
        """
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

    def winner(self, s: Session, asked: OpenRequest, since: float, sent: SentAnswer) -> str | None:
        """Return whose answer counted: "" if nobody can know, None if it may soon be known.

        May hang.
        """
        return ""

    def say(self, s: Session, pid: int, text: str) -> None:
        """Submit a prompt by the server or plugin of the CLI.  May hang.

        Raise `Unreachable` if it has none, `Unanswered` if that refused it, `Unclear` if it may
        have been taken.
        """
        raise Unreachable("it has no server that takes prompts")

    def find(self, waiting: OpenRequest) -> None:
        """Find a request in the CLI's own server or plugin, to answer it there.

        Raise `Unanswered`.  This may take seconds, so call it outside the event loop.
        """
        raise Unreachable("it has no server that takes answers")

    def answer(self, waiting: OpenRequest, reply: bytes) -> None:
        """Find it and deliver what `reply` wrote; return once that was accepted.

        Raise `Unanswered` if it was not: somebody else answered, or something else is asked now.
        Raise `Unclear` if it was sent, and may have been accepted.
        """
        self.find(waiting)


def tells(event: Event) -> bool:
    """Return whether an entry shows anything; a note does if it has a fact about the session."""
    return event.kind != "note" or bool(event.title or event.reviewer or event.headless)
