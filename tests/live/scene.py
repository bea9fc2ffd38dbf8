"""The definition of a scene, and how most of them start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from live.stage import How, Stage
from rig import claude_code

ALWAYS: Final = (0,)
WITH_STATUS: Final = (2, 1, 119)  # also the first known to show an answer as it arrives
NEWEST: Final = (2, 1, 197)  # the behaviour of older ones was not examined
FOREGROUND: Final = {
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1"
}  # otherwise 2.1.328 runs no such subagent
REST: Final = "idle|completed"  # if the CLI's file does not show which
LOGIN: Final = "error|blocked"  # it asks to log in, which only its own report says


@dataclass(frozen=True)
class Scene:
    """`play` it, and a status in `final` must be shown; None: the session must be gone."""

    name: str
    play: Callable[[Stage], None]
    final: str | None
    since: tuple[int, ...] = ALWAYS  # the first CLI that supports it
    fault: str = ""  # the fault that it once had
    in_tmux: bool = False  # it uses what only tmux can do

    def suits(self, how: How) -> bool:
        """Return whether it can be played there."""
        return claude_code.numbers(how.version) >= self.since and not (self.in_tmux and how.editor)


def asked(stage: Stage, scenario: str, *args: str) -> None:
    """Start a CLI, send a prompt, and wait until it asks."""
    stage.start(*args)
    stage.prompt(scenario)
    stage.stands("waiting")
