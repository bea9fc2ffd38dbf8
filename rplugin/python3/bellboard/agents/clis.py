"""The CLIs that bellboard observes; each is loaded when it is first needed."""

from __future__ import annotations

from functools import cache

from .cli import Cli
from .dialects import CHATS, KEYS, known, module_of


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
