"""One step of a host: lock, read, fold, commit, unlink (the contract is in `store.py`)."""

from __future__ import annotations

import contextlib
import math
import os
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from ..core import evidence
from ..core.board import Board
from ..core.events import Event, Origin, hook
from ..core.ledger import Folded
from ..core.options import Options, options_of
from ..storage.spool import Item, Refused, Spool
from ..storage.store import Store
from ..witnesses.processes import Ttys

BATCH: Final = 1000  # files in one transaction, so that other hosts need not wait long:
LONGEST: Final = 0.1  # nor longer than this, for they may be big
ORIGINS: Final = 256  # remembered; the spool remembers as many headers
BACK: Final = 1.0  # the board's clock is never that far ahead, unless the machine's was set back
UNNOTICED: Final = 60.0  # so long the clock may be back before a host looks: twice its rescan
LINE: Final = "line."  # evidence of hosts: several may see the same and tell it under one name


class Step(NamedTuple):
    """What one step came to."""

    more: bool  # files still wait
    changed: set[str]  # sessions that may have to be published anew
    left: int = 0  # files that are folded but cannot be removed


class Clerk:
    """Keeps one host's board true to what all hosts committed."""

    def __init__(self, spool: Spool, store: Store, watching: bool = False) -> None:
        self.spool = spool
        self.store = store
        self.board = Board()
        self.refused = 0  # files set aside
        self.watching = watching  # this is a host; a command that folds in passing is none
        self._options: object = None  # as the table has them
        self._watched_since: float | None = None
        self._backlog: list[str] = []  # what was listed, newest first
        self._unlinked: list[str] = []
        self._ahead = False  # the board in memory is ahead of what was committed
        self._ttys = Ttys()
        self._origins: dict[int, tuple[object, Origin]] = {}

    def preview(
        self, now: float, arrived: Collection[str], show: Callable[[set[str]], None]
    ) -> None:
        """Show what an event that came alone will change, without waiting for the lock.

        What it really comes to, `step` tells; here it changes nothing.
        """
        if self._ahead or self._backlog or self.store.is_changed:
            return
        for name in self.spool.only(arrived):
            with contextlib.suppress(Exception):  # whatever is wrong with it, `step` says it
                item = self.spool.read(name)
                if item is not None:
                    for event in self._events(item, now):
                        self.board.suppose(event, show)

    def step(self, now: float, arrived: Collection[str] = ()) -> Step:
        """Fold what waits and what is due; raises Busy while another host holds the lock.

        `arrived`: these paths came into new/, and nothing else is known to wait anywhere.
        """
        if arrived:
            return self._fold(now, arrived)
        due = self.board.due()
        is_due = due is not None and due <= now
        if is_due or self._backlog or self._is_set_back(now) or self._holds_any():
            return self._fold(now)
        return Step(False, self.catch_up())

    def catch_up(self) -> set[str]:
        """Only read what others committed; the sessions that may have changed."""
        self.store.look()
        return self._refresh()

    def sweep(self, now: float) -> None:
        """Forget the names of files that are gone, whoever folded them."""
        self.store.sweep(now, self._is_there)

    def _refresh(self) -> set[str]:
        changed: set[str] = set()
        if not (self.store.is_changed or self._ahead):
            return changed
        self.store.check_version()
        board, options = self.board, self._options
        if self._ahead:  # what was folded is not true: begin again with what is
            changed = set(board.sessions)
            board, options, self.store.revision, self._backlog = Board(), None, 0, []
        changed |= self.store.refresh(board)
        stored = self.store.option("config")
        if stored != options:
            board.configure(options_of(stored or {}, Options()))
        self.board, self._options, self._ahead = board, stored, False
        self._watched_since = self.store.option("watched_since")
        self.store.caught_up()
        return changed

    def _fold(self, now: float, arrived: Collection[str] = ()) -> Step:
        spool, store = self.spool, self.store
        with store.lock():
            changed = self._refresh()
            self._ahead = True  # until COMMIT
            if not arrived:
                spool.claim_slots()
            old = bool(self._backlog)  # more may have come since it was listed
            if not old:
                self._backlog = spool.only(arrived) or spool.scan()[::-1]
            folded = list(self._set_back(now)) if self._is_set_back(now) else []
            names, fresh = self._fold_files(folded, now)
            folded += [("", f) for f in self.board.advance(now)]
            self._share_options(folded, now)
            changed |= self.board.dirty
            # a hook's name does not come back; that of evidence may, and is kept for a while
            store.forget_applied(n for n in self._unlinked if not n.startswith(LINE))
            store.write(self.board, fresh, folded, self._live_since(), now, len(self._backlog))
        self._ahead = False
        left = set(spool.unlink(names))
        self._unlinked = [n for n in names if n not in left]
        store.remember_applied()
        return Step(old or bool(self._backlog), changed, len(left))

    def _fold_files(
        self, folded: list[tuple[str, Folded]], now: float
    ) -> tuple[Sequence[str], Sequence[str]]:
        """Fold the oldest ones: the names of all that are done with, and of those done just now."""
        until = time.monotonic() + LONGEST
        batch = self._backlog[: -BATCH - 1 : -1]
        applied = self.store.applied(batch)
        names: list[str] = []
        fresh: list[str] = []
        for name in batch:
            if name not in applied:
                if fresh and time.monotonic() > until:
                    break
                folded += self._fold_file(name, now)
                fresh.append(name)
            names.append(name)
        del self._backlog[len(self._backlog) - len(names) :]
        return names, fresh

    def _fold_file(self, name: str, now: float) -> list[tuple[str, Folded]]:
        """One file; whatever is wrong with it, the rest goes on."""
        try:
            item = self.spool.read(name)
            if item is None:
                return []
            found: list[tuple[str, Folded]] = []
            for event in self._events(item, now):
                if event.kind == "junk":
                    self._refuse(name, "no event", event.why)
                folded = self.board.fold(event)
                found += [(name if f.event.kind == event.kind else "", f) for f in folded]
            return found
        except Refused as why:
            self._refuse(name, str(why))
        except Exception:
            # one poisoned event must not crash-loop every Neovim
            self._refuse(name, "it raised", traceback.format_exc())
        return []

    def _refuse(self, name: str, reason: str, detail: str = "") -> None:
        self.refused += 1
        self.spool.set_aside(name, reason, detail)

    def _events(self, item: Item, now: float) -> list[Event]:
        # A backlog is folded with the clock of its events: what time brought between them counts.
        clock = max(self.board.ledger.clock, min(now, item.t))
        if item.kind == "line":
            event = evidence.read(item.payload, clock)
            return [event if event.clock == clock else replace(event, clock=clock)]
        if item.event == "view":
            return evidence.of_tmux(item.payload, item.t, clock, evidence.origin_of(item.origin))
        return [hook(item.payload, item.t, clock, self._origin(item.origin), item.truncated)]

    def _origin(self, told: dict[str, object] | None) -> Origin:
        """Where it came from, with its terminal; the spool gives the same object for the same."""
        known = self._origins.get(id(told))
        if known is not None and known[0] is told:
            return known[1]
        origin = evidence.origin_of(told)
        if origin.tty is None and origin.pid is not None:
            tty = self._ttys.of(origin.pid)
            origin = replace(origin, tty=tty) if tty else origin
        if len(self._origins) >= ORIGINS:
            self._origins.clear()
        self._origins[id(told)] = (told, origin)
        return origin

    # ------------------------------------------------------------ the clock, who watches, options

    def _is_set_back(self, now: float) -> bool:
        return self.board.ledger.clock > now + BACK

    def _set_back(self, now: float) -> Iterator[tuple[str, Folded]]:
        """The machine's clock was set back, so the board's follows; logged, to be replayed."""
        t = now
        for name in self._backlog[-1:]:  # what waits may have happened since, and counts
            with contextlib.suppress(FileNotFoundError):
                t = min(t, max(now - UNNOTICED, os.lstat(self.spool.new / name).st_mtime))
        if self._watched_since is not None and self._watched_since > t:
            self._watched_since = t
            self.store.set_option("watched_since", t, os.getpid(), now)
        for f in self.board.fold(Event("clock", "clock", t, t)):
            yield f"clock {now:.6f}", f

    def _live_since(self) -> float:
        """What happened before was watched by nobody, so it is not announced."""
        if not (self.watching or self.spool.alive_hosts()):
            return math.inf
        return math.inf if self._watched_since is None else float(self._watched_since)

    def _share_options(self, folded: Sequence[tuple[str, Folded]], now: float) -> None:
        """Every host folds with what was configured last."""
        told = [f.event for _, f in folded if f.event.kind == "config"]
        if told:
            self._options = settings_of(self.board.options)
            pid = told[-1].settings.get("pid")
            self.store.set_option("config", self._options, pid if type(pid) is int else 0, now)

    # ------------------------------------------------------------ files

    def _is_there(self, name: str) -> bool:
        return os.path.lexists(self.spool.new / name)

    def _holds_any(self) -> bool:
        return _holds(self.spool.new) or _holds(self.spool.slot)


def _holds(directory: Path) -> bool:
    """Whether anything lies there; costs a few microseconds."""
    with os.scandir(directory) as entries:
        return next(entries, None) is not None


def settings_of(options: Options) -> dict[str, Any]:
    """All of them as settings, so that what a user leaves out goes back to its default."""
    return {**msgspec.to_builtins(options), "approval": options.approval or False}
