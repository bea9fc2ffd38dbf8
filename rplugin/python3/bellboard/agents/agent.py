"""The tasks of a CLI for bellboard: decode its reports, observe it, take answers.

Each CLI has a file or a folder of its own here, and `registry.py` lists them.  Other files that
name a CLI are listed in `tests/house/test_house.py`, each with a reason.  Code that decodes does no
I/O, knows no clock, and tolerates any input; all other code is imported where it runs.
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
from ..core.last_turn import TurnLog
from ..core.program_status import Report
from ..core.request import Answer, Choice, Request, SentAnswer, Went
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
NOTES: Final = frozenset({"note"})  # the kind of events that say nothing
_PLAIN_ID: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")  # no option of a command
DEPTH: Final = 48  # rows of a screen to read for its status, from the bottom up

#: Moment in a session → the heading of its row for users.
MOMENTS: Final = {
    "unprompted": "shows before any prompt",
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
#: Moments that are abilities of a CLI, which it has or lacks however it is observed.
HAD: Final = frozenset({"itself", "answer"})


class Ability(NamedTuple):
    """The source that shows a moment; without a source, the moment is not known."""

    source: str
    inferred: bool = False  # the moment follows from something else that was observed
    when: str = ""  # the limits


Abilities = Mapping[str, Ability]  # for each of `MOMENTS`


def ability_mark(moment: str, ability: Ability) -> str:
    """Return `observed`, `inferred` or `not known`; of a moment in HAD, `yes` or `no`."""
    if moment in HAD:
        return "yes" if ability.source else "no"
    if not ability.source:
        return "not known"
    return "inferred" if ability.inferred else "observed"


def ability_words(moment: str, ability: Ability) -> str:
    """Return the mark of an ability, with its source and limits."""
    source = f" ({ability.source})" if ability.source else ""
    return f"{ability_mark(moment, ability)}{source}" + (
        f", {ability.when}" if ability.when else ""
    )


class Seen(NamedTuple):
    """The state on a screen, in a title or at a server, in the values of a session file."""

    says: str  # idle, busy or waiting; "": the session asks nothing, no more is known
    asks: str = ""
    tool: str = ""
    detail: str = ""

    def evidence(
        self, now: float, sid: str, pid: int, found: bool = False, where: str = "screen"
    ) -> Evidence:
        """Report the state on the screen, in the title or at the server (`where`) of a session.

        If it is `found`, it may have been shown for a long time already.
        """
        shown = TraceLine(session_id=sid, pid=pid, found=found, **self._asdict())
        return Evidence(shown.line(now, where), "")


class Heard(NamedTuple):
    """The state of a session, as the CLI's server reports it."""

    session_id: str
    seen: Seen


class About(NamedTuple):
    """The subject that a dialog must name: a line, a digest, and folders of relative paths."""

    detail: str
    shown_digest: str = ""
    folders: Collection[str] = ()


class OnDisk(NamedTuple):
    """A file of a request, and what would happen to it."""

    path: str
    how: str  # read | changed | replaced, by what the request shows
    holds: str | None = None  # its content, which must be the same when the CLI reads it
    folder: str = ""  # of a relative path


class Press(NamedTuple):
    """A key for a dialog, a text to type into it, or the reason why there is neither."""

    key: str = ""  # a digit, or Down, Right, Tab, Enter, Space, Escape
    text: str = ""
    rows: tuple[str, ...] = ()  # rows that the terminal must still show
    last: bool = False  # this key gives the answer
    why: str = ""


class Prompt(NamedTuple):
    """The input of a CLI, ready for what is typed next: no dialog or menu is before it."""

    text: str  # what stands in it; "" also where the CLI only shows a hint
    rows: tuple[str, ...]  # of the screen


def timeouts_of(
    words: Words, each: int, *also: str, spared: Collection[str] = SPARED
) -> Mapping[str, int]:
    """Return the time limit of each hook: those of all kinds but `spared`, and of `also`."""
    names = (name for name, kind in words.kinds.items() if kind not in spared)
    return dict.fromkeys((*names, *also), each)


class OpenRequest(NamedTuple):
    """A request that is open on the board, for a CLI to find on its own side."""

    session_id: str
    pid: int  # the process that asks; alive, and proven to be the session's
    tool_id: str  # the CLI's id of the tool that asks, if known
    payload: bytes  # payload of the hook that reported it
    home: Path  # the state folder


class Unanswered(Exception):
    """An answer was not given; the text says why."""


class Unclear(Unanswered):
    """An answer was sent, but may not have counted: a slow CLI may still take it."""


class Unreachable(Unanswered):
    """Nobody can take an answer this way; another way may be open."""


@contextmanager
def sent(to: str) -> Iterator[None]:
    """Raise `Unclear` if the connection fails once an answer has been sent to somebody."""
    try:
        yield
    except OSError as error:
        raise Unclear(f"{to}: {error}") from None


class Agent(Hooked):
    """A CLI: its names, its reports, and its ways to take answers.

    The methods under "doors" may hang; all else is pure.
    """

    words: ClassVar[Words]  # kinds of its hook events by name, and the fields of payloads
    abilities: ClassVar[Abilities] = {}  # empty if nothing was measured
    tested: ClassVar[Version] = ()  # the newest version that our tests run; empty if none does
    variable: ClassVar[str] = ""  # names the folder of its files, if not in the home
    resuming: ClassVar[tuple[str, ...]] = ()  # the arguments that resume the session named next
    #: The arguments before the prompt that a session starts with, which is joined to one that ends
    #: with `=`; empty if it takes none, and waits for the user.
    prompting: ClassVar[tuple[str, ...]] = ()
    leaving: ClassVar[frozenset[str]] = frozenset()  # its words for an end that its user caused
    keeps: ClassVar[str] = ""  # the folder that the CLI makes in the state folder
    keeps_transcripts: ClassVar[bool] = True  # whether it needs them to resume
    #: Event → time limit of its hook, if the settings have the form that most CLIs share.
    timeouts: ClassVar[Mapping[str, int]] = {}
    named: ClassVar[Mapping[str, str]] = {}  # NAMED, if hooks have a name there
    has_titles: ClassVar[bool] = False  # whether terminal titles show its state
    queues: ClassVar[bool] = False  # whether it takes a prompt while it works, to submit it later
    submits: ClassVar[str] = "Enter"  # the key that submits a prompt, or queues it then
    escapes: ClassVar[int] = 1  # presses of Esc that interrupt a turn
    rules: ClassVar[str] = ""  # the file in which a project lists allowed commands

    # ------------------------------------------------------------ reports

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
        """Return an event with the fields of its session from the CLI's session file."""
        raise ValueError("this CLI has no session files")

    def reported(self, report: Report) -> str:
        """Return the status in the CLI's own report: a word of the protocol, or `background`."""
        return report.state

    def entry(self, session_id: str, entry: Facts, t: float, now: float) -> Event:
        """Decode an entry of a transcript; raise an error of WRONG_SHAPE if it is invalid."""
        return Event("note", "transcript", t, now, session_id)

    def is_noise(self, raw: bytes) -> bool:
        """Return whether to skip a line of a transcript without decoding it."""
        return False

    def conversation(self, path: str) -> list[str]:
        """Return the messages at the end of a transcript, as lines. May block."""
        return []

    def last_turn(self, s: Session, environ: Mapping[str, str]) -> TurnLog | None:
        """Return the last turn by its log; None if that is not known here.  May hang."""
        return None

    def head_of(self, raw: bytes) -> Facts | None:
        """Return the entry in a line of a transcript of which only the head may be read."""
        return None

    def log_of(self, name: str, latest: str) -> str:
        """Return the session of a recorded log that no hook named; `latest`: the newest session."""
        return ""

    def titled(self, text: str) -> Seen | None:
        """Read the title that the CLI gave its terminal; return None if the title says nothing."""
        return None

    def at_rest(self, text: str) -> str:
        """Return the start of the title that the CLI would have at rest; "" if not known."""
        return ""

    def heard(self, message: Facts) -> Heard | None:
        """Read a message of the CLI's server to its clients; return None if it says nothing."""
        return None

    def serves(self, argv: Sequence[str]) -> bool:
        """Return whether a process with these arguments is a server of many terminals' sessions."""
        return False

    def on_screen(self, rows: Sequence[str]) -> Seen | None:
        """Read the last rows of a terminal; return None if their meaning is unknown."""
        return None

    def request(
        self, payload: bytes, name: str, t: float, origin: Origin, truncated: bool = False
    ) -> Request | None:
        """Return the request in the payload of a hook, under this name; None if there is none."""
        return None

    def on_disk(self, payload: bytes) -> tuple[OnDisk, ...]:
        """Return the files that a request is about."""
        return ()

    def reply(self, payload: bytes, answer: Answer) -> bytes:
        """Return a checked answer in the form of the CLI; empty if it takes none of this kind.

        A hook prints the reply as one line, or `answer` delivers it.
        """
        return b""

    def press(self, screen: Sequence[str], request: Request, answer: Answer, about: About) -> Press:
        """Return the next key for the dialog on a screen, which must show exactly this request."""
        return Press(why="its dialogs are not known; go there to answer")

    def offers(self, screen: Sequence[str], request: Request) -> tuple[Choice, ...]:
        """Return the answers of the dialog on a screen that its request lacks, in words."""
        return ()

    def prompted(self, prompt: str) -> list[str]:
        """Return the arguments that start a session with a prompt; `prompting` is not empty."""
        *before, last = self.prompting
        return [*before, last + prompt] if last.endswith("=") else [*before, last, prompt]

    def takes(self) -> str:
        """Return in words which texts `press` can type; it refuses others."""
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
        """Return the observer of its sessions, if they show more than hooks.

        `brief`: look once, and only at what shows the present state.
        """
        return None

    def installer(self, home: Path, environ: Mapping[str, str]) -> Installer:
        """Return the installer of the hooks in its files."""
        from .installing.installer import Installer

        return Installer(home, environ, self)

    def resume(self, session_id: str) -> list[str]:
        """Return the command that resumes a session, or nothing if there is none."""
        if not self.resuming or not _PLAIN_ID.fullmatch(session_id):
            return []
        return [self.program, *self.resuming, session_id]

    def own_hooks(self, argv: Sequence[str], home: Path, environ: Mapping[str, str]) -> list[str]:
        """Return the arguments that give a session hooks of its own, as `argv` starts it."""
        return []

    def restart(self, s: Session) -> list[str]:
        """Return the command that resumes a session from anywhere, or nothing if there is none."""
        return self.resume(s.session_id)

    def session_of(self, pid: int, environ: Mapping[str, str]) -> str:
        """Return the session that a process claims to run, or "" if it claims none. May hang."""
        return ""

    def went_on(
        self, pid: int, s: Session, since: float, environ: Mapping[str, str]
    ) -> Went | None:
        """Return how a session went on after `since`, if the CLI itself shows that. May hang."""
        return None

    def piece(self, pid: int, s: Session, environ: Mapping[str, str]) -> int:
        """Return how many pasted characters count as typed; 0 if that is no matter. May hang."""
        return 0

    def asking(self, s: Session, environ: Mapping[str, str]) -> bytes:
        """Return the payload that a hook would report for a question of the main thread, or b"".

        It is known only if the CLI itself has recorded the question in full.  May hang.
        """
        return b""

    def winner(self, s: Session, asked: OpenRequest, since: float, sent: SentAnswer) -> str | None:
        """Return whose answer counted; "" if nobody can know, None if it may become known soon.

        May hang.
        """
        return ""

    def say(self, s: Session, pid: int, text: str, home: Path) -> None:
        """Submit a prompt by the server or plugin of the CLI; `home`: the state folder.  May hang.

        Raise `Unreachable` if it has none, `Unanswered` if that refused it, `Unclear` if it may
        have been taken.
        """
        raise Unreachable("it has no server that takes prompts")

    def interrupt(self, s: Session, pid: int, home: Path) -> str:
        """Interrupt the turn of a session by the server or plugin of the CLI.  May hang.

        Return what else that did, in words.  Raise as `say` does.
        """
        raise Unreachable("it has no server that interrupts")

    def unshown(self, s: Session, pid: int, home: Path) -> str:
        """Return why the terminal of a process does not show a session, or "".  May hang."""
        return ""

    def find(self, waiting: OpenRequest) -> None:
        """Find a request in the CLI's own server or plugin, to answer it there.

        Raise `Unanswered`.  This may take seconds, so call it outside the event loop.
        """
        raise Unreachable("it has no server that takes answers")

    def answer(self, waiting: OpenRequest, reply: bytes) -> None:
        """Find a request and deliver its reply; return once the CLI has accepted that.

        Raise `Unanswered` if it has not: somebody else answered, or something else is asked now.
        Raise `Unclear` if the reply was sent, and may have been accepted.
        """
        self.find(waiting)


def tells(event: Event) -> bool:
    """Return whether an entry shows anything; of notes, those with a fact about the session."""
    return event.kind != "note" or bool(event.title or event.reviewer or event.headless)
