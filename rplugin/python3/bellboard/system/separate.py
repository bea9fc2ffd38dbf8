"""Run work that may hang in a separate process: it can be left behind, a thread cannot.

A thread that waits for a FUSE file system that never answers cannot be killed, and its process can
never exit: an editor would wait for its host forever.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Collection
from typing import TypeVar

from .failures import described

T = TypeVar("T")

_CODE = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from bellboard.system.separate import serve; serve(*sys.argv[2:])"
)


class Ended(Exception):
    """The process was killed, or sent an invalid answer."""


class Separate:
    """A process for such work; the work and its result must be picklable.

    `modules`: what it imports as it starts, so that its first work takes no longer than the next.
    """

    def __init__(self, descriptors: Collection[int] = (), modules: Collection[str] = ()) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _CODE, json.dumps(sys.path), *modules],
            stdin=pipe,
            stdout=pipe,
            stderr=subprocess.DEVNULL,
            pass_fds=tuple(descriptors),
            start_new_session=True,  # no signals from the terminal
            cwd="/",
        )
        self.call(os.getpid)  # wait until it has started

    def call(self, work: Callable[[], T]) -> T:
        """Run work there; raise here what it raises there."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        raw = pickle.dumps(work)
        try:
            self._process.stdin.write(raw)
            self._process.stdin.flush()
            error, result = pickle.load(self._process.stdout)
        except (OSError, EOFError, pickle.PickleError) as why:
            self._process.kill()
            self.close()
            raise Ended(f"the process for this path exited: {described(why)}") from None
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]

    def close(self) -> None:
        """End the process, which must be idle."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._process.wait()


def serve(*modules: str) -> None:
    """Run jobs in the other process until the pipe is closed."""
    for module in modules:
        importlib.import_module(module)
    tasks, results = sys.stdin.buffer, sys.stdout.buffer
    while True:
        try:
            work: Callable[[], object] = pickle.load(tasks)
        except EOFError:
            return
        try:
            answer = pickle.dumps((None, work()))
        except Exception as error:  # any kind: it concerns this job only
            answer = pickle.dumps((_sendable(error), None))
        results.write(answer)
        results.flush()


def _sendable(error: Exception) -> Exception:
    """Return an error, or only its text if it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return OSError(described(error))
    return error
