"""Waiting until something is true; the only place in the tests that sleeps."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 60.0  # a loaded machine in CI starts a CLI in twenty seconds; only a failure takes it
PAUSE = 0.01
BESIDE = 4.0  # times as long as on a machine of its own: other tests run beside each
GLANCE = 0.05  # between two looks at a screen: each of them costs a process


def eventually(
    predicate: Callable[[], T], what: str = "", within: float = PATIENCE, pause: float = PAUSE
) -> T:
    """The predicate's first true value; AssertionError with its last one when time is up.

    A predicate may itself assert: its last AssertionError is then the one that is raised.
    """
    deadline = time.monotonic() + within
    while True:
        refused = None
        value = None
        try:
            value = predicate()
        except AssertionError as error:
            refused = error
        if value:
            return value
        if time.monotonic() > deadline:
            if refused is not None:
                raise refused
            raise AssertionError(f"not within {within} s: {what or predicate} (last: {value!r})")
        time.sleep(pause)


def leniency(least: float = BESIDE) -> float:
    """How much slower than at rest this machine may be: its load for each core, within bounds.

    A time that a test asserts is that of a machine at rest, multiplied by this.
    """
    return min(20.0, max(least, 2 * os.getloadavg()[0] / (os.cpu_count() or 1)))


def rest(seconds: float) -> None:
    """Let time pass, where the time between two keys is what is tried."""
    time.sleep(seconds)


def at_best(measure: Callable[[], float], bar: float, tries: int = 10) -> None:
    """One of some tries takes no longer than `bar`.

    A loaded machine is late now and then, a program that waits is late each time.
    """
    took: list[float] = []
    while not took or min(took) > bar * leniency(1.0):
        assert len(took) < tries, f"never within {bar} s: {[round(t, 3) for t in took]}"
        took.append(measure())


def matching(look: Callable[[], str], pattern: str, within: float = PATIENCE) -> str:
    """Wait until a screen matches; the text of the screen that did."""

    def matches() -> str:
        text = look()
        assert re.search(pattern, text), f"no {pattern!r} on this screen:\n{text}"
        return text

    return eventually(matches, within=within, pause=GLANCE)
