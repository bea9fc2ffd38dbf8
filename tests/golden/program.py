"""All that the golden day needs of the program: when a module moves, only this file changes."""

from __future__ import annotations

import contextlib
import io
import os
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec

from bellboard.agents.traces import Recorded, final_line, transition_line
from bellboard.core.board import Board
from bellboard.core.events import Event, line_of
from bellboard.core.notices import Notices, policy_of
from bellboard.core.published import by_urgency, ended, publish, snapshot
from bellboard.core.records import Folded, Transition
from bellboard.core.row import row
from bellboard.core.words import outdated, quiet, status_text, worded, worded_ended
from bellboard.hosting.channels import Channels
from bellboard.screen.history import show_reason, show_replay, show_story
from bellboard.screen.terminal import show_list
from bellboard.storage.store import Logged

__all__ = [
    "Board",
    "Event",
    "Folded",
    "Recorded",
    "Ringing",
    "Transition",
    "explained",
    "final_line",
    "line_of",
    "listed",
    "most_urgent",
    "over",
    "published",
    "replayed",
    "row_elsewhere",
    "snapshot",
    "status_text",
    "time_words",
    "transition_line",
    "worded",
]

#: Every channel works, whatever is installed here.
SETTINGS: Final = {"desktop": "notify-send", "player": ["player"], "command": ["command"]}
ENVIRONMENT: Final = {"TZ": "UTC", "COLUMNS": "100", "NO_COLOR": "1", "HOME": "/home/user"}


class Ringing:
    """The notices of one host in front, and the words of each."""

    def __init__(self, mode: str) -> None:
        self._notices = Notices(policy_of({"mode": mode}))
        self._channels = Channels(SETTINGS, {"PATH": ""})
        self._able = sorted(self._channels.able(True))
        self._said = 0

    def see(self, board: Board, changed: Iterable[str], now: float) -> None:
        self._notices.see(board.sessions, sorted(changed), now)

    def hear(self, changes: Iterable[Transition]) -> None:
        numbered = []
        for change in changes:
            self._said += 1
            numbered.append((self._said, change, True))
        self._notices.hear(numbered)

    def due(self, board: Board, now: float) -> Iterator[dict[str, Any]]:
        """Yield what is sent now."""
        while (notice := self._notices.next(now, self._able)) is not None:
            p = publish(board.sessions[notice.session_id])
            sent = notice._replace(channel="notify") if notice.channel == "sound" else notice
            command = self._channels.command_of(sent, p)  # a sound depends on the files here
            said = {"command": command} if command else self._channels.line_of(sent, p)
            yield {**said, "channel": notice.channel}
            self._notices.sent(notice, now)

    def calling(self, now: float) -> list[str]:
        return self._notices.list_for_float(now)[0]

    def wake(self, now: float) -> float:
        return self._notices.wake(now, self._able)


def published(board: Board, sid: str) -> dict[str, Any] | None:
    """Return a session as screens get it, or None if it is not listed."""
    s = board.sessions.get(sid)
    return worded(publish(s)) if s is not None and snapshot([s]) else None


def most_urgent(sessions: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return sessions in their order on every screen."""
    return sorted(sessions, key=by_urgency)


def row_elsewhere(board: Board, sid: str) -> dict[str, Any] | None:
    """Return a session as other machines get it."""
    s = board.sessions.get(sid)
    sent = row(publish(s)) if s is not None and not s.machine and snapshot([s]) else None
    return msgspec.json.decode(msgspec.json.encode(sent)) if sent is not None else None


def time_words(p: dict[str, Any], now: float) -> str:
    """Return the words that depend on the time."""
    return " ".join(filter(None, (outdated(p, now), quiet(p, now))))


def listed(board: Board, now: float, columns: int) -> list[str]:
    """Return what `bellboard list --all` prints."""
    return _printed(lambda: show_list(snapshot(board.sessions.values()), now, True), columns)


def explained(board: Board, sid: str, log: Iterable[Folded]) -> list[str]:
    """Return what `bellboard explain` prints of a session."""

    def show() -> None:
        if sid in board.sessions:
            show_reason(board.sessions[sid])
        show_story(_logged(f) for f in log)

    return _printed(show, 0)


def replayed(board: Board, log: Iterable[Folded]) -> list[str]:
    """Return what `bellboard replay` prints."""
    return _printed(lambda: show_replay(log, board), 0)


def over(board: Board) -> list[dict[str, Any]]:
    """Return the sessions that `bellboard list --ended --json` starts from."""
    return [worded_ended(p) for p in ended(board.sessions.values())]


def _logged(f: Folded) -> Logged:
    own = next((c for c in f.changes if c.session_id == f.session_id), None)
    before, after = (own.before, own.after) if own else (None, None)
    rule, taken, why = f.verdict
    return Logged(0, "", f.event, f.session_id, rule, taken, why, before, after)


def _printed(show: Callable[[], None], columns: int) -> list[str]:
    """Return the lines that a command prints, whatever the terminal, time zone and home are."""
    known = {key: os.environ.get(key) for key in ENVIRONMENT}
    os.environ.update({**ENVIRONMENT, "COLUMNS": str(columns)})
    time.tzset()
    try:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            show()
    finally:
        for key, value in known.items():
            if value is None:
                del os.environ[key]
            else:
                os.environ[key] = value
        time.tzset()
    return out.getvalue().splitlines()
