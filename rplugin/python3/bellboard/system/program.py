"""Run a program and read what it prints, though it may hang or print without end."""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

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
    """Run a program without input, and kill it when it has run for `patience` seconds.

    Raise OSError or ValueError if it cannot be started, `subprocess.TimeoutExpired` if it takes
    too long.
    """
    null, pipe = subprocess.DEVNULL, subprocess.PIPE
    ends = time.monotonic() + patience
    with (
        subprocess.Popen(argv, stdin=null, stdout=pipe, stderr=pipe, env=env, cwd=cwd) as process,
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
