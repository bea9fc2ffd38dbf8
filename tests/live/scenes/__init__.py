"""The scenes: a function for each does what a user would, and a status is expected at the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from live.scene import Scene
from live.scenes import (
    ask_hooks,
    beside,
    deciding_hooks,
    everyday,
    habits,
    leaving,
    modes,
    owners,
    processes,
    questions,
    queues,
    retries,
    sessions,
    stop_hooks,
    teams,
    turns,
    unthought,
)

GROUPS: Final[Mapping[str, tuple[Scene, ...]]] = {
    module.__name__.rpartition(".")[2]: module.SCENES
    for module in (
        *(turns, retries, questions, sessions, stop_hooks, ask_hooks),
        *(deciding_hooks, everyday, habits, beside),
        *(processes, modes, owners, queues, leaving, teams, unthought),
    )
}
SCENES: Final = tuple(scene for scenes in GROUPS.values() for scene in scenes)
