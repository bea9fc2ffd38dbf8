"""Find lines for an agent's settings that would have spared questions, from the log of events.

Nothing is allowed automatically: the user adds these lines, or does not.  This file does no I/O
and knows no clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from .events import Event

OFTEN: Final = 3  # equal questions; with fewer, a rule saves too little
REQUESTS: Final = frozenset({"request", "agent request"})
#: Events that report a denial of the open questions of their session.
REFUSALS: Final = frozenset({"said denial", "interrupt", "said stop"})
NO: Final = frozenset({"deny", "stop"})


class Spared(Struct, frozen=True):
    """A line for the settings, and the questions that it would have spared."""

    rule: str
    agent: str
    count: int
    last: float
    folders: tuple[str, ...]


def spared(log: Iterable[tuple[str, Event]], folders: Mapping[str, str]) -> list[Spared]:
    """Return rules for permissions that were often asked and never denied, most frequent first.

    `log` has events with the session that each is about, `folders` where sessions work.
    """
    asked: dict[tuple[str, str], list[tuple[str, Event]]] = {}
    denied: set[tuple[str, str]] = set()
    for sid, e, refused in _answered(log):
        key = (e.origin.agent, e.rule)
        asked.setdefault(key, []).append((sid, e))
        if refused:
            denied.add(key)
    found = [
        Spared(
            rule,
            agent,
            len(told),
            max(e.t for _, e in told),
            tuple(dict.fromkeys(where for sid, e in told if (where := folders.get(sid) or e.cwd))),
        )
        for (agent, rule), told in asked.items()
        if len(told) >= OFTEN and (agent, rule) not in denied
    ]
    return sorted(found, key=lambda x: (-x.count, x.rule))


def _answered(log: Iterable[tuple[str, Event]]) -> Iterator[tuple[str, Event, bool]]:
    """Yield each question that a rule would spare, and whether it was denied."""
    waiting: dict[tuple[str, str, str], Event] = {}  # session, thread and tool → the question
    for sid, e in log:
        slot = (sid, e.agent, e.tool)
        if e.kind in REQUESTS and e.rule:
            if (before := waiting.pop(slot, None)) is not None:
                yield sid, before, False
            waiting[slot] = e
        elif e.kind in REFUSALS or (e.kind == "answer" and e.status in NO):
            mine = [s for s, asked in waiting.items() if s[0] == sid and _is_about(e, asked)]
            for each in mine:
                yield sid, waiting.pop(each), True
        elif slot in waiting and e.kind in ("tool end", "agent tool end"):
            yield sid, waiting.pop(slot), e.name == "PermissionDenied"
    for (sid, _, _), e in waiting.items():
        yield sid, e, False


def _is_about(e: Event, asked: Event) -> bool:
    """Return whether a denial may concern this question; in doubt, it does."""
    if e.request and asked.request:
        return e.request == asked.request
    return e.kind == "answer" or e.agent == asked.agent
