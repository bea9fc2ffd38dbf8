"""Run code in threads beside a test, until it ends."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

Opened = TypeVar("Opened", bound="Beside")


class Beside:
    """While open, runs each of its functions in a thread, until `_over` is set."""

    def __init__(self, *works: Callable[[], None]) -> None:
        self._over = threading.Event()
        self._threads = [threading.Thread(target=work, name=work.__qualname__) for work in works]

    def __enter__(self: Opened) -> Opened:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def is_over(self, pause: float) -> bool:
        """Wait so long; return whether it is closed meanwhile."""
        return self._over.wait(pause)
