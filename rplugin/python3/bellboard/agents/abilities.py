"""What a CLI reports of its sessions, moment by moment, and how that is known.

This file does no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

#: What may happen to a session → the heading of that row for users.
MOMENTS: Final = {
    "unprompted": "shows before its first prompt",
    "working": "works",
    "permission": "asks for a permission",
    "question": "asks a question",
    "granted": "a permission was granted",
    "denied": "a permission was denied",
    "completed": "has completed its turn",
    "interrupted": "was interrupted",
    "failed": "failed with an error",
    "ended": "has ended",
    "itself": "says so itself",
    "answer": "takes answers from here",
}
#: Those that a CLI has or lacks, however it is observed.
HAD: Final = frozenset({"itself", "answer"})


class Ability(NamedTuple):
    """How a moment is known; without a source, it is not known."""

    source: str
    inferred: bool = False  # it follows from something else that was observed
    when: str = ""  # with what limits


Abilities = Mapping[str, Ability]  # for each of `MOMENTS`


def mark(moment: str, ability: Ability) -> str:
    """Return how it is known: `observed`, `inferred` or `not known`; of some, `yes` or `no`."""
    if moment in HAD:
        return "yes" if ability.source else "no"
    if not ability.source:
        return "not known"
    return "inferred" if ability.inferred else "observed"


def worded(moment: str, ability: Ability) -> str:
    """Return how it is known, in full."""
    source = f" ({ability.source})" if ability.source else ""
    return f"{mark(moment, ability)}{source}" + (f", {ability.when}" if ability.when else "")
