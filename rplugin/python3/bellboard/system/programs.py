"""Other programs: run one and read its output, or keep one on a leash and read its lines."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from ..core.text import Lines, line
from .threads import Thread, call_in

# Run a program and read what it prints, though it may hang or print without end.


LIMIT: Final = 4 << 20  # bytes; it is killed if it prints more
CHUNK: Final = 1 << 16


class Ran(NamedTuple):
    """A program that has ended: its exit code, negative if it was killed, and what it printed."""

    code: int
    output: bytes
    errors: bytes


def run(
    argv: Sequence[str],
    patience: float,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
) -> Ran:
    """Run a program, without input, and kill it after `patience` seconds.

    Raise OSError or ValueError if it cannot be started, `subprocess.TimeoutExpired` if it takes
    too long.
    """
    none, pipe = subprocess.DEVNULL, subprocess.PIPE
    ends = time.monotonic() + patience
    with (
        subprocess.Popen(argv, stdin=none, stdout=pipe, stderr=pipe, env=env, cwd=cwd) as process,
        selectors.DefaultSelector() as ready,
    ):
        printed: dict[int, bytearray] = {}
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            printed[stream.fileno()] = bytearray()
            ready.register(stream, selectors.EVENT_READ)
        try:
            while ready.get_map():
                streams = ready.select(max(0.0, ends - time.monotonic()))
                if not streams:
                    raise subprocess.TimeoutExpired(argv, patience)
                for key, _ in streams:
                    data = os.read(key.fd, CHUNK)
                    printed[key.fd] += data
                    if not data:
                        ready.unregister(key.fileobj)
                    elif len(printed[key.fd]) > LIMIT:
                        process.kill()
                        ready.unregister(key.fileobj)
            process.wait(max(0.0, ends - time.monotonic()))
        except BaseException:
            process.kill()
            raise
        output, errors = map(bytes, printed.values())
        return Ran(process.returncode, output, errors)


# A program that talks over its standard streams and never outlives this process.
#
# Its group is ended once a pipe closes that only this process holds: by `end`, or by the kernel
# when this process dies, however that happens.


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


# Read lines from one descriptor and write to another, in threads: a slow end blocks no event
# loop.
#
# Descriptors of any kind will do: pipes, sockets, terminals, files.


PIPE_CHUNK: Final = 1 << 16


class Outlet:
    """Writes one piece at a time; calls `drained` in the event loop when it can take the next."""

    def __init__(self, descriptor: int, drained: Callable[[], None]) -> None:
        self.error: OSError | None = None  # set once nothing more can be written
        self._descriptor, self._drained = descriptor, drained
        import asyncio  # it takes as long to load as everything else here

        self._loop = asyncio.get_running_loop()
        self._state = threading.Condition()
        self._piece = b""
        Thread(target=self._run, name="bellboard outlet").start()

    @property
    def is_free(self) -> bool:
        """Return whether everything was written."""
        return not self._piece and self.error is None

    def write(self, piece: bytes) -> None:
        """Write a piece, once the outlet is free."""
        with self._state:
            self._piece = piece
            self._state.notify()

    def finish(self, patience: float) -> None:
        """Wait until everything is written."""
        with self._state:
            self._state.wait_for(lambda: not self._piece or self.error is not None, patience)

    def _run(self) -> None:
        while self.error is None:
            with self._state:
                self._state.wait_for(lambda: self._piece)
            try:
                _write(self._descriptor, self._piece)
            except OSError as e:
                self.error = e
            with self._state:
                self._piece = b""
                self._state.notify_all()
            call_in(self._loop, self._drained)


class Inlet:
    """Calls `came` in the event loop with each line; reads no further while `most` are in progress.

    Of a line that is longer than `longest` bytes, only the beginning arrives, with one byte more
    than that.
    """

    def __init__(
        self, descriptor: int, longest: int, most: int, came: Callable[[bytes], None]
    ) -> None:
        self._descriptor, self._came, self._lines = descriptor, came, Lines(longest)
        import asyncio  # it takes as long to load as everything else here

        self._loop = asyncio.get_running_loop()
        self._room = threading.Semaphore(most)
        Thread(target=self._run, name="bellboard inlet").start()

    def done(self) -> None:
        """Note that a line is done."""
        self._room.release()

    def _run(self) -> None:
        while data := _read(self._descriptor):
            for each in self._lines.take(data):
                self._room.acquire()
                if not call_in(self._loop, self._came, each):
                    return


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, PIPE_CHUNK)
    except OSError:
        return b""


def _write(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
