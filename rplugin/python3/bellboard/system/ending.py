"""The end of a process that serves: within a second of being told to, whatever hangs in it.

A call that never returns, as on a dead mount, holds back whatever else its thread was to do, and
Python gives signals to the main thread alone.  So the work is done in another thread, and the main
one only waits for a reason to end.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Callable
from typing import Final

GRACE: Final = 0.5  # seconds that the work has to end by itself
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def attended(work: Callable[[], None], end: Callable[[], None], held: int = -1) -> bool:
    """Do the work, and `end` it at a signal, or once nobody holds the other end of `held`.

    False if it did not end then; what it raised is raised here.
    """
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
            os.write(writer, b".")

    before = {n: signal.signal(n, lambda *_: bool(os.write(writer, b"!"))) for n in SIGNALS}
    worker = threading.Thread(target=run, name="bellboard", daemon=True)
    reasons = select.poll()
    reasons.register(reader, select.POLLIN)
    if held >= 0:
        reasons.register(held, 0)  # of a hang-up it tells always
    try:
        worker.start()
        reasons.poll()
        if not is_over.is_set():
            end()
        worker.join(GRACE)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if raised:
        raise raised[0]
    return is_over.is_set()
