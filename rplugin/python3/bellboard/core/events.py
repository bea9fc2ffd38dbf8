"""What happened, in neutral words: frozen events, whose *kinds* are the rows of the table.

Rules of this file: it does no I/O and knows no clock.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct

from .detail import whole

LONGEST_ID: Final = 200  # a longer session id is no id
UNCOUNTED: Final = -1  # nobody looked how many children there are
AGENT: Final = "claude"  # of what names none
SPAWNS: Final = frozenset({"Agent", "Task"})  # tools that run a subagent
AHEAD: Final = 5.0  # a stamp further in the future counts as now


class Origin(Struct, frozen=True, omit_defaults=True, gc=False):
    """Where an event came from, as far as it could say."""

    agent: str = AGENT
    pid: int | None = None
    tty: str | None = None
    tmux: str | None = None  # the server's socket
    pane: str | None = None
    nvim: str | None = None
    env: dict[str, str] = {}  # by neutral names: `VARIABLES` of a dialect has them


class Task(Struct, frozen=True, omit_defaults=True, gc=False):
    """A background task as a Stop lists it."""

    id: str
    type: str
    description: str = ""


class Event(Struct, frozen=True, omit_defaults=True, gc=False):
    """One piece of evidence: its kind, its time, and the few facts that rules or displays use."""

    kind: str
    name: str
    t: float  # when it happened
    clock: float  # when it became known
    session_id: str = ""
    origin: Origin = Origin()
    key: int = 0  # equal for the same event told twice
    why: str = ""  # for junk: what is wrong with it
    # the thread and the tool
    agent: str = ""  # a subagent's id
    agent_type: str = ""
    tool: str = ""
    tool_id: str = ""
    tool_key: int = 0  # equal for the same tool with the same input
    spawned: str = ""  # the subagent that a tool left running in the background
    asks: str = ""  # permission | question | plan | form | choice
    detail: str = ""
    digest: str = ""  # of all that is asked
    # the session
    prompt_id: str = ""  # the turn that it belongs to, as the CLI calls it
    source: str = ""  # of a start; the reason of an end; the type of a notification
    prompt: str = ""
    message: str = ""
    error: str = ""
    mode: str = ""
    model: str = ""
    title: str = ""
    named: bool = False  # the title was given by a person
    cwd: str = ""
    transcript: str = ""
    context: int = 0
    tasks: tuple[Task, ...] | None = None  # None: this CLI lists none
    wakeups: int = 0
    # other evidence
    pid: int | None = None
    started: str = ""  # the process's own start, against reuse of its pid
    status: str = ""  # what the registry says, or a person
    at: float = 0.0  # since when it says so
    viewer: str = ""
    alive: bool = True
    children: int = 0
    settings: dict[str, Any] = {}

    @property
    def from_hook(self) -> bool:
        return self.key != 0


#: Fields that hold words for people: one short line each, without secrets.
LINES: Final = ("detail", "prompt", "message", "error", "title")


def junk(why: str, t: float, clock: float, name: str = "junk") -> Event:
    """What could not be read: it changes nothing, and is counted."""
    return Event("junk", whole(name), t, clock, why=whole(why))


def line_of(e: Event) -> dict[str, Any]:
    """The trace line that carries it, known to `evidence.py`; what has its default is left out."""
    facts: dict[str, Any] = msgspec.to_builtins(e)
    return {"t": facts.pop("clock"), "decoded": {k: v for k, v in facts.items() if v != {}}}
