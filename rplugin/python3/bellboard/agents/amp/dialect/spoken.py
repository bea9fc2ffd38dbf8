"""The dialect of Amp, as our plugin reports its events.

An event of a subagent's thread names that in `agent`, and the thread that started it in `thread`.
"""

from __future__ import annotations

from typing import Final

from ....core.untrusted import Facts, text_of
from ...words import Worded, Words, kind_in

#: Event → kind.
KINDS: Final[dict[str, str]] = {
    "session.start": "start",
    "agent.start": "prompt",
    "agent.end": "stop",  # or interrupt, failure: by its status
    "thread.state": "note",  # or request, form answer, failure: by what it was, and is now
}
FIELDS: Final = {
    "session_id": "thread",
    "agent": "agent",
    "cwd": "cwd",
    "prompt": "message",
}
ENDS: Final = {"cancelled": "interrupt", "error": "failure"}
#: What a thread does now → kind.
STATES: Final = {"awaiting-approval": "request", "error": "failure"}
_outcome, _state_now = kind_in(ENDS, "status"), kind_in(STATES, "state")


def _start(top: Facts, facts: Facts) -> str | None:
    return "agent start" if facts.get("agent") else None


def _end(top: Facts, facts: Facts) -> str | None:
    return "agent stop" if facts.get("agent") else _outcome(top, facts)


def _state(top: Facts, facts: Facts) -> str | None:
    return _state_now(top, facts) or ("form answer" if text_of(top, "was") in STATES else None)


DIALECT: Final = Worded(
    "amp",
    Words(
        KINDS,
        {"agent.start": _start, "agent.end": _end, "thread.state": _state},
        FIELDS,
        event="event",
        once=True,
    ),
)
