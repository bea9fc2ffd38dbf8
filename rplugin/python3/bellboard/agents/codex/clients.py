"""Find the terminal of a thread that a shared server runs: the terminal of one of its clients.

Hooks then run in the server, which has no terminal, or the terminal of whoever started it.  A
client holds nothing that names its thread, but it works in the same folder and is connected to the
server.  Of several clients, the one that started last before the thread shows it: a terminal opens
a thread when it starts.  If that is not clear, nothing is reported.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from ...core.evidence import Evidence, TraceLine
from ...core.session import Session, status_of
from ...system import processes, ssh
from ...system.deaths import Deaths
from ...system.places import Place, place_of
from ...system.reach import reach
from ..need import CHANGED, RESCAN, Need
from .dialect import AT_WORK, KEY, NO_TERMINAL
from .threads import made_at

PROGRAM: Final = "codex"
OPENS: Final = 3.0  # seconds in which a terminal that starts opens its thread; it takes 0.6 s
APART: Final = 1.0  # seconds; two clients that start at once cannot be told apart
CLOCK: Final = 1.0  # seconds; the system reports its boot time to the second


class ServerClient(NamedTuple):
    """A terminal that shows threads of a server."""

    pid: int
    started: str
    began: float
    cwd: str
    place: Place

    @property
    def tty(self) -> str:
        return self.place.tty


def clients_of(server: int) -> list[ServerClient] | None:
    """Return the terminals that are connected to a server; None if they are not known.

    May hang.
    """
    peers = ssh.peers()
    if not peers:
        return None
    ends = {peers[name] for name in processes.descriptors(server) if name in peers}
    found = (pid for pid in processes.pids() if ends and pid != server and processes.tty_of(pid))
    return [
        ServerClient(
            pid,
            processes.started_of(pid),
            processes.began_at(pid) or 0.0,
            processes.cwd_of(pid),
            place_of(pid),
        )
        for pid in found
        if _is_terminal(pid) and not ends.isdisjoint(processes.descriptors(pid))
    ]


def client_of(thread: str, there: Sequence[ServerClient]) -> ServerClient | None:
    """Return the terminal in the thread's folder that shows it, if known."""
    if len(there) > 1:
        made = made_at(thread)
        near = [c for c in there if made and -CLOCK <= made - c.began <= OPENS]
        last = max((c.began for c in near), default=0.0)
        there = [c for c in near if c.began > last - APART]
    return there[0] if len(there) == 1 else None


def _is_terminal(pid: int) -> bool:
    program, *words = processes.argv_of(pid) or [""]
    return os.path.basename(program) == PROGRAM and not NO_TERMINAL & set(words)  # noqa: PTH119


# Observe in which terminals the sessions of shared servers of Codex are shown.
#
# For the server, a thread does not end with its terminal: no hook says that somebody has quit.
# So here a session ends with its terminal, once it is at rest: the server goes on with a
# running turn. A session that is left with /new or /clear ends when the next session of that
# terminal gets a prompt.


#: Reasons of an end, as Codex names them.
QUIT: Final = "other"
CLEARED: Final = "clear"


async def observe_clients(need: Need) -> None:
    """Report the terminals of a server's sessions, and their ends."""
    server = int(need.want.of[0])
    terminals = ClientTerminals(need, server)
    need.at_end = terminals.close
    news = {RESCAN}
    while True:
        if terminals.attend() or RESCAN in news:
            look = partial(clients_of, server)
            terminals.take(await reach(look, f"{processes.PROC}/{server}/fd"))
        news = await need.news(CHANGED, RESCAN)


class ClientTerminals:
    """The terminals of the sessions of a server."""

    def __init__(self, need: Need, server: int) -> None:
        self._need, self._server = need, server
        self._sessions = need.sessions
        self._deaths: Deaths | None = None  # made on demand: most users never need it
        self._status: dict[str, str] = {}  # of sessions, as last seen
        self._clients: dict[str, ServerClient] = {}  # by session
        self._unclear: set[str] = set()  # sessions that any of several terminals may show
        self._left: set[str] = set()  # sessions at work whose terminal has ended

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
            client = client_of(sid, there) if sid not in self._unclear else None
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
                return  # a terminal never leaves a running turn, so it does not show this thread
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
        shown = TraceLine(session_id=s.session_id, pid=self._server, **client.place._asdict())
        self._report({"client": shown.fields}, f"{s.session_id} in {client.pid} {s.hook_at}")

    def _end(self, s: Session, reason: str) -> None:
        """Report an end as a Codex without a server would report it."""
        self._clients.pop(s.session_id, None)
        name = "SessionEnd"
        hook = {"session_id": s.session_id, "hook_event_name": name, "reason": reason}
        origin = {"agent": KEY, "pid": self._server, "shared": True}
        line = {"event": name, "hook": hook, "origin": origin}
        self._report(line, f"{s.session_id} left {s.tty} {s.hook_at} {reason}")

    def _report(self, line: Mapping[str, object], key: str) -> None:
        means = self._need.means
        means.report(Evidence({"t": means.clock(), **line}, f"codex {key}"))
