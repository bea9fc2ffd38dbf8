"""Observe Codex: its open threads, their logs, and its shared servers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from ...core.evidence import Evidence, TraceLine
from ...core.observing import Want
from ...core.session import Session, status_of
from ...system.reach import reach
from ..agent import Agent, Heard
from ..need import CHANGED, PATHS, RESCAN, Need, Observing
from ..tailing import Logs
from .clients import observe_clients
from .dialect import AT_WORK, KEY
from .server import ServerEvents
from .threads import OpenThread, home_in, locks_folder, thread_log, threads_in

THREADS: Final = Want("codex threads", ())
SERVER: Final = "codex server"
CLIENTS: Final = "codex clients"
SETTLE: Final = 0.2  # seconds from the making of a file to its lock
HEARD: Final = "heard"  # the server has sent a message, or is gone
OLDEST: Final = 60.0  # seconds; a time before that, or in the future, counts as now
PROGRAM: Final = "program"


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
