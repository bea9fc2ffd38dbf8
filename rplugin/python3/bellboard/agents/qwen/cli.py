"""Qwen Code, as the rest of the program observes it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ..agent import NAMED, Abilities, Ability, Agent
from ..installing.hookline import Environ, GlobalHooks, HooksFile, below_home
from .dialect.hooks import KINDS

HOOKS: Final = Ability("hooks")
AT_REST: Final = Ability("hooks", True, "it stopped without completing its turn")
#: What it reports (measured on 0.24.4).
ABILITIES: Final[Abilities] = {
    "unprompted": HOOKS,
    "working": HOOKS,
    "permission": HOOKS,
    "question": HOOKS,
    "granted": HOOKS,
    "denied": AT_REST,
    "completed": HOOKS,
    "interrupted": AT_REST,
    "failed": HOOKS,
    "ended": Ability("hooks, processes"),
    "itself": Ability(""),
    "answer": Ability(""),
}

EVENTS: Final = (*(name for name, kind in KINDS.items() if kind != "note"), "Notification")
PATIENCE: Final = 10000  # milliseconds that a hook may take


def _folder(environ: Environ) -> Path:
    """Return where it keeps its settings; it also takes a home that begins with ~."""
    folder = below_home(".qwen", "QWEN_HOME")(environ)
    user_home = environ.get("HOME", "")
    return Path(user_home, *folder.parts[1:]) if folder.parts[:1] == ("~",) else folder


def _obstacles(looked: GlobalHooks) -> Iterator[str]:
    if json.loads(looked.text).get("disableAllHooks") is True:
        yield "disabled by disableAllHooks"


class Qwen(Agent):
    """See `Cli`."""

    key = "qwen"
    name = "Qwen Code"
    program = "qwen"
    variable = "QWEN_HOME"
    tested = (0, 24, 4)
    abilities = ABILITIES
    timeouts = dict.fromkeys(EVENTS, PATIENCE)
    named = NAMED
    resuming = ("--resume",)
    hooks = HooksFile(folder=_folder, name="settings.json", comments=True, obstacles=_obstacles)


CLI: Final = Qwen()
