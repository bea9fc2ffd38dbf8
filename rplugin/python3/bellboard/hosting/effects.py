"""What must happen once in the world when a status changes: a command, claimed first."""

from __future__ import annotations

import contextlib
import shlex
import sqlite3
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..core.board import Board
from ..core.published import project_of
from ..storage.store import Busy, Change, Claim, Newer, Store

LONGEST: Final = 0.1  # seconds in which commands are started, while the event loop stands still
PAUSE: Final = 0.25  # until the lock is tried again


class Effects:
    """The commands of one host, by the status that they wait for; `ask` for every change.

    A command is a list of words.  It gets four more, never text put into a shell: the status
    before, the status now, the session and the project.  Hosts with the same command for the same
    status share it: one of them runs it.
    """

    def __init__(self, commands: Mapping[str, Any]) -> None:
        self.commands = {
            str(on): [str(w) for w in words]
            for on, words in commands.items()
            if isinstance(words, Sequence) and not isinstance(words, str) and words
        }
        self._asked: dict[Claim, list[str]] = {}
        self._running: list[subprocess.Popen[bytes]] = []

    def ask(self, changes: Sequence[Change], board: Board) -> None:
        """Note what these changes ask for; `run` does it."""
        for change in changes if self.commands else ():
            t = change.transition
            if not change.live:
                continue
            session = board.sessions.get(t.session_id)
            words = [t.before or "none", t.after or "none", t.session_id]
            words.append(project_of(session) if session else "")
            for on in ("transition", t.after or "ended"):
                if command := self.commands.get(on):
                    effect = f"{on}: {shlex.join(command)}"
                    self._asked[change.id, effect] = [*command, *words]

    def run(self, store: Store, pid: int) -> float | None:
        """Do it, unless another host does; in how many seconds to come again for the rest.

        One claim at a time: a host that dies takes with it what it has claimed and not yet done.
        """
        self._running = [p for p in self._running if p.poll() is None]
        until = time.monotonic() + LONGEST
        for claim, command in list(self._asked.items()):
            if time.monotonic() > until:
                return 0.0
            ours = claimed(store, claim, pid)
            if ours is None:
                return PAUSE
            del self._asked[claim]
            if ours:
                self.start(command)
        return None

    def start(self, command: Sequence[str]) -> None:
        """Let it run by itself: nobody waits for it, and it outlives the host."""
        null = subprocess.DEVNULL
        with contextlib.suppress(OSError, ValueError):  # no such command; a NUL in a name
            self._running.append(
                subprocess.Popen(
                    command, stdin=null, stdout=null, stderr=null, start_new_session=True
                )
            )


def claimed(store: Store, claim: Claim, pid: int) -> bool | None:
    """Whether this host is the one to do it; None if that cannot be said now."""
    try:
        return bool(store.claim([claim], pid, time.time()))
    except (Busy, Newer, sqlite3.Error):
        return None
