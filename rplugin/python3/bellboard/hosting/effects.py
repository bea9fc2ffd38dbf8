"""What must happen once in the world when a status changes: a command, claimed first."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping
from typing import Final

from ..core.notices import NEVER
from ..core.published import project_of
from ..core.session import Session
from ..storage.store import Busy, Change, Claim, Store
from .commands import Commands

LONGEST: Final = 0.1  # seconds in which commands are started, while the event loop stands still
PAUSE: Final = 0.25  # until the lock is tried again
MOST: Final = 1000  # that wait for others to end; what is older is not run any more


class Effects:
    """The commands of one host, by the status that they wait for; `ask` for every change.

    A command is a list of words.  It gets four more, never text put into a shell: the status
    before, the status now, the session and the project.  Hosts with the same command for the same
    status share it: one of them runs it.
    """

    def __init__(self, wanted: object, commands: Commands) -> None:
        self.wanted = {
            str(on): [str(w) for w in words]
            for on, words in (wanted.items() if isinstance(wanted, Mapping) else ())
            if isinstance(words, list | tuple) and words
        }
        self._commands = commands
        self._asked: dict[Claim, list[str]] = {}
        self._dropped = 0

    @property
    def notes(self) -> dict[str, str]:
        """For health: what was not run."""
        dropped = f"{self._dropped} were not run: too many waited for others to end"
        return {"callbacks": dropped} if self._dropped else {}

    def ask(self, change: Change, session: Session | None) -> None:
        """Note what this change asks for; `run` does it."""
        t = change.transition
        if not change.live or not self.wanted:
            return
        words = [t.before or "none", t.after or "none", t.session_id]
        words.append(project_of(session) if session else "")
        for on in ("transition", t.after or "ended"):
            if command := self.wanted.get(on):
                effect = f"{on}: {shlex.join(command)}"
                self._asked[change.id, effect] = [*command, *words]
        while len(self._asked) > MOST:
            del self._asked[next(iter(self._asked))]
            self._dropped += 1

    def run(self, store: Store, pid: int) -> float:
        """Do it, unless another host does; in how many seconds to come again for the rest.

        One claim at a time: a host that dies takes with it what it has claimed and not yet done.
        What finds too many still running is not claimed: another host may have room.
        """
        until = time.monotonic() + LONGEST
        full: set[str] = set()
        for claim, command in list(self._asked.items()):
            program = command[0]
            if time.monotonic() > until:
                return 0.0
            if program in full:
                continue
            if not self._commands.has_room(program):
                full.add(program)
                continue
            ours = claimed(store, claim, pid)
            if ours is None:
                return PAUSE
            del self._asked[claim]
            if ours:
                self._commands.start(command)
        if not self._asked:
            self._dropped = 0
        return self._commands.patience() if full else NEVER


def claimed(store: Store, claim: Claim, pid: int) -> bool | None:
    """Whether this host is the one to do it; None while another one holds the lock."""
    try:
        return bool(store.claim([claim], pid, time.time()))
    except Busy:
        return None
