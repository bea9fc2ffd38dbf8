"""Turn the lines of a recording of a real CLI into the evidence that its witnesses report.

A recording is made from outside, while a CLI is driven in a terminal.  Its lines name a log, a
title or a process, but not the session, so the session in the terminal is remembered.  The same
agents decode them as in a host.  Lines of an ordinary trace pass through.

    event, hook, origin, pid, ppid   a hook and the process that ran it; a plugin is part of it
    file, line                       a line that was appended to the CLI's log
    title                            the title of the terminal
    rpc                              a message of the CLI's server to a client
    process                          the process that the terminal was opened for

This file does no I/O, knows no clock, and tolerates any input.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any, Final

from ..core.board import Board
from ..core.events import Event
from ..core.evidence import TraceLine
from ..core.records import Folded, Transition
from ..core.session import heard_of, is_hidden, is_listed, markers_of, question_of, status_of
from ..core.untrusted import Facts, number_of, text_of
from .agent import tells
from .registry import agent_of
from .titles import Titles
from .trace_line import fields_in, from_line, pid_of

MOST: Final = 1000  # lines to keep of a log whose session is not known yet


class Recorded:
    """Reads the lines of one trace in their order."""

    def __init__(self) -> None:
        self._agent = ""  # the agent in the recording, once a hook has named it
        self._logs: dict[str, str] = {}  # name of a log → its session
        self._early: list[Facts] = []  # lines of logs without a session
        self._ran: dict[str, int] = {}  # session → the process that ran its newest hook
        self._parents: dict[str, str] = {}  # session of a subagent → the session that shows it
        self._terminal = 0  # the process that the terminal was opened for
        self._running: set[int] = set()  # processes in the terminal
        self._sitting: tuple[str, int] | None = None  # the session in the terminal, and its process
        self._titles: Titles | None = None
        self._title = ""

    def events(self, raw: bytes) -> Iterator[Event]:
        """Decode a line."""
        fields = fields_in(raw)
        if isinstance(fields, Event):
            yield fields
        elif not isinstance(fields, dict) or number_of(fields.get("t")) is None:
            yield from_line(fields)
        elif isinstance(fields.get("hook"), dict) and "ppid" in fields:
            yield from self._hook(fields)
        elif "file" in fields and isinstance(fields.get("line"), dict):
            yield from self._log(fields)
        elif isinstance(fields.get("rpc"), dict):
            yield from self._heard(fields["t"], fields["rpc"])
        elif isinstance(fields.get("title"), str):
            self._title = fields["title"]
            yield from self._titled(fields["t"])
        else:
            yield from_line(fields)
            if self._agent and isinstance(fields.get("process"), dict):
                yield from self._ended(fields["t"], fields["process"])
            elif isinstance(fields.get("process"), dict):
                self._terminal = pid_of(fields["process"].get("pid")) or 0

    def _hook(self, fields: Facts) -> Iterator[Event]:
        origin = fields["origin"] if isinstance(fields.get("origin"), dict) else {}
        env = origin["env"] if isinstance(origin.get("env"), dict) else {}
        rows = _rows(origin.get("ps"))
        pid = pid_of(fields["ppid"] if rows else fields.get("pid"))
        argv = next((row[5:] for row in rows if row[0] == str(pid)), [])
        self._agent = text_of(origin, "agent") or self._agent
        agent = agent_of(self._agent)
        if agent.serves(argv):
            where: Facts = {"shared": True}
        else:
            socket = text_of(env, "TMUX").rsplit(",", 2)[0]
            where = {"tmux": socket, "pane": text_of(env, "TMUX_PANE")}
        event = self._reported({**fields, "origin": {**origin, **where, "pid": pid}})
        yield event
        if not event.session_id or pid is None:
            return
        self._ran[event.session_id] = pid
        if event.kind == "end":
            if self._sitting == (event.session_id, pid):
                self._sitting = None
            return
        leaders = {row[3] for row in rows if row[0] == str(pid)}
        if pid == self._terminal or str(self._terminal) in leaders or "shared" in where:
            self._running.add(pid)
            yield from self._sits(event, pid)
        if event.transcript:
            self._logs[_log_name(event.transcript)] = event.session_id
        early, self._early = self._early, []
        for line in early:
            yield from self._log({**line, "t": fields["t"]})

    def _reported(self, fields: Facts) -> Event:
        """Decode a hook; in a subagent's session, the hook may name only that session."""
        event = from_line(fields)
        if parent := self._parents.get(event.session_id):
            event = from_line({**fields, "hook": {**fields["hook"], "parent": parent}})
        if event.kind == "agent start" and event.agent:
            self._parents[event.agent] = event.session_id
        return event

    def _sits(self, event: Event, pid: int) -> Iterator[Event]:
        if self._sitting != (event.session_id, pid):
            self._sitting = (event.session_id, pid)
            self._titles = Titles(agent_of(self._agent))
            yield from self._titled(event.t)

    def _titled(self, t: float) -> Iterator[Event]:
        seen = self._titles.take(self._title) if self._titles and self._sitting else None
        if seen is not None and self._sitting is not None:
            yield from_line(seen.evidence(t, *self._sitting, where="title").line)

    def _heard(self, t: float, message: Facts) -> Iterator[Event]:
        said = agent_of(self._agent).heard(message) if self._agent else None
        pid = self._ran.get(said.session_id) if said is not None else None
        if said is not None and pid is not None:
            yield from_line(said.seen.evidence(t, said.session_id, pid, where="server").line)

    def _log(self, fields: Facts) -> Iterator[Event]:
        name = text_of(fields, "file")
        session = self._log_of(name) or self._logs.get(_log_name(name))
        if not session:
            self._early = [*self._early[1 - MOST :], fields]
            return
        given = {"session_id": session, "agent": self._agent, "entry": fields["line"]}
        event = from_line({"t": fields["t"], "transcript": given})
        if tells(event):
            yield event

    def _log_of(self, name: str) -> str:
        latest = self._sitting[0] if self._sitting else ""
        return agent_of(self._agent).log_of(name, latest) if self._agent else ""

    def _ended(self, t: float, process: Facts) -> Iterator[Event]:
        """Handle the end of the terminal's process: the others lose their terminal."""
        pid = pid_of(process.get("pid")) or 0
        if process.get("alive"):
            self._terminal = pid
            return
        for other in sorted(self._running - {pid}) if pid == self._terminal else ():
            yield from_line(TraceLine(pid=other, alive=False, found=True).line(t, "process"))
        self._running, self._sitting, self._titles = set(), None, None


def _rows(listed: object) -> list[list[str]]:
    """Return the processes of a hook: pid, ppid, group, leader, terminal, words."""
    rows = [row.split() for row in listed if isinstance(row, str)] if type(listed) is list else []
    return [row for row in rows if len(row) > 5 and row[0].isdigit()]


def _log_name(path: str) -> str:
    """Return the name that identifies a log: a recording names it without its folder."""
    return PurePosixPath(path).name


# Replay a trace with the code that a host runs, on the trace's own clock.


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
    """Return an answer, or its outcome, as `history --json` prints it."""
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
