"""Evidence: a line of a trace, whose fields are written and read by the same Struct."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import UNSET, Struct

from .events import UNCOUNTED, Origin
from .session import Session


class Evidence(NamedTuple):
    """A trace line, and a key that is the same for every host that finds it.

    A line with a key that was folded lately is not folded again: the key of a value that may come
    back says what it replaces, as `learned` does.
    """

    line: Mapping[str, object]
    key: str


def learned(now: float, s: Session, facts: Mapping[str, object], of: str = "") -> Evidence:
    """Report facts about a session; `of`: the directory that they are about."""
    given = {"session_id": s.session_id, **facts}
    line = {"t": now, "facts": given} | ({"cwd": of} if of else {})
    return Evidence(line, f"facts {given} {of} after {s.learned}")


class TraceLine(Struct, omit_defaults=True, gc=False):
    """The content of a line under its key, such as `process`; `agents/trace_line.py` has the keys.

    Of them, `hook`, `facts`, `config` and what a user does (`MARKS`) have other fields.
    """

    session_id: str = ""
    pid: int = 0
    agent: str = ""
    # a process, a pane, an origin
    alive: Any = None  # whatever is true
    started: str = ""
    children: int = UNCOUNTED
    found: bool = False  # nobody saw when that began
    shared: bool = False
    many: bool = False
    env: dict[str, Any] = {}
    # a terminal
    tty: str = ""
    tmux: str = ""
    pane: str = ""
    nvim: str = ""
    kitty: str = ""
    ssh: str = ""
    # a view
    how: str = ""
    viewer: str = ""  # also beside it
    # a session file
    discovered: bool = False
    record: Any = UNSET  # None: it is gone
    # a screen, a title, a server
    says: str | None = None
    asks: str = ""
    tool: str = ""
    detail: str = ""
    # what a program reports of itself
    command: str = ""
    cwd: str = ""
    body: str = ""
    ends: str = ""  # prompt or exit, instead
    through: str = ""
    connection: str = ""
    # an answer, or with an outcome: what followed
    request: str = ""
    digest: str = ""
    choice: str = ""
    way: str = ""
    by: str = ""
    outcome: str = ""
    # another machine, as we call it: a session as it shows it, those that have ended, or all
    machine: str = ""
    row: dict[str, Any] | None = None
    all: list[Any] | None = None  # ids there
    gone: list[Any] | bool | None = None  # ids there; of a link: it is no longer followed
    up: bool | None = None
    why: str = ""
    cursor: str = ""  # how far it has been followed
    done: bool = False  # everything up to there was reported

    @property
    def fields(self) -> dict[str, Any]:
        """Return the fields as they are written."""
        return msgspec.to_builtins(self)  # type: ignore[no-any-return]

    def line(self, t: float, key: str) -> dict[str, Any]:
        return {"t": t, key: self.fields}

    @property
    def origin(self) -> Origin:
        """Return the terminal that it names."""
        return Origin(
            tty=self.tty or None,
            tmux=self.tmux or None,
            pane=self.pane or None,
            nvim=self.nvim or None,
            kitty=self.kitty or None,
            through=self.through,
            connection=self.connection,
            env={"ssh": self.ssh} if self.ssh else {},
        )


#: Key of a line of what a user does to a session → the kind of event, the field beside the
#: session's id, and the type of that.
MARKS: Final = {
    "goto": ("jump", "", str),
    "set": ("set", "status", str),
    "label": ("label", "label", str),
    "name": ("name", "name", str),
    "park": ("park", "parked", bool),
    "snooze": ("snooze", "until", float),
    "forget": ("forget", "", str),
}
#: What the machine of a session is asked for → the key of the line that it then writes.
ASKABLE: Final = {"acknowledge" if key == "goto" else key: key for key in MARKS if key != "set"}
