"""What a scene is, and how most of them start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from truth.stage import Stage

ALWAYS: Final = (0,)
WITH_STATUS: Final = (2, 1, 119)  # and the first seen here to show an answer as it comes
NEWEST: Final = (2, 1, 197)  # where in doubt: what older ones do differently was not looked into
FOREGROUND: Final = {
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1"
}  # else 2.1.328 runs no subagent so
REST: Final = "idle|completed"  # where the CLI's file cannot tell which


@dataclass(frozen=True)
class Scene:
    """`play` it, and `final` is shown (one of several); None: its session is gone by then."""

    name: str
    play: Callable[[Stage], None]
    final: str | None
    since: tuple[int, ...] = ALWAYS  # the CLI that brought it
    fault: str = ""  # what was once wrong in it


def asked(stage: Stage, scenario: str, *args: str) -> None:
    """Start, prompt, and wait until it asks."""
    stage.start(*args)
    stage.prompt(scenario)
    stage.stands("waiting")
