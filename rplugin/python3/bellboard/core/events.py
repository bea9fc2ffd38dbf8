"""Events: evidence in neutral words.  Their kinds are the rows of the table in `machine.py`."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct

from .text import whole

LONGEST_MACHINE: Final = 63  # characters of the name of a machine
LONGEST_ID: Final = 200  # characters; a longer id is invalid
UNCOUNTED: Final = -1  # the number of child processes is unknown
AGENT: Final = "claude"  # the agent of events that name none
SPAWNS: Final = frozenset({"Agent", "Task"})  # tools that run a subagent
#: Kinds of hook events whose payload holds all that is asked.
ASKING: Final = frozenset({"request", "question", "form", "agent request", "agent question"})
#: Sources that say at once what a CLI does; its session file says so a moment later.
LIVE: Final = ("title", "server")
MATE: Final = "teammate"  # the type of an agent that is a member of a team
AHEAD: Final = 5.0  # a stamp further in the future counts as now


def is_id(value: object) -> bool:
    """Return whether this can be the id of a session: a word that every screen shows as it is."""
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_ID:
        return False
    return value.isprintable() and "\N{REPLACEMENT CHARACTER}" not in value  # that was no text


def usable_id(value: object) -> str:
    """Return a value that can be the id of a session; raise ValueError otherwise."""
    if not isinstance(value, str) or not is_id(value):
        raise ValueError("no usable session id")
    return value


class Origin(Struct, frozen=True, omit_defaults=True, gc=False):
    """Where an event came from, as far as it is known."""

    agent: str = AGENT
    pid: int | None = None
    started: str = ""  # when that process started, as its hook saw it
    shared: bool = False  # the process is a server that runs the sessions of many terminals
    many: bool = False  # the process runs several sessions at once, in one terminal
    tty: str | None = None
    tmux: str | None = None  # the server's socket
    pane: str | None = None
    nvim: str | None = None
    kitty: str | None = None  # the socket of its remote control
    through: str = ""  # the program of ours that leads to it, and where to: `ssh dev`
    connection: str = ""  # our end of that, if it is an ssh: `ADDRESS PORT`
    env: dict[str, str] = {}  # with neutral names: see `VARIABLES` in `registry.py`


class Task(Struct, frozen=True, omit_defaults=True, gc=False):
    """A background task, as listed by a Stop."""

    id: str
    type: str
    description: str = ""


class Event(Struct, frozen=True, omit_defaults=True, gc=False):
    """A piece of evidence: its kind, its time, and the facts that rules and screens use."""

    kind: str
    name: str
    t: float  # when it happened
    clock: float  # when it became known
    session_id: str = ""
    origin: Origin = Origin()
    key: int = 0  # equal for duplicates of a hook event; 0 for other evidence
    in_order: bool = False  # it is stamped in the order in which its plugin reports, unlike hooks
    why: str = ""  # what is wrong with junk
    # the thread and the tool
    agent: str = ""  # a subagent's id
    agent_type: str = ""
    tool: str = ""
    tool_id: str = ""
    tool_key: int = 0  # equal for the same tool with the same input
    spawned: str = ""  # the subagent that a tool left running in the background
    member: str = ""  # the teammate that this session is, as its lead calls it
    lead: str = ""  # how the id of its lead begins
    asks: str = ""  # permission | question | plan | form | choice
    inferred: bool = False  # something else was observed, which shows it
    early: bool = False  # hooks run before it asks; another event follows once it does
    detail: str = ""
    shown_digest: str = ""  # digest of what its dialog shows; see shown.py
    digest: str = ""  # digest of the answered request; see request.py
    request: str = ""  # name of the file with all that is asked
    pipe: str = ""  # the pipe on which its hook waits for an answer
    rule: str = ""  # the line of the CLI's settings that would spare the question
    file: str = ""  # the path of a file that a tool has changed
    writes: tuple[str, ...] = ()  # the paths of files that a tool is about to change
    # the session
    prompt_id: str = ""  # the CLI's id of the turn
    source: str = ""  # why it started or ended; the type of a notification
    about: str = ""  # what a notification names: elsewhere (another session) | tool; log: no tool
    prompt: str = ""
    message: str = ""
    error: str = ""
    mode: str = ""
    reviewer: str = ""  # person | program: who decides on its permissions
    headless: bool = False  # it has no terminal of its own
    model: str = ""
    title: str = ""
    named: bool = False  # the title was given by a person
    cwd: str = ""
    transcript: str = ""
    context: int = 0
    progress: int = -1  # percent; -1: not reported
    tasks: tuple[Task, ...] | None = None  # None: this CLI does not list them
    wakeups: int = 0
    again: bool = False  # a Stop hook had already continued the turn that ends
    anyones: bool = False  # it ends a turn: the session's, or one of a subagent that it cannot name
    # other evidence
    pid: int | None = None
    started: str = ""  # when the process started, to recognize reuse of its pid
    status: str = ""  # from the registry or the user
    stands: bool = False  # it states that still, although something newer said otherwise
    at: float = 0.0  # when that status began
    viewer: str = ""
    spare: bool = False  # its process shows no session, or another one
    alive: bool = True
    children: int = 0
    settings: dict[str, Any] = {}
    # another machine
    machine: str = ""
    row: dict[str, Any] = {}  # a session as that machine shows it: see row.py
    ids: tuple[str, ...] = ()  # ids of its sessions
    cursor: str = ""  # how far it has been followed
    done: bool = False  # everything up to the cursor has been reported

    @property
    def from_hook(self) -> bool:
        return self.key != 0


#: Fields with text to show: one short line each, without secrets.
LINES: Final = ("detail", "rule", "prompt", "message", "error", "title")


def junk(why: str, t: float, clock: float, name: str = "junk") -> Event:
    """Return an event for input that cannot be decoded: it is counted, and changes nothing."""
    return Event("junk", whole(name), t, clock, why=whole(why))


def line_of(e: Event) -> dict[str, Any]:
    """Return an event as a trace line, without default values; `evidence.py` decodes it."""
    facts: dict[str, Any] = msgspec.to_builtins(e)
    return {"t": facts.pop("clock"), "decoded": {k: v for k, v in facts.items() if v != {}}}
