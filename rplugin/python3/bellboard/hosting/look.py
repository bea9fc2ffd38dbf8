"""One look at all sessions, by a command while no host runs, as a host takes it when it starts.

A look asks the same witnesses, and what they find goes through the spool like all evidence.  The
first one after a time without any begins with the same doubt as a host: work that nothing proves
becomes `unknown`, once the look is over.  Until then, its clock stands still.  Without a host,
nothing that it changes is announced.  What it cannot verify in time is named instead.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

from ..agents.registry import KEYS, WITNESSED, agent_of
from ..core.evidence import Evidence
from ..core.published import Looked
from ..core.session import Session, is_listed, status_of
from ..core.untrusted import list_of, number_of, text_of
from ..storage.spool import name_of
from ..storage.store import LOOKED, SPACE, Busy, Newer
from ..system.files import is_folder
from ..system.locks import locked
from ..system.processes import FIRST, PROC, own_space
from ..system.reach import DEADLINE, Reach, Rounds, reach
from ..witnesses.observer import Observer, outlived, reports
from .turn import BACK, SharedBoard

PATIENCE: Final = DEADLINE  # seconds for all of it; with 50 sessions it takes 0.05
QUIET: Final = 0.01  # seconds without a result until evidence is folded; more may depend on them
TICK: Final = 0.001
GAP: Final = 30.0  # seconds between two looks that go on with one watch, as `fresh` of the rules
MOMENT: Final = 0.002  # seconds after it began until which a look trusts what it has not proven
PAUSE: Final = 0.005  # seconds until the database is tried again
MOST_NAMES: Final = 5000  # of folded evidence, which only hosts forget otherwise
#: A full disk, another process, a newer program, no thread: nothing can be verified then.
UNABLE: Final = (OSError, Busy, Newer, sqlite3.OperationalError, RuntimeError, ImportError)


def look(shared: SharedBoard, environ: Mapping[str, str], age: float = 0.0) -> Looked:
    """Fold what sessions show now, or share what a look found that began in the last `age`."""
    begun, until = time.time(), time.monotonic() + 2 * PATIENCE
    try:
        shared.store.database.check_version()
        if shared.store.database.readonly:
            return Looked(begun, None)
        with locked(shared.spool.home / "look.lock", 2 * PATIENCE):
            shared.catch_up()
            known = _known(shared)
            if not _sees_processes(shared, known["t"]):
                return Looked(begun, None)
            if begun - age <= known["t"] <= time.time():
                return Looked(known["t"], frozenset(known["unverified"]))
            return _Look(shared, environ, until).run()
    except UNABLE:
        with contextlib.suppress(*UNABLE):
            shared.catch_up()  # what was folded and not committed is not shown
        return Looked(begun, None)


def _used(environ: Mapping[str, str]) -> list[str]:
    """Return the witnessed CLIs that may have sessions: each takes long to load. May hang."""
    home = environ.get("HOME", "/")
    return [
        key
        for key in WITNESSED
        if key == KEYS[0]
        or is_folder(f"{home}/.{key}")
        or any(name.startswith(f"{key.upper()}_") for name in environ)  # it may be elsewhere
    ]


class _Look:
    """A look; its jobs run where they may hang, as those of a host."""

    def __init__(self, shared: SharedBoard, environ: Mapping[str, str], until: float) -> None:
        self._shared_board, self._environ, self._until = shared, environ, until
        self._t = time.time()
        self._is_over = False
        self._found: list[Evidence] = []
        self._checked: set[str] = set()  # sessions whose process is known
        self._failed: set[str] = set()  # sessions that could not be looked at
        self._unchecked: set[str] = set()  # sessions whose process is being looked at
        self._hung = frozenset(_known(shared)["unverified"])  # maybe

    def run(self) -> Looked:
        """Look, fold what is found, and share the result."""
        with self._shared_board.store.transaction():
            if self._shared_board.spool.hosts.is_watching():  # a host has started meanwhile
                return Looked(self._t, frozenset())
            watch = self._begin()
        self._forget()
        self._step()
        late = asyncio.run(self._look(watch["since"]))
        time.sleep(max(0.0, self._t + MOMENT - time.time()))
        self._is_over = True
        self._step()
        listed = filter(is_listed, self._sessions.values())
        unverified = frozenset(s.session_id for s in listed if self._is_unverified(s, late))
        result = {**watch, "t": self._t, "unverified": sorted(unverified)}
        with self._shared_board.store.transaction() as tx:
            tx.set_option(LOOKED, result, os.getpid(), time.time())
        return Looked(self._t, unverified)

    def _begin(self) -> dict[str, Any]:
        """Go on with the watch of the last look, or begin one; call this within the lock.

        The first one after a host, or after a while, begins one: nobody knows what was missed.
        """
        store, spool = self._shared_board.store, self._shared_board.spool
        hosts, known = str(store.option("watched_since")), _known(self._shared_board)
        if 0 <= self._t - known["t"] <= GAP and known["hosts"] == hosts:
            return known
        key = f"restart {os.getpid()} {self._t}"
        spool.write({"t": self._t, "restart": {"until": self._t + MOMENT}}, key)
        return {"since": str(self._t), "hosts": hosts}

    def _forget(self) -> None:
        """Forget folded names, if there are many: hosts do so all the time."""
        store = self._shared_board.store
        if store.database.all("SELECT count(*) FROM applied")[0][0] > MOST_NAMES:
            store.sweep(self._t, self._shared_board.spool.is_there)

    @property
    def _sessions(self) -> Mapping[str, Session]:
        return self._shared_board.board.sessions

    async def _look(self, generation: str) -> set[str]:
        """Fold all that is found; return the sessions that could not be looked at in time."""
        until = min(self._until, time.monotonic() + PATIENCE)
        reached = Reach().open()
        observer = Observer(self._found.append, time.time, self._environ, brief=True)
        observer.open(None, generation)
        self._found += filter(None, (outlived(self._t, s) for s in self._sessions.values()))
        rounds = Rounds()
        for agent in {agent_of(s.agent).key for s in _here(self._sessions.values())}:
            self._open(observer, agent)
        rounds.run("", partial(self._open_used, observer))
        changed, last, count = set(self._sessions), time.monotonic(), 0
        while True:
            here = _here(self._sessions[x] for x in changed & self._sessions.keys())
            for s in sorted(here, key=lambda s: s.session_id in self._hung):  # they come last
                try:
                    self._attend(s, observer, rounds, generation)
                except Exception:  # of any kind: it concerns this session only
                    self._failed.add(s.session_id)
            while (now := time.monotonic()) < until:
                if not rounds and observer.is_at_rest and reached.is_at_rest:
                    break
                if len(self._found) != count:
                    count, last = len(self._found), now
                elif self._found and now > last + QUIET:
                    break
                await asyncio.sleep(TICK)
            if not self._found:
                break
            changed, count = self._fold(), 0
            if now > until:
                break
        late = observer.late() | self._failed | self._unchecked | ({""} if "" in rounds else set())
        rounds.close()
        observer.close()
        reached.close()
        return late

    def _is_unverified(self, s: Session, late: set[str]) -> bool:
        if s.machine or status_of(s) == "unknown":
            return True  # only a host follows other machines
        if not late.isdisjoint({"", s.session_id}):
            return True
        is_old = s.last < self._t - self._shared_board.board.options.fresh
        return is_old and s.session_id not in self._checked

    async def _open_used(self, observer: Observer) -> None:
        """Observe the agents that are installed here as well."""
        home = self._environ.get("HOME", "/")
        for agent in await reach(partial(_used, dict(self._environ)), home):
            self._open(observer, agent)

    def _open(self, observer: Observer, agent: str) -> None:
        """Begin to observe an agent, and search for its sessions that nothing reported."""
        if agent in WITNESSED:
            observer.add(agent_of(agent))

    def _attend(self, s: Session, observer: Observer, rounds: Rounds, generation: str) -> None:
        """Check the processes of a session, and what its agent shows."""
        sid = s.session_id
        for pid, look in reports(s, time.time, generation):
            self._checked.add(sid)
            if look is not None:
                self._unchecked.add(sid)
                rounds.run(f"process {pid} {sid}", partial(self._check, sid, pid, look))
        observer.attend(self._sessions, (sid,))

    async def _check(self, sid: str, pid: int, look: Callable[[], list[Evidence]]) -> None:
        self._found += await reach(look, f"{PROC}/{pid}/environ")
        self._unchecked.discard(sid)

    # ------------------------------------------------------------ folding

    def _fold(self) -> set[str]:
        """Fold the events that wait; return the sessions that changed."""
        found = {name_of(evidence.key): evidence for evidence in self._found}
        self._found.clear()
        for name in found.keys() - self._shared_board.store.applied([*found]):
            self._shared_board.spool.write(found[name].line, found[name].key)
        return self._step()

    def _step(self) -> set[str]:
        """Fold the events that wait, once nobody else holds the lock."""
        changed: set[str] = set()
        while True:
            now = time.time()
            is_still = not self._is_over and now < self._t + BACK / 2  # else it seems set back
            try:
                turned = self._shared_board.turn(self._t if is_still else now)
                changed |= turned.changed
                if not turned.more:
                    return changed
            except Busy:
                if time.monotonic() > self._until:
                    raise
                time.sleep(PAUSE)


def _sees_processes(shared: SharedBoard, looked: float) -> bool:
    """Return whether the processes of sessions have the same pids for us as where they run.

    In a sandbox or container that shares the state folder, they would all look dead.  One that is
    made anew, with all that runs in it, has another namespace than before.
    """
    ours, known = own_space(), shared.store.option(SPACE)
    if not ours:
        return sys.platform != "linux"
    if ours == known:
        return True
    if known and ours != FIRST and (known == FIRST or time.time() < looked + GAP):
        return False
    with shared.store.transaction() as tx:
        tx.set_option(SPACE, ours, os.getpid(), time.time())
    return True


def _known(shared: SharedBoard) -> dict[str, Any]:
    """Return the shared result of the last look."""
    given = shared.store.option(LOOKED) or {}
    unverified = [x for x in list_of(given.get("unverified")) if isinstance(x, str)]
    words = {name: text_of(given, name) for name in ("since", "hosts")}
    return {**words, "t": number_of(given.get("t")) or 0.0, "unverified": unverified}


def _here(sessions: Iterable[Session]) -> list[Session]:
    """Return the listed sessions of this machine: the others decide, and no host asks them."""
    return [s for s in sessions if is_listed(s) and not s.machine]
