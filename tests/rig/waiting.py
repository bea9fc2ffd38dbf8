"""Waiting for something to become true; the only place in the tests that sleeps."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 20.0  # two busy cores in CI start a CLI in ten seconds; a failure may take its time
PAUSE = 0.01


def eventually(predicate: Callable[[], T], what: str = "", within: float = PATIENCE) -> T:
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
        time.sleep(PAUSE)
