"""The CLIs that bellboard observes; each is loaded when it is first needed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from ..system.files import is_folder
from .cli import Cli
from .dialects import CHATS, KEYS, known, module_of

#: CLIs that show more than hooks.
WITNESSED: Final = ("claude", "codex", "copilot", "gemini")


def cli_of(agent: str) -> Cli:
    """Return the CLI of an agent."""
    return _loaded(known(agent))


def clis() -> tuple[Cli, ...]:
    """Return all of them, the first one first."""
    return tuple(map(cli_of, KEYS))


def installable() -> tuple[Cli, ...]:
    """Return those whose hooks bellboard can install."""
    return tuple(cli for cli in clis() if cli.hooks is not None)


@cache
def _loaded(agent: str) -> Cli:
    module = module_of(agent, "cli")
    found: Cli = module.CLIS[agent] if agent in CHATS else module.CLI
    return found


def used(environ: Mapping[str, str]) -> list[str]:
    """Return the witnessed CLIs that may have sessions: each takes long to load. May hang."""
    home = environ.get("HOME", "/")
    return [
        key
        for key in WITNESSED
        if key == KEYS[0]
        or is_folder(f"{home}/.{key}")
        or any(name.startswith(f"{key.upper()}_") for name in environ)  # it may be elsewhere
    ]
