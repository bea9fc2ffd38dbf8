"""One thing done to a host, and how it is undone."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fuzz.target import Target

Do = Callable[["Target"], object]


def nothing(_: Target) -> None:
    """There is nothing to undo."""


@dataclass(frozen=True)
class Case:
    """One thing that is done; its name says what, briefly."""

    name: str
    do: Do
    undo: Do = nothing
    folds: bool = True  # events still come through while it lasts


@dataclass(frozen=True)
class Category:
    """Cases of one kind: `make` makes one from chance, and from each of `each` in turn."""

    name: str
    make: Callable[..., Case]  # (random) or (random, *one of each)
    batch: int = 40  # so many are done before the host is checked; 1: each has a host of its own
    lacks: Callable[[], str] = lambda: ""  # why it cannot run here
    settle: float = 0.0  # seconds that it is given to notice what it only sees when it looks around
    within: float = 1.0  # seconds in which an event must come through
    spent: bool = False  # a host that was through it serves no other case
    each: Sequence[tuple[object, ...]] = ()

    def case(self, seed: int, number: int) -> Case:
        """That very case, at any time."""
        random = Random(f"{self.name} {seed} {number}")
        if not self.each:
            return self.make(random)
        order = Random(seed).sample(self.each, len(self.each))
        return self.make(random, *order[number % len(order)])


def no_root() -> str:
    """Why nothing can be mounted or given away here."""
    if os.geteuid() != 0 or sys.platform != "linux":
        return "it needs root on Linux"
    return ""
