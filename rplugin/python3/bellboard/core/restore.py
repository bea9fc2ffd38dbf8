"""Which sessions went down with their terminals, and where each was, to be opened there again.

While a session runs, observers report what holds its terminal, and its tmux window, as facts.  It
went down if it was open when that ended: tmux, its Neovim, or all of it with the machine.  What a
user closes is not restored: the CLI says that its user left, or its terminal went on without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from .rules.steps import MOVES_ON
from .session import ABSENT, Session, is_nameless

#: Facts: the process that holds the terminal, as `PID START`; the tmux window, as socket, session,
#: index and name; the time of the end after which there is nothing to restore.
HOLDER, WINDOW, CLOSED = "holder", "window", "closed"
KEPT: Final = frozenset({HOLDER, WINDOW, CLOSED})  # facts that are not published
KEEP: Final = 7 * 86400.0  # seconds for which a session is offered
TOGETHER: Final = 5.0  # seconds from the end of a session to that of what held its terminal
LONG: Final = 60.0  # seconds after an end in which news of another session may come late
#: Ends of a session that is shown no more, or goes on under another id.
GIVEN_UP: Final = MOVES_ON | {"forget", "seen", "taken over"}


class Location(NamedTuple):
    """Where a session was: in a tmux window, a Neovim, or another terminal."""

    kind: str = "terminal"  # tmux | neovim | terminal
    socket: str = ""  # of the tmux server
    session: str = ""
    number: int = -1  # of the window, if it is known
    window: str = ""  # its name, if somebody gave it one
    nvim: str = ""  # the address of the Neovim
    instead_of: str = ""  # the kind of place that it was in, if it cannot be there again


def place_of(s: Session) -> Location:
    """Return where a session was."""
    match s.facts.get(WINDOW):
        case [str(socket), str(session), int(index), str(window)] if socket == s.tmux:
            return Location("tmux", socket, session, index, window)
    if s.nvim:
        return Location("neovim", nvim=s.nvim)
    return Location("tmux", s.tmux) if s.pane and s.tmux.startswith("/") else Location()


def held_by(s: Session) -> tuple[int, str] | None:
    """Return the process that held the terminal of a session, and its start, if they are known."""
    pid, _, started = str(s.facts.get(HOLDER, "")).partition(" ")
    return (int(pid), started) if pid.isdecimal() and started else None


def holder_words(pid: int, started: str) -> str:
    return f"{pid} {started}"


def is_to_judge(s: Session) -> bool:
    """Return whether a session has ended, and nobody knows yet whether its terminal did.

    What was learned later is about the terminal in which it was restored.
    """
    is_its_end = bool(s.ended) and s.learned < s.ended + TOGETHER
    return is_its_end and not _is_closed(s) and held_by(s) is not None


def _is_closed(s: Session) -> bool:
    """Return whether there is nothing to restore of a session that has ended."""
    closed = s.facts.get(CLOSED)
    return isinstance(closed, float) and closed >= s.ended


def last_word(s: Session) -> float:
    """Return when a session last reported something."""
    return max(s.started, s.hook_at, s.news)


def went_down(
    sessions: Mapping[str, Session],
    now: float,
    booted: float,
    runs: Callable[[int, str], bool],
    has_left: Callable[[Session], bool],
) -> list[Session]:
    """Return the sessions that went down, in the order of their places.

    `booted`: when the machine was started; `runs`: whether a process still does; `has_left`:
    whether the CLI said that its user left.
    """
    known = [s for s in sessions.values() if s.session_id and not s.machine]
    go_on = {before for s in known if s.turn != ABSENT for before in s.previous}
    heard: dict[tuple[int, str] | None, float] = {}
    for s in known:
        heard[held_by(s)] = max(heard.get(held_by(s), 0.0), s.hook_at)
    found = [
        s
        for s in known
        if s.session_id not in go_on
        and _has_ended(s, now)
        and not has_left(s)
        and _is_terminal_gone(s, booted, runs)
        and not (held_by(s) and heard[held_by(s)] > s.ended + LONG)
    ]
    return sorted(found, key=lambda s: (*place_of(s), s.started, s.session_id))


def _has_ended(s: Session, now: float) -> bool:
    """Return whether a session with a terminal has ended, and not because its user gave it up."""
    is_its_own = not (s.headless or s.job or s.teammate or s.through or s.record)
    is_over = s.turn == ABSENT and s.ended > now - KEEP and s.end_reason not in GIVEN_UP
    return is_its_own and is_over and not (_is_closed(s) or is_nameless(s.session_id))


def _is_terminal_gone(s: Session, booted: float, runs: Callable[[int, str], bool]) -> bool:
    """Return whether what held its terminal has ended; other terminals count if all has ended."""
    held = held_by(s)
    if held is None or place_of(s).kind == "terminal":
        return last_word(s) < booted
    return not runs(*held)
