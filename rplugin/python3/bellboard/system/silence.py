"""Find out, with a deadline, whether a path answers: on a network or FUSE mount it may not.

The process that asks is left behind if it hangs, with a lock, so that commands that run every few
seconds leave no more than one for each mount.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Final

from . import flocks, forked
from .mounts import MOUNTS, Mount

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
    lock = _opened(mount)
    try:
        if lock >= 0 and not flocks.take(lock, PATIENCE):
            return mount  # it has not answered whoever asked before
        return None if _answers((mount.place, str(path)), until, lock) else mount
    finally:
        if lock >= 0:
            os.close(lock)


def _answers(paths: Iterable[str], until: float, lock: int) -> bool:
    pid, answer = forked.begin(partial(_ask, paths), keep=lock)
    try:
        if select.select([answer], [], [], max(0.0, until - time.monotonic()))[0]:
            forked.reap(pid)
            return True
        os.kill(pid, signal.SIGKILL)  # ends it unless it waits for a FUSE mount
        forked.reap(pid, 0.0)
        return False
    finally:
        os.close(answer)


def _ask(paths: Iterable[str], _: int) -> None:
    for path in paths:  # below autofs, another mount may be next
        with contextlib.suppress(OSError, ValueError):
            os.statvfs(path)  # which no cache answers


def _opened(mount: Mount) -> int:
    """Open the file to lock; return -1 if there is none that is ours."""
    if MOUNTS.hanging(FOLDER):
        return -1
    path = Path(FOLDER, f"bellboard-{os.geteuid()}-mount-{mount.device:x}")
    try:
        fd = flocks.opened(path)
    except OSError:
        return -1
    if os.fstat(fd).st_uid != os.geteuid():
        os.close(fd)
        return -1
    return fd
