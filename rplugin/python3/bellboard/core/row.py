"""A session as readers on other machines get it: an allow-list of its published form, cleaned.

What is not named here stays on its machine: prompts, messages, transcripts, folders, sockets,
terminals.  A row is made in the same way from the published form and from the line of a feed, so
a machine cannot send what it would not be allowed to show.

This file does no I/O, knows no clock, and tolerates any input.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from .events import AGENT, LONGEST_ID, LONGEST_MACHINE
from .published import Published
from .session import STATUSES, URGENCY
from .text import line
from .untrusted import LATEST, list_of, number_of

MOST_MEMBERS: Final = 100  # subagents, or background tasks
MOST_MARKERS: Final = 20
MOST_NUMBER: Final = 1 << 31  # limit of a count or a process id
LONGEST_AGENT: Final = 32  # characters of its name
#: Length of a session's id: others write their name for its machine, and its agent, before it.
LONGEST_SENT: Final = LONGEST_ID - LONGEST_MACHINE - LONGEST_AGENT - len("//")
WORD: Final = 60  # characters of a tool, a mode, a model
TERMINALS: Final = ("nvim", "tmux", "kitty", "tty")

#: Ids are safe in a file name, in a shell, and between slashes.
_ID: Final = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._:@+~=%,-]{{0,{LONGEST_ID - 1}}}")
_AGENT: Final = re.compile(rf"[a-z0-9][a-z0-9_-]{{0,{LONGEST_AGENT - 1}}}")
_MARKER: Final = re.compile(r"[a-z][a-z-]{0,19}")


class Member(Struct, frozen=True, omit_defaults=True, gc=False):
    """A subagent or a background task."""

    id: str
    type: str = ""
    since: float = 0.0
    description: str = ""
    blocked: bool = False


class Progress(Struct, frozen=True, gc=False):
    """How many of its tasks are done."""

    done: int
    total: int


class Row(Struct, frozen=True, omit_defaults=True, gc=False):
    """A session; the fields mean what they mean in the published form."""

    session_id: str
    status: str
    urgency: int
    agent: str
    since: float = 0.0
    updated: float = 0.0
    hidden: bool = False
    markers: tuple[str, ...] = ()
    kind: str = ""
    tool: str = ""
    detail: str = ""
    tool_since: float = 0.0
    quiet_since: float = 0.0
    asked_at: float = 0.0
    request: str = ""
    name: str = ""
    title: str = ""
    label: str = ""
    project: str = ""
    branch: str = ""
    repository: str = ""
    job: bool = False
    agents: tuple[Member, ...] = ()
    background: tuple[Member, ...] = ()
    tasks: Progress | None = None
    wakeups: int = 0
    mode: str = ""
    model: str = ""
    context: int = 0
    snoozed_until: float = 0.0
    submitted: float = 0.0
    pid: int = 0
    ssh: str = ""
    terminal: str = ""  # nvim | tmux | kitty | tty: what shows it over there


def row(p: Published) -> Row | None:
    """Return the row of a published session; None if its id cannot be sent to other machines.

    Also None if another machine or board reports it: no row circles between those that do so.
    """
    if p.get("machine") or p.get("board"):
        return None
    keys = {"nvim": "nvim", "tmux": "pane", "kitty": "kitty", "tty": "tty"}
    shown = (name for name, key in keys.items() if p.get(key))
    return row_of({**p, "terminal": next(shown, "")})


def row_of(given: object) -> Row | None:
    """Return a row that was sent, cleaned; None if it is not one."""
    if not isinstance(given, dict):
        return None
    sid, agent = id_of(given.get("session_id")), agent_in(given.get("agent", AGENT))
    if not sid or not agent or len(sid) > LONGEST_SENT:
        return None
    status = given.get("status")
    status = status if isinstance(status, str) and status in URGENCY else STATUSES[3]
    terminal = given.get("terminal")
    return Row(
        session_id=sid,
        status=status,
        urgency=URGENCY[status],
        agent=agent,
        since=time_in(given, "since"),
        updated=time_in(given, "updated"),
        hidden=given.get("hidden") is True,
        markers=_markers(given.get("markers")),
        kind=text_in(given, "kind", WORD),
        tool=text_in(given, "tool"),
        detail=text_in(given, "detail"),
        tool_since=time_in(given, "tool_since"),
        quiet_since=time_in(given, "quiet_since"),
        asked_at=time_in(given, "asked_at"),
        request=id_of(given.get("request")),
        name=text_in(given, "name"),
        title=text_in(given, "title"),
        label=text_in(given, "label"),
        project=text_in(given, "project"),
        branch=text_in(given, "branch"),
        repository=text_in(given, "repository"),
        job=given.get("job") is True,
        agents=_members(given.get("agents")),
        background=_members(given.get("background")),
        tasks=_progress(given.get("tasks")),
        wakeups=count_in(given, "wakeups"),
        mode=text_in(given, "mode", WORD),
        model=text_in(given, "model", WORD),
        context=count_in(given, "context"),
        snoozed_until=time_in(given, "snoozed_until"),
        submitted=time_in(given, "submitted"),
        pid=count_in(given, "pid"),
        ssh=text_in(given, "ssh"),
        terminal=terminal if isinstance(terminal, str) and terminal in TERMINALS else "",
    )


# ---------------------------------------------------------------- values


def id_of(value: object) -> str:
    """Return the id of a session or a request; "" if it is not valid."""
    return value if isinstance(value, str) and _ID.fullmatch(value) else ""


def agent_in(value: object) -> str:
    """Return the name of an agent; "" if it is not valid."""
    return value if isinstance(value, str) and _AGENT.fullmatch(value) else ""


def text_in(given: Mapping[str, Any], key: str, longest: int = LONGEST_ID) -> str:
    """Return a text as one short clean line."""
    value = given.get(key)
    return line(value, longest) if isinstance(value, str) else ""


def time_in(given: Mapping[str, Any], key: str) -> float:
    number = number_of(given.get(key))
    return number if number is not None and 0.0 < number <= LATEST else 0.0


def count_in(given: Mapping[str, Any], key: str, most: int = MOST_NUMBER) -> int:
    value = given.get(key)
    return value if type(value) is int and 0 < value < most else 0


# From an iterator, Python 3.10 makes an empty tuple that is not the default and would be sent.


def _markers(value: object) -> tuple[str, ...]:
    listed = list_of(value)[:MOST_MARKERS]
    return tuple([x for x in listed if isinstance(x, str) and _MARKER.fullmatch(x)])


def _members(value: object) -> tuple[Member, ...]:
    listed = list_of(value)[:MOST_MEMBERS]
    return tuple([_member(given) for given in listed if isinstance(given, dict)])


def _member(given: Mapping[str, Any]) -> Member:
    return Member(
        text_in(given, "id"),
        text_in(given, "type", WORD),
        time_in(given, "since"),
        text_in(given, "description"),
        given.get("blocked") is True,
    )


def _progress(value: object) -> Progress | None:
    if not isinstance(value, dict) or not count_in(value, "total"):
        return None
    return Progress(count_in(value, "done"), count_in(value, "total"))
