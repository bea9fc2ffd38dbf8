"""Run the user's commands, with a limit on how many run at once."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from typing import Final

from ..core.cells import cut
from ..core.deadlines import NEVER
from ..core.words import plain
from ..system.failures import described

ALIKE: Final = 8  # commands of one program at once
MOST: Final = 24  # commands at once
PATIENCE: Final = 60.0  # seconds after which a command that blocks others is killed
SETTLES: Final = 1.0  # seconds in which most commands that cannot run have said so
SOON: Final = 0.01
LATE: Final = 0.5
NO_PROGRAM: Final = (126, 127)  # a shell's exit codes
#: Started through a shell, which does not parse the arguments: if the program is on a dead mount,
#: the shell waits, not the host.
LAUNCH: Final = ("/bin/sh", "-c", 'exec "$@"', "sh")

_Running = tuple[str, float, "subprocess.Popen[bytes]"]


class Commands:
    """Starts commands that outlive the host, unless too many of them still run."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._running: list[_Running] = []
        self._missing: dict[str, str] = {}  # program → why it cannot run
        self._ended: Counter[str] = Counter()  # program → how many were killed
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
        if len(alike) >= ALIKE or len(self._running) >= MOST:
            oldest = min(alike or self._running, key=lambda r: r[1])
            if time.monotonic() > oldest[1] + self._patience:
                self._end(oldest)
            return False
        return True

    def patience(self) -> float:
        """Return the seconds until to check for room: few after a start, more if commands hang."""
        last = max((begun for _, begun, _ in self._running), default=0.0)
        return min(max((time.monotonic() - last) / 4, SOON), LATE)

    def settling(self) -> float:
        """Return the seconds until it may be known that one that was just started cannot run."""
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

    @property
    def notes(self) -> dict[str, str]:
        """Return commands that hang or cannot be run, for health."""
        if not (self._running or self._ended or self._missing):
            return {}
        self._reap()
        old = time.monotonic() - self._patience
        hang = Counter(program for program, begun, _ in self._running if begun < old)
        notes = [
            f"{_name(p)}: {n} still running after {self._patience:g} s" for p, n in hang.items()
        ]
        notes += [f"{_name(p)}: {n} killed because they hung" for p, n in self._ended.items()]
        notes += [f"{_name(p)}: {why}" for p, why in self._missing.items()]
        return {"commands": "; ".join(notes)} if notes else {}

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
