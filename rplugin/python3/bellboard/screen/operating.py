"""Run something full screen that is operated with keys, such as in a tmux popup."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Sequence
from typing import Final, Protocol

from .full import Full
from .styled import Text

ESCAPE: Final = 0.05  # seconds to wait for the rest of a key that starts with Esc


class Operated(Protocol):
    """What is shown and takes the keys."""

    @property
    def over(self) -> bool: ...

    def press(self, key: str, now: float) -> None:
        """Apply a key: a name in `full.KEYS`, a character, or what was pasted."""
        ...

    def lines(self, now: float, columns: int, height: int) -> Sequence[Text]: ...


def operate(shown: Operated, every: float | None = None) -> None:
    """Show it and apply keys until it is over; refresh it every `every` seconds."""
    resized, wake = os.pipe()
    os.set_blocking(wake, False)

    def renew() -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(wake, b".")

    def end(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    before = {n: signal.signal(n, end) for n in (signal.SIGTERM, signal.SIGHUP)}
    try:
        with Full(renew, raw=True) as screen:
            _run(shown, screen, resized, every)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(resized)
        os.close(wake)


def _run(shown: Operated, screen: Full, resized: int, every: float | None) -> None:
    keys = screen.keys
    while True:
        screen.paint(shown.lines(time.time(), *screen.size()))
        if shown.over:
            return
        ready = select.select([keys, resized], [], [], every)[0]
        if resized in ready:
            os.read(resized, 512)
        if keys not in ready:
            continue
        data = os.read(keys, 4096)
        if data.endswith(b"\x1b") and select.select([keys], [], [], ESCAPE)[0]:
            data += os.read(keys, 4096)
        if not data:  # the terminal is gone
            return
        for key in screen.named(data):
            shown.press(key, time.time())
            if shown.over:
                return
