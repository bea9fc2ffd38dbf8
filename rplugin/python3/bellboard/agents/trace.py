"""Replay a trace with the code that a host runs, on the trace's own clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..core.board import Board
from ..core.events import Event
from ..core.records import Folded, Transition
from ..core.session import heard_of, is_hidden, is_listed, markers_of, question_of, status_of
from .recorded import Recorded


def replay(lines: Iterable[bytes], board: Board | None = None) -> Iterator[Folded]:
    """Fold the lines of a trace in their order."""
    board, recorded = board or Board(), Recorded()
    for raw in lines:
        if raw.strip():
            for event in recorded.events(raw):
                yield from board.fold(event)


def transition_line(c: Transition) -> dict[str, Any]:
    """Return a change of status as `replay --json` and `watch --json` print it."""
    return {
        "t": c.t,
        "session_id": c.session_id,
        "from": c.before,
        "to": c.after,
        "rule": c.rule,
        "why": c.why,
    }


def answer_line(t: float, session_id: str, e: Event) -> dict[str, Any]:
    """Return an answer, or what followed one, as `history --json` prints it."""
    said = {"answer": e.status, "way": e.source, "by": e.viewer, "outcome": e.message}
    return {"t": t, "session_id": session_id, "request": e.request, "digest": e.digest, **said}


def final_line(board: Board) -> dict[str, Any]:
    """Return the last line of a replay: the sessions listed at the end."""
    listed = [s for s in board.sessions.values() if is_listed(s)]
    return {
        "t": board.ledger.clock,
        "sessions": [
            {
                "session_id": s.session_id,
                "status": status_of(s),
                "since": s.since,
                "hidden": is_hidden(s),
                "markers": markers_of(s, status_of(s), question_of(s), is_hidden(s)),
                "detail": q.detail if (q := question_of(s)) else s.error or s.retrying,
                "quiet_since": heard_of(s) if s.quiet else 0.0,
                "tasks_done": s.tasks_done,
                "prompt": s.prompt,
            }
            for s in listed
        ],
    }
