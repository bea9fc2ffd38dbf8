"""Commands to run once per machine when a status changes; each is claimed before it runs."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping
from typing import Final

from ..core.events import AHEAD
from ..core.ledger import Transition
from ..core.published import project_of
from ..core.session import Session, is_far, status_of
from ..storage.history import Change
from ..storage.store import Busy, Claim, Store
from .commands import Commands

SLICE: Final = 0.1  # seconds in a row to start commands in: the event loop is blocked meanwhile
PAUSE: Final = 0.25  # seconds until the lock is tried again
LATE: Final = 60.0  # seconds after which a change that another followed is history
MOST: Final = 1000  # commands waiting, here and of other machines each; the oldest are dropped


class Effects:
    """The commands of one host, by status; call `ask` for every change.

    A command is a list of words.  It gets four more arguments, never through a shell: the old
    status, the new status, the session and the project.  If several hosts have the same command
    for the same status, one of them runs it.  However much happens on other machines, no session
    here loses a command or waits behind theirs.
    """

    def __init__(self, wanted: object, commands: Commands) -> None:
        self.wanted = {
            str(on): [str(w) for w in words]
            for on, words in (wanted.items() if isinstance(wanted, Mapping) else ())
            if isinstance(words, list | tuple) and words
        }
        self._commands = commands
        self._asked: dict[Claim, list[str]] = {}  # about sessions of this machine
        self._far: dict[Claim, list[str]] = {}  # of others; these come last
        self._dropped = 0

    @property
    def notes(self) -> dict[str, str]:
        """Return what was not run, for health."""
        dropped = f"{self._dropped} commands were not run: too many were waiting"
        return {"callbacks": dropped} if self._dropped else {}

    def ask(self, change: Change, session: Session | None) -> None:
        """Queue the commands for a change; `run` starts them."""
        t = change.transition
        if not change.live or not self.wanted:
            return
        if time.time() - t.t > LATE and not _holds(t, session):
            return  # folded late: the only host was suspended
        words = [t.before or "none", t.after or "none", t.session_id]
        words.append(project_of(session) if session else "")
        # The id of a session that is gone must do.
        far = bool(session.machine) if session is not None else is_far(t.session_id)
        asked = self._far if far else self._asked
        for on in ("transition", t.after or "ended"):
            if command := self.wanted.get(on):
                effect = f"{on}: {shlex.join(command)}"
                asked[change.id, effect] = [*command, *words]
        while len(asked) > MOST:
            del asked[next(iter(asked))]
            self._dropped += 1

    def run(self, store: Store, pid: int) -> float:
        """Run queued commands that no other host claimed; return the seconds until the next call.

        Claim one at a time: if this host dies, a claimed command that has not run is lost.
        Do not claim one while too many are running: another host may have room.
        """
        until = time.monotonic() + SLICE
        full: set[str] = set()
        both = (self._asked, self._far)
        for asked, claim, command in [(queue, *one) for queue in both for one in queue.items()]:
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
            del asked[claim]
            if ours:
                self._commands.start(command)
        if not (self._asked or self._far):
            self._dropped = 0
        return self._commands.patience() if full else self._commands.settling()


def _holds(t: Transition, session: Session | None) -> bool:
    """Return whether no other change of the session has followed; notices ask the same."""
    if session is None or t.after is None:
        return session is None or bool(session.ended)
    return not session.ended and status_of(session) == t.after and t.t >= session.since - AHEAD


def claimed(store: Store, claim: Claim, pid: int) -> bool | None:
    """Claim a command; return whether this host got it, or None while the lock is taken."""
    try:
        return bool(store.claim([claim], pid, time.time()))
    except Busy:
        return None
