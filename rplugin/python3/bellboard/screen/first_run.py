"""The screen while no session is known: `first_run.txt`, which Neovim shows as well."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ..agents.registry import KEYS, agent_of

COMMANDS: Final = {
    "health": "bellboard doctor",
    "install": "bellboard hooks install",
    "demo": ":Bellboard demo",
}
NEW: Final = ":Bellboard new"


def first_run(environ: Mapping[str, str]) -> str:
    """Return how to get started, with the commands of a shell."""
    first = agent_of(KEYS[0]).program  # `new` starts it, unless another agent is named
    is_there = shutil.which(first, path=environ.get("PATH", "")) is not None
    new = NEW if is_there else f"{NEW} --agent NAME"
    return filled({**COMMANDS, "missing": "" if is_there else first, "new": new})


def filled(named: Mapping[str, str]) -> str:
    """Return the text with these words filled in, without lines in which a word is empty."""
    lines = Path(__file__).with_suffix(".txt").read_text("utf-8").splitlines(keepends=True)
    empty = [f"{{{name}}}" for name, word in named.items() if not word]
    return "".join(s.format(**named) for s in lines if not any(name in s for name in empty))
