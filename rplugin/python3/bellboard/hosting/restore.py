"""Restore the sessions that went down with their terminals, each where it was."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from ..agents.registry import agent_of, unnested
from ..core import words
from ..core.published import Published, publish_ended
from ..core.restore import Location, last_word, place_of, went_down
from ..core.session import Session
from ..system.failures import Declined
from ..system.mounts import near
from ..system.processes import began_at, runs
from ..system.tmux import Tmux, default_socket, in_shell, literal, quoted, socket_in

FIRST: Final = 1  # the process whose start is that of the machine, or of the container
#: The tmux session of a window whose own one is not known.
NAMELESS: Final = "restored"


class Lost(NamedTuple):
    """A session that went down: how and where to start it again, whoever reported that."""

    agent: str
    session_id: str
    argv: list[str]
    directory: str
    place: Location
    last: float  # when it last reported something
    shown: Published
    why: str = ""  # why it cannot be restored

    @property
    def record(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        names = {"project": words.project(self.shown), "title": words.title(self.shown)}
        fields = {k: v for k, v in (self._asdict() | names).items() if k != "shown" and v != ""}
        return {
            **fields,
            "place": {k: v for k, v in self.place._asdict().items() if v not in ("", -1)},
        }


def lost(sessions: Mapping[str, Session], environ: Mapping[str, str], now: float) -> list[Lost]:
    """Return the sessions that went down, in the order of their places. May hang."""
    booted = began_at(FIRST) or 0.0
    found = went_down(sessions, now, booted, runs, _has_left)
    return [_checked(_lost(s), s, environ) for s in found if agent_of(s.agent).program]


def _has_left(s: Session) -> bool:
    return s.end_reason in agent_of(s.agent).leaving


def _lost(s: Session) -> Lost:
    argv = agent_of(s.agent).restart(s)
    directory = s.project_dir or s.cwd  # a CLI finds its sessions by where it was started
    return Lost(
        *(s.agent, s.session_id, argv, directory, place_of(s), last_word(s), publish_ended(s))
    )


def _checked(x: Lost, s: Session, environ: Mapping[str, str]) -> Lost:
    """Return it with the reason why it cannot be restored, if there is one."""
    agent = agent_of(s.agent)
    if not x.argv:
        return x._replace(why=f"{agent.name} resumes no session by its id")
    if not os.path.isdir(x.directory):  # noqa: PTH112 - never raises
        return x._replace(why=f"its folder is gone: {x.directory}")
    if agent.keeps_transcripts and not os.path.isfile(s.transcript):  # noqa: PTH113
        why = (
            f"its transcript is gone: {s.transcript}" if s.prompt else "nothing was said in it yet"
        )
        return x._replace(why=why)
    if near(agent.program, environ.get("PATH", "")) is None:
        return x._replace(why=f"{agent.program} is not on PATH")
    return x


class Windows:
    """Opens sessions in tmux, each in the window that it had.

    Sessions of other terminals go into the tmux that we run in, else into that of the others, else
    into the usual one, if it runs.
    """

    def __init__(self, all_lost: Iterable[Lost], environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._panes: dict[Location, str] = {}  # of the windows that were opened
        own = (x.place for x in all_lost if x.place.kind == "tmux" and not x.why)
        used = (Location("tmux", place.socket, place.session or NAMELESS) for place in own)
        self._other = self._around() or next(used, None) or self._usual()

    def _around(self) -> Location | None:
        """Return the tmux session that we run in."""
        pane = self._environ.get("TMUX_PANE")
        return self._session(socket_in(self._environ), pane) if pane else None

    def _usual(self) -> Location | None:
        """Return the first session of the server that tmux uses if none is named."""
        return self._session(default_socket(self._environ))

    def _session(self, socket: str, pane: str | None = None) -> Location | None:
        there = (p for p in Tmux(socket).panes() or () if pane in (p.id, None)) if socket else ()
        return next((Location("tmux", socket, p.session_name) for p in there), None)

    def placed(self, x: Lost) -> Lost:
        """Return a session with the window that it will have; `why` says if it can have none."""
        if x.why or x.place.kind == "tmux":
            return x
        if self._other is not None:
            return x._replace(place=self._other._replace(instead_of=x.place.kind))
        if x.place.kind == "neovim":
            why = "it was in a Neovim, and no tmux runs: `:Bellboard restore` opens it in Neovim"
        else:
            why = f"no tmux runs; open it with: cd {quoted([x.directory])} && {' '.join(x.argv)}"
        return x._replace(why=why)

    def open(self, x: Lost) -> int:
        """Start a session in its window; return the server's process, or raise `Declined`."""
        place, line = x.place, in_shell(x.argv, x.directory)
        tmux, called = Tmux(place.socket), place.session or NAMELESS
        made = None
        if place.number >= 0 and (beside := self._panes.get(place)):
            made = tmux.split(beside, line)  # unless there is no room
        if made is None and (panes := tmux.panes()) is not None:
            names = (called, literal(called))
            there = next((p.session for p in panes if p.session_name in names), "")
            if there:
                made = tmux.open(there, line, place.window, is_shown=False)
            else:
                around = unnested(self._environ)
                made = tmux.begin(names[1], line, place.window, around, x.directory)
        if made is None:
            raise Declined(tmux.why)
        self._panes.setdefault(place, made.pane)
        return tmux.pid()
