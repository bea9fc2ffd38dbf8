"""Gemini CLI, as the rest of the program observes it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from ..cli import Cli, Means, Witness, settings_of
from ..installing.place import Environ, HooksFile, Looked
from .abilities import ABILITIES
from .dialect.hooks import KINDS

EVENTS: Final = (*(name for name, kind in KINDS.items() if kind != "note"), "Notification")
PATIENCE: Final = 10000  # milliseconds that a hook may take


def _folder(environ: Environ) -> Path:
    return Path(environ.get("GEMINI_CLI_HOME") or environ.get("HOME", "")) / ".gemini"


def _obstacles(looked: Looked) -> Iterator[str]:
    if json.loads(looked.text).get("hooksConfig", {}).get("enabled") is False:
        yield "disabled by hooksConfig.enabled"


class Gemini(Cli):
    """See `Cli`."""

    key = "gemini"
    name = "Gemini CLI"
    abilities = ABILITIES
    hooks = HooksFile(
        program="gemini",
        folder=_folder,
        name="settings.json",
        comments=True,
        obstacles=_obstacles,
    )

    def witness(self, means: Means) -> Witness:
        from .witness import GeminiWitness

        return GeminiWitness(means)

    def reporting(self, line: Callable[[str], str]) -> str:
        named = {"name": "bellboard"}
        return settings_of({e: {**named, "command": line(e), "timeout": PATIENCE} for e in EVENTS})


CLI: Final = Gemini()
