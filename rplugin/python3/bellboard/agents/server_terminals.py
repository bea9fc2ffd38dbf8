"""Observe in which terminals the sessions of a CLI's shared server are shown: those of its clients.

Hooks and plugins run in the server, which has no terminal, or that of whoever started it.  A client
names no session, but it works in the same folder and is connected to the server.  If it is not
clear which client shows a session, nothing is reported.

For the server, a session does not end with its terminal: no hook says that somebody has quit.  So
here a session ends with its terminal, once it is at rest: the server goes on with a running turn.
A session that is left for another one ends when that one gets a prompt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, NamedTuple

from ..core.evidence import Evidence, TraceLine
from ..core.session import Session, status_of
from ..system import processes
from ..system.deaths import Deaths
from ..system.places import Place, place_of
from ..system.reach import reach
from .need import CHANGED, RESCAN, Need

#: Statuses in which a session goes on when its terminal is gone.
AT_WORK: Final = frozenset({"working", "blocked", "background"})
#: Reasons of an end, as Codex names them.
QUIT: Final = "other"
CLEARED: Final = "clear"


class ServerClient(NamedTuple):
    """A terminal that shows sessions of a server."""

    pid: int
    started: str
    began: float
    cwd: str
    place: Place

    @property
    def tty(self) -> str:
        return self.place.tty


def client_at(pid: int) -> ServerClient:
    """Return the terminal of a process."""
    began, cwd = processes.began_at(pid) or 0.0, processes.cwd_of(pid)
    return ServerClient(pid, processes.started_of(pid), began, cwd, place_of(pid))


class ServerTerminals:
    """The terminals of the sessions of a server."""

    key: ClassVar[str]  # of the CLI

    def __init__(self, need: Need) -> None:
        self._need, self.server = need, int(need.want.of[0])
        self._sessions = need.sessions
        self._deaths: Deaths | None = None  # made on demand: most users never need it
        self._status: dict[str, str] = {}  # of sessions, as last seen
        self._clients: dict[str, ServerClient] = {}  # by session
        self._unclear: set[str] = set()  # sessions that any of several terminals may show
        self._left: set[str] = set()  # sessions at work whose terminal has ended

    def clients(self) -> list[ServerClient] | None:
        """Return the terminals that are connected to the server; None if they are not known.

        May hang.
        """
        raise NotImplementedError

    def client_of(self, session_id: str, there: Sequence[ServerClient]) -> ServerClient | None:
        """Return the terminal in a session's folder that shows it, if known."""
        return there[0] if len(there) == 1 else None

    def ended(self, session_id: str, reason: str) -> tuple[str, dict[str, str | dict[str, str]]]:
        """Return the event and the payload with which a CLI without a server reports an end."""
        raise NotImplementedError

    async def observe(self) -> None:
        """Report the terminals, and the ends of sessions with them."""
        news = {RESCAN}
        while True:
            if self.attend() or RESCAN in news:
                self.take(await reach(self.clients, f"{processes.PROC}/{self.server}/fd"))
            news = await self._need.news(CHANGED, RESCAN)

    def attend(self) -> bool:
        """Attend to sessions that have changed; return whether to look for terminals."""
        is_sought = False
        changed, self._need.changed = self._need.changed, set()
        for sid in self._status.keys() - self._sessions.keys():
            del self._status[sid]
            self._left.discard(sid)
            self._clients.pop(sid, None)
            self._unclear.discard(sid)
        for s in [self._sessions[sid] for sid in sorted(changed & self._sessions.keys())]:
            sid, status = s.session_id, status_of(s)
            before, self._status[sid] = self._status.get(sid), status
            if sid in self._clients and not s.tty:  # a hook of its start has cleared the terminal
                self._place(s, self._clients[sid])
            elif sid in self._left and status not in AT_WORK:
                self._left.discard(sid)
                self._end(s, QUIT)
            elif sid not in self._clients and before != status:
                if status in AT_WORK:
                    self._unclear.discard(sid)  # after a prompt, others may have quit
                is_sought = True
        return is_sought

    def close(self) -> None:
        """Stop observing."""
        if self._deaths is not None:
            self._deaths.close()

    def take(self, clients: list[ServerClient] | None) -> None:
        """Take the connected terminals, if they are known."""
        for sid, s in list(self._sessions.items()):
            if clients is None or sid in self._clients:
                continue
            there = [c for c in clients if s.tty == c.tty] or [c for c in clients if s.cwd == c.cwd]
            client = self.client_of(sid, there) if sid not in self._unclear else None
            for each in there:
                self._watch(each)
            if client is not None:
                self._take(s, client)
            elif there:
                self._unclear.add(sid)
            elif (s.tty or sid in self._unclear) and status_of(s) not in AT_WORK:
                self._end(s, QUIT)  # none of its terminals is left

    def _take(self, s: Session, client: ServerClient) -> None:
        """Note the terminal of a session, and end a session at rest that it showed before."""
        for sid in [sid for sid, known in self._clients.items() if known == client]:
            other = self._sessions.get(sid)
            if other is None:
                continue
            if status_of(other) in AT_WORK:
                continue  # it goes on, while the terminal shows this one
            if other.last > s.last:
                return  # the other session was used later
            self._end(other, CLEARED)
        self._left.discard(s.session_id)
        self._clients[s.session_id] = client
        self._watch(client)
        self._place(s, client)

    def _watch(self, client: ServerClient) -> None:
        if self._deaths is None:
            self._deaths = Deaths(self._died)
        self._deaths.watch(client.pid, client.started)

    def _died(self, pid: int, started: str) -> None:
        for sid in [sid for sid, client in self._clients.items() if client.pid == pid]:
            del self._clients[sid]
            if (s := self._sessions.get(sid)) is None:
                continue
            if status_of(s) in AT_WORK:
                self._left.add(sid)
            else:
                self._end(s, QUIT)
        self._need.stir(RESCAN)

    def _place(self, s: Session, client: ServerClient) -> None:
        shown = TraceLine(session_id=s.session_id, pid=self.server, **client.place._asdict())
        self._report({"client": shown.fields}, f"{s.session_id} in {client.pid} {s.hook_at}")

    def _end(self, s: Session, reason: str) -> None:
        """Report an end as a CLI without a server would report it."""
        self._clients.pop(s.session_id, None)
        name, hook = self.ended(s.session_id, reason)
        origin = {"agent": self.key, "pid": self.server, "shared": True}
        line = {"event": name, "hook": hook, "origin": origin}
        self._report(line, f"{s.session_id} left {s.tty} {s.hook_at} {reason}")

    def _report(self, line: Mapping[str, object], key: str) -> None:
        means = self._need.means
        means.report(Evidence({"t": means.clock(), **line}, f"{self.key} {key}"))
