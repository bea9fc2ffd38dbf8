"""The user's commands: run once on a machine for each transition."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from ..core.deadlines import NEVER
from ..core.events import AHEAD
from ..core.published import project_of
from ..core.records import Transition
from ..core.session import Session, is_far, status_of
from ..core.text import cut
from ..core.words import plain
from ..storage.store import Busy, Change, Claim, Store
from ..system.failures import described
from ..system.notes import Notes

# Run the user's commands, with a limit on how many run at once.


ALIKE: Final = 8  # commands of one program at once
MOST_AT_ONCE: Final = 24  # commands at once
COMMAND_PATIENCE: Final = 60.0  # seconds after which a command that blocks others is killed
SETTLES: Final = 1.0  # seconds in which most commands that cannot run have said so
SOON: Final = 0.01
SELDOM: Final = 0.5
NO_PROGRAM: Final = (126, 127)  # a shell's exit codes
#: Started through a shell, which does not parse the arguments: if the program is on a dead mount,
#: the shell waits, not the host.
LAUNCH: Final = ("/bin/sh", "-c", 'exec "$@"', "sh")

_Running = tuple[str, float, "subprocess.Popen[bytes]"]


class Commands:
    """Starts commands that outlive the host, unless too many of them still run."""

    def __init__(self, patience: float = COMMAND_PATIENCE) -> None:
        self._patience = patience
        self._running: list[_Running] = []
        self._missing: dict[str, str] = {}  # program → why it cannot run
        self._ended: Counter[str] = Counter()  # program → how many were killed
        self.notes = Notes()  # commands that hang or cannot be run
        self._dying: set[int] = set()  # processes that were killed and are not gone yet

    @property
    def running(self) -> int:
        """Return how many commands are running."""
        self._reap()
        return len(self._running)

    def has_room(self, program: str) -> bool:
        """Return whether one more may run; if not, kill the oldest one that hangs."""
        self._reap()
        alike = [r for r in self._running if r[0] == program]
        if len(alike) >= ALIKE or len(self._running) >= MOST_AT_ONCE:
            oldest = min(alike or self._running, key=lambda r: r[1])
            if time.monotonic() > oldest[1] + self._patience:
                self._end(oldest)
            return False
        return True

    def patience(self) -> float:
        """Return the seconds until to check for room: few after a start, more if commands hang."""
        last = max((begun for _, begun, _ in self._running), default=0.0)
        return min(max((time.monotonic() - last) / 4, SOON), SELDOM)

    def settling(self) -> float:
        """Return the seconds until a command that was just started may turn out not to run."""
        self._reap()
        last = max((begun for _, begun, _ in self._running), default=-NEVER)
        return self.patience() if time.monotonic() - last < SETTLES else NEVER

    def start(self, command: Sequence[str]) -> None:
        """Start a command without waiting for it."""
        null = subprocess.DEVNULL
        try:
            started = subprocess.Popen(
                [*LAUNCH, *command], stdin=null, stdout=null, stderr=null, start_new_session=True
            )
        except (OSError, ValueError) as e:  # no process left; a NUL in a name
            self._missing[command[0]] = f"cannot be started: {described(e)}"
        else:
            self._running.append((command[0], time.monotonic(), started))

    def look(self) -> None:
        """Note which commands hang or cannot be run."""
        if self._running or self._ended or self._missing or self.notes:
            self._reap()

    def _note(self) -> None:
        old = time.monotonic() - self._patience
        hang = Counter(program for program, begun, _ in self._running if begun < old)
        notes = [
            f"{_name(p)}: {n} still running after {self._patience:g} s" for p, n in hang.items()
        ]
        notes += [f"{_name(p)}: {n} killed because they hung" for p, n in self._ended.items()]
        notes += [f"{_name(p)}: {why}" for p, why in self._missing.items()]
        self.notes.replace({"commands": "; ".join(notes)} if notes else {})

    def _reap(self) -> None:
        running = []
        for program, begun, process in self._running:
            code = process.poll()
            if code is None:
                running.append((program, begun, process))
            elif code in NO_PROGRAM:
                self._missing[program] = (
                    "command not found" if code == 127 else "cannot be executed"
                )
            else:
                self._missing.pop(program, None)
                if code != -signal.SIGKILL:
                    del self._ended[program]
        self._running = running
        self._dying &= {process.pid for _, _, process in running}
        self._note()

    def _end(self, oldest: _Running) -> None:
        program, _, process = oldest
        if process.pid in self._dying:
            return
        self._dying.add(process.pid)
        self._ended[program] += 1
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)


def _name(program: str) -> str:
    return cut(plain(shlex.quote(program)), 60)


# Commands to run once per machine when a status changes; each is claimed before it runs.


SLICE: Final = 0.1  # seconds in a row to start commands in: the event loop is blocked meanwhile
PAUSE: Final = 0.25  # seconds until the lock is tried again
HISTORY_AFTER: Final = 60.0  # seconds after which a change that another followed is history
MOST_WAITING: Final = (
    1000  # commands waiting, here and of other machines each; the oldest are dropped
)


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
        self.notes = Notes()  # what was not run
        self._asked: dict[Claim, list[str]] = {}  # about sessions of this machine
        self._far: dict[Claim, list[str]] = {}  # of others; these come last
        self._dropped = 0

    def _note(self) -> None:
        if self._dropped:
            many = f"{self._dropped} commands were not run: too many were waiting"
            self.notes.say("callbacks", many)
        else:
            self.notes.settle("callbacks")

    def ask(self, change: Change, session: Session | None) -> None:
        """Queue the commands for a change; `run` starts them."""
        t = change.transition
        if not change.live or not self.wanted:
            return
        if time.time() - t.t > HISTORY_AFTER and not _holds(t, session):
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
        while len(asked) > MOST_WAITING:
            del asked[next(iter(asked))]
            self._dropped += 1
            self._note()

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
            self._note()
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
