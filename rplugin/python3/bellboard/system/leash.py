"""A program that talks over its standard streams and never outlives this process.

Its group is ended once a pipe closes that only this process holds: by `end`, or by the kernel when
this process dies, however that happens.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from typing import Final

from ..core.detail import line

LAST: Final = 160  # characters of its last line of errors

#: A shell in the background waits for the end of descriptor $0, and then ends the group, including
#: itself.  The program is started through a shell: one on a dead mount hangs there, not here.  It
#: reports a path that is not a program itself, because each shell words that differently.
#: The descriptor is opened by name, because shells know no numbers above 9.
LEASH: Final = """\
case $1 in */*) [ -f "$1" ] && [ -x "$1" ];; *) command -v -- "$1" >/dev/null;; esac ||
{ echo "$1: no such program here" >&2; exit 127; }
{ trap : TERM; read -r end; kill -TERM 0; sleep 1; kill -KILL 0; } </dev/fd/$0 >/dev/null 2>&1 &
exec "$@"
"""


def last_words(errors: bytes) -> str:
    """Return the last line that a program wrote to its standard error, as one clean line."""
    said = [x for x in errors.decode("utf-8", "replace").splitlines() if x.strip()]
    return line(said[-1], LAST) if said else ""


class Leashed:
    """A running program; its standard streams are `stdin`, `stdout` and `stderr`."""

    def __init__(self, argv: Sequence[str]) -> None:
        """Start it; raise OSError or ValueError if that fails."""
        held, self._hold = os.pipe()
        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", LEASH, str(held), *argv],
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                pass_fds=(held,),
                start_new_session=True,
                bufsize=0,
            )
        except BaseException:
            os.close(self._hold)
            raise
        finally:
            os.close(held)
        streams = (self._process.stdin, self._process.stdout, self._process.stderr)
        assert all(stream is not None for stream in streams)
        self.stdin, self.stdout, self.stderr = (s.fileno() for s in streams if s is not None)
        for stream in (self.stdin, self.stdout, self.stderr):
            os.set_blocking(stream, False)
        self._is_over = False

    def code(self, patience: float = 0.0) -> int | None:
        """Return its exit code, or None if it still runs after `patience` seconds."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(patience)
        return None

    def end(self) -> None:
        """End it and all that it started: politely, and a second later by force."""
        if self._is_over:
            return
        self._is_over = True
        for number in (signal.SIGTERM, signal.SIGCONT):  # a stopped process must continue to end
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, number)
        os.close(self._hold)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        if self.code(1.5) is None:
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self.code(1.0)
