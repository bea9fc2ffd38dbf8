"""Shut down a long-running process within a second, even if something in it hangs.

A call that never returns, such as one on a dead mount, blocks its thread, and Python delivers
signals to the main thread only.  So the work runs in another thread, and the main thread only waits
for a reason to stop.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Callable
from typing import Final

GRACE: Final = 0.5  # seconds for the work to finish on its own
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


def attended(work: Callable[[], None], end: Callable[[], None], held: int = -1) -> bool:
    """Run `work`; call `end` on a signal, or once the other end of `held` is closed.

    Return whether the work finished.  Whatever it raised is raised here.
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
        reasons.register(held, 0)  # a hang-up is always reported
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
