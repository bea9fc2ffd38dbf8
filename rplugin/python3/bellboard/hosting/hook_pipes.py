"""Offer pipes to the hooks of permissions, and release hooks that wait for nothing.

While answers are on, each host offers a few pipes: they promise that a host is there to answer.
Every host holds the pipes of all open questions, so that any host may end, and sends a hook away
once its question has ended.  A subagent's hook is sent away at once: the CLI may show no
dialog while it waits.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from ..core.deadlines import NEVER
from ..core.session import Session, is_listed, questions_of
from ..storage.spool import Spool
from ..storage.state_folder import briefly
from ..storage.store import Store
from ..system.failures import described
from ..system.notes import Notes
from ..system.processes import is_alive, ran_at

OPTION: Final = "answers"  # the shared option
OFFERED: Final = 8  # pipes that no hook has taken yet
UNHEARD: Final = 1.0  # seconds in which the event of a hook that took a pipe must be folded
AGAIN: Final = 5.0
NONE: Final[frozenset[str]] = frozenset()


class HookPipes:
    """Looks after the pipes of hooks; `notes` has its problems, for health."""

    def __init__(self, spool: Spool) -> None:
        self.notes = Notes()
        self.is_on: bool | None = None  # None: not known yet
        self._pipes, self._hosts = spool.pipes, spool.hosts
        self._pid = os.getpid()
        self._changed: set[str] = set()  # sessions
        self._blind = 0.0  # since when questions may have come that are not known here
        self._asking: dict[str, frozenset[str]] = {}  # session → the pipes of its questions
        self._offered: set[str] = set()  # pipes that other hosts made
        self._unheard: dict[str, float] = {}  # pipe that is taken for no question → since when

    def note_changed(self, sids: Iterable[str]) -> None:
        """Note sessions that may ask something other than before."""
        self._changed.update(sids)

    def run(self, store: Store, sessions: Mapping[str, Session]) -> float:
        """Look after the pipes; return the seconds until the next call."""
        was, self.is_on = self.is_on, store.option(OPTION) is True
        self._follow(sessions, self._changed if was == self.is_on else list(sessions))
        self._changed, self._blind = set(), 0.0
        if self.is_on:
            found = self._pipes.found()
            return min(self._sort_out(found), self._offer(found), self._pipes.expire())
        if was is not False:
            for name in {*self._pipes.found(), *self._pipes.held}:
                self._pipes.dismiss(name)
        return NEVER

    def go_blind(self) -> float:
        """Handle that nothing can be folded now: if that lasts, no hook may wait for this host."""
        now = time.monotonic()
        self._blind = self._blind or now
        if (left := self._blind + UNHEARD - now) > 0:
            return left
        self.close()
        return NEVER

    def close(self) -> None:
        """Let go of all pipes. If another host can hold them, those of open questions stay."""
        asking = NONE
        if any(pid != self._pid for pid in self._hosts.alive()):
            asking = self._asked()
        for name in self._pipes.held:
            if name in asking:
                self._pipes.let_go(name)
            else:
                self._pipes.dismiss(name)
        self.is_on = None
        self._asking.clear()

    def _follow(self, sessions: Mapping[str, Session], changed: Iterable[str]) -> None:
        """Hold the pipes of new questions, and send away the hooks of others."""
        for sid in changed:
            s, before = sessions.get(sid), self._asking.pop(sid, NONE)
            named = frozenset(_named(s)) if s is not None else NONE
            asking = frozenset(_named(s, here=True)) if s is not None and self.is_on else NONE
            if asking:
                self._asking[sid] = asking
            for name in (before | named) - asking:
                self._pipes.dismiss(name)
            for name in asking - before:
                self._pipes.hold(name)

    def _sort_out(self, found: Mapping[str, bool]) -> float:
        """Send away hooks whose event asks nothing, and remove the pipes of dead hosts."""
        now, asked, wait = time.monotonic(), self._asked(), NEVER
        unheard: dict[str, float] = {}
        over: list[str] = []
        for name in self._pipes.held - found.keys():  # somebody has removed them
            self._pipes.let_go(name)
        for name, is_taken in found.items():
            if name in asked:
                continue
            if is_taken:
                since = unheard[name] = self._unheard.get(name, now)
                if (left := since + UNHEARD - now) > 0:
                    wait = min(wait, left)
                    continue
            elif name in self._pipes.held or self._is_offered(name):
                continue
            over.append(name)
        self._unheard = unheard
        self._offered &= found.keys()
        left = len(over)
        for name in briefly(over):
            self._pipes.dismiss(name)
            left -= 1
        return 0.0 if left else wait

    def _is_offered(self, name: str) -> bool:
        """Return whether the host that made a pipe still runs, and not only its pid lives again."""
        pid, made = map(int, name.split("."))
        if pid == self._pid or not is_alive(pid):
            return False
        if name not in self._offered and ran_at(pid, made / 1e9):  # asked once: it takes a while
            self._offered.add(name)
        return name in self._offered

    def _offer(self, found: Mapping[str, bool]) -> float:
        """Offer as many pipes as there should be."""
        held = self._pipes.held
        free = sum(name in held and not is_taken for name, is_taken in found.items())
        try:
            for _ in range(free, OFFERED):
                self._pipes.offer()
        except OSError as e:
            self.notes.say("answers", f"hooks cannot wait for answers: {described(e)}")
            return AGAIN
        self.notes.settle("answers")
        return NEVER

    def _asked(self) -> frozenset[str]:
        """Return the pipes of all open questions."""
        return NONE.union(*self._asking.values())


def _named(s: Session, here: bool = False) -> Iterator[str]:
    """Yield the pipes that a session's questions name; `here`: those whose dialog is shown now."""
    if here and not is_listed(s):
        return
    for run, b in questions_of(s):
        if b.pipe and not (here and (b.agent or run.headless)):
            yield b.pipe
