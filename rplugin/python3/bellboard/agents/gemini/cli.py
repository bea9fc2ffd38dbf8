"""Gemini CLI, as the rest of the program observes it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from ..agent import NAMED, Abilities, Ability, Agent, Means, Witness
from ..installing.hookline import Environ, GlobalHooks, HooksFile
from .dialect.hooks import KINDS

HOOKS: Final = Ability("hooks")
LOG: Final = Ability("log")
#: What it reports (measured on 0.61.0).
ABILITIES: Final[Abilities] = {
    "unprompted": HOOKS,
    "working": HOOKS,
    "permission": HOOKS,
    "question": HOOKS,
    "granted": Ability("title", when="in tmux and Neovim; elsewhere when the tool has finished"),
    "denied": LOG,
    "completed": Ability("hooks, log"),
    "interrupted": LOG,
    "failed": LOG,
    "ended": Ability("hooks, processes"),
    "itself": Ability(""),
    "answer": Ability(""),
}

EVENTS: Final = (*(name for name, kind in KINDS.items() if kind != "note"), "Notification")
PATIENCE: Final = 10000  # milliseconds that a hook may take


def _folder(environ: Environ) -> Path:
    return Path(environ.get("GEMINI_CLI_HOME") or environ.get("HOME", "")) / ".gemini"


def _obstacles(looked: GlobalHooks) -> Iterator[str]:
    settings = json.loads(looked.text)
    config = settings.get("hooksConfig", {})
    if config.get("enabled") is False:
        yield "disabled by hooksConfig.enabled"
    if (disabled := config.get("disabled")) and isinstance(disabled, list):  # by its /hooks
        names = list(_names(settings["hooks"], looked.ours))
        if off := [name for name in names if name in disabled]:
            yield f"{len(off)} of {len(names)} hooks disabled by hooksConfig.disabled"


def _names(hooks: dict[str, Any], ours: Callable[[str], bool]) -> Iterator[str]:
    """Yield what Gemini calls each handler of ours: its name, or else its command."""
    groups = (each for listed in hooks.values() if isinstance(listed, list) for each in listed)
    for group in groups:
        for handler in group.get("hooks", ()):
            command = str(handler.get("command"))
            if ours(command):
                yield handler.get("name") or command


class Gemini(Agent):
    """See `Cli`."""

    key = "gemini"
    name = "Gemini CLI"
    program = "gemini"
    variable = "GEMINI_CLI_HOME"
    tested = (0, 61, 0)
    abilities = ABILITIES
    timeouts = dict.fromkeys(EVENTS, PATIENCE)
    named = NAMED
    hooks = HooksFile(folder=_folder, name="settings.json", comments=True, obstacles=_obstacles)

    def witness(self, means: Means) -> Witness:
        from .witness import GeminiWitness

        return GeminiWitness(means)


CLI: Final = Gemini()
