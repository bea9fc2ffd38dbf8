"""Waiting until something is true.  Tests sleep nowhere else; programs that they start may."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 60.0  # seconds; a loaded machine needs twenty to start a CLI, and only failures take all
PAUSE = 0.01
SHARE = 0.05  # of the time waited so far; a pause grows to it, so that long waits look less often
LONGEST = 0.1  # seconds to which it grows
BESIDE = 4.0  # times as long as on an idle machine, because other tests run at the same time
TRIES = 10  # of what is measured
GLANCE = 0.05  # seconds between two looks at a screen, each of which takes a process


def eventually(
    predicate: Callable[[], T], what: str = "", within: float = PATIENCE, pause: float = PAUSE
) -> T:
    """Return the predicate's first true value; raise AssertionError when time is up.

    A predicate may assert, and look up what is not there yet: its last error is then raised.  It is
    called every `pause` seconds at first, later less often: the machine should work for what is
    waited for.
    """
    began = time.monotonic()
    while True:
        refused: Exception | None = None
        value = None
        try:
            value = predicate()
        except (AssertionError, LookupError, FileNotFoundError) as error:
            refused = error
        if value:
            return value
        waited = time.monotonic() - began
        if waited > within:
            if refused is not None:
                raise refused
            raise AssertionError(f"not within {within} s: {what or predicate} (last: {value!r})")
        time.sleep(max(pause, min(SHARE * waited, LONGEST)))


def leniency(least: float = BESIDE) -> float:
    """Return how much slower than idle this machine may be: its load per core, within limits.

    Multiply the times that a test asserts by this; they are those of an idle machine.
    """
    return min(20.0, max(least, 2 * os.getloadavg()[0] / (os.cpu_count() or 1)))


def rest(seconds: float) -> None:
    """Wait, if a test is about the time between two keys."""
    time.sleep(seconds)


def at_best(measure: Callable[[], float], bar: float) -> None:
    """Check that one of several tries takes at most `bar`.

    A loaded machine is sometimes late, a slow program is always late.
    """
    took: list[float] = []
    while not took or min(took) > bar * leniency(1.0):
        assert len(took) < TRIES, f"never within {bar} s: {[round(t, 3) for t in took]}"
        took.append(measure())


def matching(look: Callable[[], str], pattern: str, within: float = PATIENCE) -> str:
    """Wait until a screen matches; return its text."""

    def matches() -> str:
        text = look()
        assert re.search(pattern, text), f"no {pattern!r} on this screen:\n{text}"
        return text

    return eventually(matches, within=within, pause=GLANCE)
