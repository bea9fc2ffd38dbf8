"""Run work that may hang in a separate process: it can be left behind, a thread cannot."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pickle
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable, Collection, Iterable
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from .failures import described
from .locks import Lock
from .mounts import MOUNTS, Mount

# Run work in a process of its own, which may be left behind.
#
# A thread that waits for a dead mount keeps its process alive, and such a process cannot even
# be killed. So whoever starts one waits for its answer with a deadline, and never for its end.


MOST: Final = 1 << 16  # file descriptors, at least
PAUSE: Final = 0.005


def begin(work: Callable[[int], object], keep: int = -1) -> tuple[int, int]:
    """Start a process that calls `work` with a descriptor to write its answer to.

    Return the process, and the descriptor to read from; that ends with the process.  Of ours, it
    has only `keep`: nobody waits for another one to end because a process was left behind.
    """
    answer, end = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the child needs no threads
        pid = os.fork()
    if pid:
        os.close(end)
        return pid, answer
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(null, number)
        kept = sorted({2, end, max(keep, 2)})
        for low, high in zip(kept, [*kept[1:], MOST], strict=True):
            os.closerange(low + 1, high)
        work(end)
    finally:
        os._exit(0)


def reap(pid: int, patience: float | None = None) -> int:
    """Wait until a process ends, at most `patience` seconds; return its status, or 0 if unknown."""
    until = None if patience is None else time.monotonic() + patience
    try:
        if until is None:
            return os.waitpid(pid, 0)[1]
        while not (ended := os.waitpid(pid, os.WNOHANG))[0] and time.monotonic() < until:
            time.sleep(PAUSE)
    except ChildProcessError:  # whoever started us ignores SIGCHLD
        return 0
    return ended[1]


# Find out, with a deadline, whether a path answers: on a network or FUSE mount it may not.
#
# The process that asks is left behind if it hangs, with a lock, so that commands that run every
# few seconds leave no more than one for each mount.


FOLDER: Final = "/tmp"  # not TMPDIR, which may be on the same mount
PATIENCE: Final = 2.0  # seconds; a mount that works takes milliseconds, or one to wake up


def silent(path: str | Path) -> Mount | None:
    """Return the mount that a path leads to, if that mount does not respond in time.

    A path on a local disk is not even asked.
    """
    mount = MOUNTS.hanging(str(path))
    if mount is None:
        return None
    until = time.monotonic() + PATIENCE
    lock = _lock_of(mount)
    if lock is None:
        return None if _answers((mount.place, str(path)), until) else mount
    try:
        if not lock.take(PATIENCE):
            return mount  # it has not answered whoever asked before
        return None if _answers((mount.place, str(path)), until, lock.descriptor) else mount
    finally:
        lock.close()


def _answers(paths: Iterable[str], until: float, lock: int = -1) -> bool:
    pid, answer = begin(partial(_ask, paths), keep=lock)
    try:
        if select.select([answer], [], [], max(0.0, until - time.monotonic()))[0]:
            reap(pid)
            return True
        os.kill(pid, signal.SIGKILL)  # ends it unless it waits for a FUSE mount
        reap(pid, 0.0)
        return False
    finally:
        os.close(answer)


def _ask(paths: Iterable[str], _: int) -> None:
    for path in paths:  # below autofs, another mount may be next
        with contextlib.suppress(OSError, ValueError):
            os.statvfs(path)  # which no cache answers


def _lock_of(mount: Mount) -> Lock | None:
    """Return the lock for asking a mount; None if its file is not ours."""
    if MOUNTS.hanging(FOLDER):
        return None
    lock = Lock(Path(FOLDER, f"bellboard-{os.geteuid()}-mount-{mount.device:x}"))
    try:
        if os.fstat(lock.descriptor).st_uid == os.geteuid():
            return lock
    except OSError:
        return None
    lock.close()
    return None


# Run work that may hang in a separate process: it can be left behind, a thread cannot.
#
# A thread that waits for a FUSE file system that never answers cannot be killed, and its
# process can never exit: an editor would wait for its host forever.


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
        import subprocess

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
