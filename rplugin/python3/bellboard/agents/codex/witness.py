"""Observe Codex: its open threads, their logs, its shared servers and the terminals of these."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from ...core.evidence import Evidence, TraceLine
from ...core.observing import Want
from ...core.session import Session, status_of
from ...system import processes, ssh
from ...system.reach import reach
from ..agent import Agent, Heard
from ..need import CHANGED, PATHS, RESCAN, Need, Observing
from ..server_terminals import AT_WORK, ServerClient, ServerTerminals, client_at
from ..tailing import Logs
from .dialect import KEY, NO_TERMINAL
from .server import ServerEvents
from .threads import OpenThread, home_in, locks_folder, made_at, thread_log, threads_in

THREADS: Final = Want("codex threads", ())
SERVER: Final = "codex server"
CLIENTS: Final = "codex clients"
SETTLE: Final = 0.2  # seconds from the making of a file to its lock
HEARD: Final = "heard"  # the server has sent a message, or is gone
OLDEST: Final = 60.0  # seconds; a time before that, or in the future, counts as now
PROGRAM: Final = "program"
OPENS: Final = 3.0  # seconds in which a terminal that starts opens its thread; it takes 0.6 s
APART: Final = 1.0  # seconds; two clients that start at once cannot be told apart
CLOCK: Final = 1.0  # seconds; the system reports its boot time to the second


def observing(agent: Agent, environ: Mapping[str, str], brief: bool) -> Observing:
    """Return the observers of Codex's sessions."""
    home = home_in(environ)

    def find(s: Session) -> tuple[str, partial[str]]:
        return home, partial(thread_log, home, s.session_id)  # no hook has reported it

    logs = Logs(agent, brief, find)

    def wanted(s: Session, now: float) -> Iterator[Want]:
        yield THREADS
        yield from logs.wanted(s, now)
        for pid, process in s.processes.items():
            if process.shared:
                yield Want(SERVER, (str(pid),))
                yield Want(CLIENTS, (str(pid),))

    observe = {
        THREADS.kind: observe_threads,
        logs.kind: logs.observe,
        SERVER: observe_server,
        CLIENTS: observe_clients,
    }
    return Observing(observe, wanted, (THREADS,), logs.forget)


async def observe_threads(need: Need) -> None:
    """Report the threads that Codex has open, and those that terminals now show."""
    folder = locks_folder(need.means.environ)
    before: frozenset[OpenThread] | None = None
    need.watch(folder)
    while True:
        found = await reach(partial(threads_in, folder), folder)
        for thread in found:
            if thread.id in need.sessions or (before is not None and thread in before):
                continue
            there = [s for s in need.sessions.values() if thread.pid in s.processes]
            if not there:
                _report(need, thread, _opened(thread, discovered=True))
            elif before is not None and not any(status_of(s) in AT_WORK for s in there):
                # Not of a subagent: after /clear or /new, the terminal shows this thread.
                is_hooked = any(s.hooked for s in there)
                _report(need, thread, _turned(thread) if is_hooked else _opened(thread))
        before = frozenset(found)
        if RESCAN not in await need.news(PATHS, RESCAN):
            await asyncio.sleep(SETTLE)


def _opened(thread: OpenThread, discovered: bool = False) -> dict[str, object]:
    record = {"sessionId": thread.id, "cwd": thread.cwd}
    known = TraceLine(pid=thread.pid, agent=KEY, discovered=discovered, record=record)
    return {"registry": known.fields}


def _turned(thread: OpenThread) -> dict[str, object]:
    """Return the report that a hook of Codex makes only later, with the thread's first prompt."""
    name = "SessionStart"
    hook = {"session_id": thread.id, "hook_event_name": name, "cwd": thread.cwd, "source": "clear"}
    return {"event": name, "hook": hook, "origin": {"agent": KEY, "pid": thread.pid}}


def _report(need: Need, thread: OpenThread, line: dict[str, object]) -> None:
    key = f"codex {thread.id} {thread.pid} {need.means.generation}"
    need.report(Evidence({"t": need.means.clock(), **line}, key))


async def observe_server(need: Need) -> None:
    """Report a shared server's messages about its sessions, which count at once.

    A terminal of such a session is only a client, and no hook says that a permission was granted;
    the server does, within a few milliseconds.  Failures are tried again when all is checked.
    """
    pid = int(need.want.of[0])
    while True:
        heard: deque[tuple[Heard, float]] = deque()
        ended: list[str] = []  # the reason
        left: dict[str, tuple[Heard, float]] = {}  # questions that a program decides, since when

        def hears(said: Heard, at: float, heard: deque[tuple[Heard, float]] = heard) -> None:
            heard.append((said, at))
            need.stir(HEARD)

        def ends(why: str, ended: list[str] = ended) -> None:
            ended.append(why)
            need.stir(HEARD)

        events = ServerEvents(pid, need.sessions.keys(), hears, ends)
        need.at_end = events.close
        while not ended:
            await need.news(HEARD, CHANGED)
            again = [x for x in left if x in need.changed or x not in need.sessions]
            need.changed.clear()
            # The log may name the reviewer only now.
            for said, at in (*(left.pop(sid) for sid in again), *_all_of(heard)):
                s = need.sessions.get(said.session_id)
                if s is None:
                    continue
                now = need.means.clock()
                t = at if now - OLDEST < at <= now else now
                left.pop(s.session_id, None)
                if said.seen.asks == "permission" and s.reviewer == PROGRAM:
                    left[s.session_id] = said, t
                    continue
                line = said.seen.evidence(t, s.session_id, pid, where="server").line
                key = f"codex {s.session_id} {said.seen.says} {said.seen.asks} {at or now}"
                need.report(Evidence(line, key))
        need.say(f"codex server {pid}", ended[0])
        await need.news(RESCAN)
        need.say(f"codex server {pid}", "")


def _all_of(heard: deque[tuple[Heard, float]]) -> Iterator[tuple[Heard, float]]:
    while heard:
        yield heard.popleft()


# The terminal of a thread is that of one of the server's clients.  Of several in the folder of the
# thread, the one that started last before the thread shows it: a terminal opens a thread when it
# starts.


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
        client_at(pid)
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
    return os.path.basename(program) == KEY and not NO_TERMINAL & set(words)  # noqa: PTH119


class CodexTerminals(ServerTerminals):
    """See `ServerTerminals`."""

    key = KEY

    def clients(self) -> list[ServerClient] | None:
        return clients_of(self.server)

    def client_of(self, session_id: str, there: Sequence[ServerClient]) -> ServerClient | None:
        return client_of(session_id, there)

    def ended(self, session_id: str, reason: str) -> tuple[str, dict[str, str | dict[str, str]]]:
        name = "SessionEnd"
        return name, {"session_id": session_id, "hook_event_name": name, "reason": reason}


async def observe_clients(need: Need) -> None:
    """Report the terminals of a server's sessions, and their ends."""
    terminals = CodexTerminals(need)
    need.at_end = terminals.close
    await terminals.observe()
