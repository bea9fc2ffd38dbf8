"""Shorten a failing walk by removing parts while the same failure remains."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from live.walks.actions import Action, Walk

Fails = Callable[[Walk], bool]


def shrunk(walk: Walk, fails: Fails, until: float) -> Walk:
    """Return the shortest walk found by delta debugging until that time (monotonic)."""

    def tried(candidate: Walk) -> bool:
        return time.monotonic() < until and fails(candidate)

    for hook in walk.hooks:
        fewer = replace(walk, hooks=tuple(h for h in walk.hooks if h != hook))
        if tried(fewer):
            walk = fewer
    for terminal in sorted({a.terminal for a in walk.actions}, reverse=True):
        rest = tuple(a for a in walk.actions if a.terminal != terminal)
        if rest and tried(replace(walk, actions=rest)):
            walk = replace(walk, actions=rest)
    size = len(walk.actions) // 2
    while size and time.monotonic() < until:
        for actions in _without_parts(walk.actions, size):
            if tried(replace(walk, actions=actions)):
                walk = replace(walk, actions=actions)
                break
        else:
            size //= 2
    return walk


def until_wrong(walk: Walk, done: int) -> Walk:
    """Return the walk up to the failure."""
    return replace(walk, actions=walk.actions[:done])


def _without_parts(actions: tuple[Action, ...], size: int) -> Iterator[tuple[Action, ...]]:
    """Yield the walk without one part of that size, for each part, the last one first."""
    for start in range(max(0, len(actions) - size), -1, -size):
        rest = (*actions[:start], *actions[start + size :])
        if rest:
            yield _slowly(rest, actions[start : start + size], start)


def _slowly(rest: tuple[Action, ...], left_out: tuple[Action, ...], at: int) -> tuple[Action, ...]:
    """Add the pauses of removed actions to others, up to a limit, so that the timing stays."""
    if not at:
        return rest
    pause = min(8.0, rest[at - 1].pause + sum(a.pause for a in left_out))
    return (*rest[: at - 1], replace(rest[at - 1], pause=round(pause, 2)), *rest[at:])
