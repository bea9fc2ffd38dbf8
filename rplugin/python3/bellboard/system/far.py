"""Work in a process of its own, where a thread would hang beyond help.

Whoever waits for a FUSE file system that has taken a request and never answers cannot be killed,
and a process with such a thread never ends: an editor would wait for its host for ever.  A process
of its own is left behind instead.
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

T = TypeVar("T")

_CODE = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from bellboard.system.far import serve; serve(*sys.argv[2:])"
)


class Ended(Exception):
    """The process has been killed, or could not be understood."""


class Far:
    """One such process; what it does and returns has to be picklable.

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
            start_new_session=True,  # no key that is pressed in a terminal is meant for it
            cwd="/",
        )
        self.call(os.getpid)  # it is up, and has loaded what it needs

    def call(self, work: Callable[[], T]) -> T:
        """Do it there; what it raises is raised here."""
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
            raise Ended(f"the process that looked there has ended: {why}") from None
        if error:
            raise OSError(error)
        return result  # type: ignore[no-any-return]

    def close(self) -> None:
        """End it; it does nothing now."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._process.wait()


def serve(*modules: str) -> None:
    """The other end: do what comes, until nothing can come any more."""
    for module in modules:
        importlib.import_module(module)
    tasks, results = sys.stdin.buffer, sys.stdout.buffer
    while True:
        try:
            work: Callable[[], object] = pickle.load(tasks)
        except EOFError:
            return
        try:
            told = pickle.dumps(("", work()))
        except Exception as error:  # of whatever kind, it is of this source alone
            told = pickle.dumps((f"{type(error).__name__}: {error}", None))
        results.write(told)
        results.flush()
