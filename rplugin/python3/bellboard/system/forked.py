"""Run work in a process of its own, which may be left behind.

A thread that waits for a dead mount keeps its process alive, and such a process cannot even be
killed.  So whoever starts one waits for its answer with a deadline, and never for its end.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from typing import Final

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
