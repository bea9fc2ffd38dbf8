"""What an errand is about, what it replies, and why it is declined."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from ..system.reach import Full, Hangs, reach

DEADLINE: Final = 3.0  # seconds; a check takes 1 ms, or 200 ms in another process

T = TypeVar("T")
Given = Mapping[str, Any]  # what an errand is about, and its details
Reply = dict[str, Any]  # what happened


class Declined(Exception):
    """The request is not carried out; the text says why."""


class Unheard(Declined):
    """It did not end in time, and may still be carried out."""


async def beside(work: Callable[[], T]) -> T:
    """Run the part of an errand that may hang, with or without an event loop."""
    try:
        return await reach(work, within=DEADLINE)
    except Full:
        raise Declined(
            "too many requests are waiting for a program or a mount that does not respond;"
            " check your mounts, then try again"
        ) from None
    except Hangs:
        raise Unheard(
            f"timed out after {DEADLINE:.0f} s: a program or a mount hangs;"
            " check your mounts, then try again"
        ) from None
