"""A fault: what is done to a host, its files or its machine, and what must hold all the same."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from faults.target import Target

Do = Callable[["Target"], object]
EVENTS: Final = "events"  # each event is folded once, and each session shown
SESSIONS: Final = "sessions"  # what was shown is shown; events may be in a log that is lost
EITHER: Final = "."  # a host that starts meanwhile may do either
NOTHING: Final = ""  # what was there may be lost, and what comes next is folded


def nothing(_: Target) -> None:
    """Mend nothing."""


@dataclass(frozen=True)
class Fault:
    """A fault; `meet` (in meet.py) makes every check while it lasts and after it was mended."""

    name: str
    do: Do
    mend: Do = nothing
    says: str = ""  # what health says meanwhile, and no longer afterwards
    doctor: str = ""  # what doctor says meanwhile
    refuses: str = ""  # why a host that starts meanwhile ends; else it starts
    waits: str = ""  # what health of such a host says instead of folding
    survives: str = EVENTS
    folds: bool = True  # events still arrive while it lasts
    lists: str | None = ""  # what `list` says besides what is known; None: it need not show that
    hooks: bool = True  # the hook ends; else a mount in its way would hang it
    heals: bool = True  # health is silent once it is mended
    alone: bool = False  # another fault would prevent what it does


@dataclass(frozen=True)
class Kind:
    """Faults that are alike: the rows of a table, or what `make` makes by chance."""

    name: str
    rows: Sequence[Fault] = ()
    make: Callable[..., Fault] | None = None  # (random), or (random, *one of each in turn)
    each: Sequence[tuple[object, ...]] = ()
    batch: int = 1  # faults at a time
    lacks: Callable[[], str] = lambda: ""  # why it cannot run here
    settle: float = 0.0  # seconds for it to notice what only a rescan finds
    within: float = 1.0  # seconds in which an event must arrive
    alone: bool = False  # on a host of its own, which cannot be used for another fault
    is_caught: bool = False  # a reader that raises has fallen, although the host catches it
    mixed: bool = False  # those of a batch may stand in each other's way: none need be named

    def fault(self, seed: int, number: int) -> Fault:
        """Return the fault with this seed and number; the rows come in turn."""
        of = self.rows or self.each or ((),)
        one = Random(seed).sample(of, len(of))[number % len(of)]
        if isinstance(one, Fault):
            return one
        assert self.make is not None
        return self.make(Random(f"{self.name} {seed} {number}"), *one)


def no_root() -> str:
    """Return why nothing can be mounted or chowned here, or ""."""
    if os.geteuid() != 0 or sys.platform != "linux":
        return "it needs root on Linux"
    return ""
