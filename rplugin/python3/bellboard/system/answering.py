"""Ask, with a deadline, whether a folder answers: that of a network or FUSE mount may not.

Another process asks, as one that waits for a FUSE mount cannot be killed.  It is left behind then,
with a lock, so that commands that run every few seconds leave no more than one for each mount.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from . import flocks
from .mounts import MOUNTS, Mount

FOLDER: Final = "/tmp"  # not TMPDIR, which may be on the same mount
MOST: Final = 1 << 16  # file descriptors, at least
PATIENCE: Final = 2.0  # seconds; a mount that works takes milliseconds, or one to wake up


def silent(path: str | Path) -> Mount | None:
    """Return the mount that a path leads to, if that mount does not answer in time.

    A path on a local disk is not even asked.
    """
    mount = MOUNTS.hanging(str(path))
    if mount is None:
        return None
    until = time.monotonic() + PATIENCE
    lock = _opened(mount)
    try:
        if lock >= 0 and not flocks.take(lock, PATIENCE):
            return mount  # it has not answered whoever asked before
        return None if _answers((mount.place, str(path)), until, lock) else mount
    finally:
        if lock >= 0:
            os.close(lock)


def _answers(paths: Iterable[str], until: float, lock: int) -> bool:
    """Return whether the paths answer; the process that asks keeps the lock, and nothing else."""
    answer, end = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the child needs no threads
        pid = os.fork()
    if not pid:
        try:
            null = os.open(os.devnull, os.O_RDWR)
            for number in range(3):  # a leftover process must not keep our output open
                os.dup2(null, number)
            kept = sorted({2, end, max(lock, 2)})
            for low, high in zip(kept, [*kept[1:], MOST], strict=True):
                os.closerange(low + 1, high)
            for path in paths:  # below autofs, another mount may be next
                with contextlib.suppress(OSError, ValueError):
                    os.statvfs(path)  # which no cache answers
        finally:
            os._exit(0)
    os.close(end)
    try:
        if select.select([answer], [], [], max(0.0, until - time.monotonic()))[0]:
            _wait(pid, 0)
            return True
        os.kill(pid, signal.SIGKILL)  # ends it unless it waits for a FUSE mount
        _wait(pid, os.WNOHANG)
        return False
    finally:
        os.close(answer)


def _wait(pid: int, how: int) -> None:
    with contextlib.suppress(ChildProcessError):  # whoever started us ignores SIGCHLD
        os.waitpid(pid, how)


def _opened(mount: Mount) -> int:
    """Open the file to lock; return -1 if there is none that is ours."""
    if MOUNTS.hanging(FOLDER):
        return -1
    path = Path(FOLDER, f"bellboard-{os.geteuid()}-mount-{mount.device:x}")
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        return -1
    if os.fstat(fd).st_uid != os.geteuid():
        os.close(fd)
        return -1
    return fd
