"""An attack on a host, and how to undo it."""

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
    """Undo nothing."""


@dataclass(frozen=True)
class Case:
    """An attack, with a short name."""

    name: str
    do: Do
    undo: Do = nothing
    folds: bool = True  # events still arrive while it lasts


@dataclass(frozen=True)
class Category:
    """Cases of one kind: `make` makes a random one, for each item of `each` in turn."""

    name: str
    make: Callable[..., Case]  # (random) or (random, *one of each)
    batch: int = 40  # cases per check of the host; 1: each has a host of its own
    lacks: Callable[[], str] = lambda: ""  # why it cannot run here
    settle: float = 0.0  # seconds for it to notice what only a rescan finds
    within: float = 1.0  # seconds in which an event must arrive
    spent: bool = False  # the host cannot be used for another case afterwards
    is_caught: bool = False  # a reader that raises has fallen, although the host catches it
    each: Sequence[tuple[object, ...]] = ()

    def case(self, seed: int, number: int) -> Case:
        """Return the case with this seed and number."""
        random = Random(f"{self.name} {seed} {number}")
        if not self.each:
            return self.make(random)
        order = Random(seed).sample(self.each, len(self.each))
        return self.make(random, *order[number % len(order)])


def no_root() -> str:
    """Return why nothing can be mounted or chowned here, or ""."""
    if os.geteuid() != 0 or sys.platform != "linux":
        return "it needs root on Linux"
    return ""
