"""Shut down a long-running process within a second, even if something in it hangs, or suspend it.

A call that never returns, such as one on a dead mount, blocks its thread, and Python delivers
signals to the main thread only.  So the work runs in another thread, and the main thread only waits
for a reason to stop.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Final

GRACE: Final = 0.5  # seconds for the work to finish on its own
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
OVER: Final = b"\0"  # no signal has that number
CHUNK: Final = 64
#: Milliseconds between two looks for a hang-up.  On macOS a poll waits for one only where it would
#: end at each unread byte as well, so it is asked without waiting; on Linux it wakes us.
LOOK: Final = None if sys.platform == "linux" else 500


@contextlib.contextmanager
def suspending(stops: Callable[[], object], goes_on: Callable[[], object]) -> Iterator[None]:
    """Call `stops` before a key (CTRL-Z) suspends this process, and `goes_on` once it continues.

    Use it in the main thread; an inner one comes first.
    """
    outer = {int(n): signal.getsignal(n) for n in (signal.SIGTSTP, signal.SIGCONT)}

    def stop(number: int, frame: FrameType | None) -> None:
        if outer[number] == signal.SIG_IGN:
            return  # who started this wants it never suspended
        stops()
        if callable(stop_next := outer[number]):
            stop_next(number, frame)
        else:  # as without this handler
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    def go_on(number: int, frame: FrameType | None) -> None:
        if callable(go_on_first := outer[number]):
            go_on_first(number, frame)
        signal.signal(signal.SIGTSTP, stop)
        goes_on()

    signal.signal(signal.SIGTSTP, stop)
    signal.signal(signal.SIGCONT, go_on)
    try:
        yield
    finally:
        for number, handler in outer.items():
            signal.signal(number, handler)


def is_reason(read: bytes) -> bool:
    """Return whether the work is over or a signal asks to stop; others have handlers elsewhere."""
    return not {*OVER, *SIGNALS}.isdisjoint(read)


def is_hung_up(fd: int) -> bool:
    """Return whether the other end of a file descriptor is closed."""
    hang_up = select.poll()
    hang_up.register(fd, select.POLLHUP)  # which macOS reports only if it is asked for
    return bool(hang_up.poll(0))


def attended(work: Callable[[], None], end: Callable[[], None], held: int = -1) -> int:
    """Run `work`; call `end` on a signal, or once the other end of `held` is closed.

    Return the signal, or 0.  Whatever the work raised is raised here.  If it does not finish, it is
    left behind.
    """
    ended_by = 0
    raised: list[BaseException] = []
    is_over = threading.Event()
    reader, writer = os.pipe()

    def run() -> None:
        try:
            work()
        except BaseException as e:
            raised.append(e)
        finally:
            is_over.set()
            os.write(writer, OVER)

    # Each signal's number is written at once: a handler in Python would wait for the end of the
    # poll if the signal came just before it.
    os.set_blocking(writer, False)
    woken = signal.set_wakeup_fd(writer)
    before = {n: signal.signal(n, lambda *_: None) for n in SIGNALS}
    worker = threading.Thread(target=run, name="bellboard", daemon=True)
    reasons = select.poll()
    reasons.register(reader, select.POLLIN)
    if held >= 0 and not LOOK:
        reasons.register(held, select.POLLHUP)
    try:
        try:
            worker.start()
        except RuntimeError as e:  # the user has as many processes as are allowed
            raise OSError(errno.EAGAIN, f"{e} (ulimit -u)") from None
        while held < 0 or not is_hung_up(held):
            written = b"".join(os.read(fd, CHUNK) for fd, _ in reasons.poll(LOOK) if fd == reader)
            if is_reason(written):
                ended_by = next((n for n in written if n in SIGNALS), 0)
                break
        if not is_over.is_set():
            end()
        worker.join(GRACE)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(woken)
    if raised:
        raise raised[0]
    return ended_by
