"""The CLIs that bellboard observes; each is loaded when it is first needed."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from .cli import Cli
from .dialects import KEYS, folder_of


def cli_of(agent: str) -> Cli:
    """Return the CLI of an agent."""
    return _loaded(folder_of(agent))


def clis() -> tuple[Cli, ...]:
    """Return all of them, the first one first."""
    return tuple(map(cli_of, KEYS))


def installable() -> tuple[Cli, ...]:
    """Return those whose hooks bellboard can install."""
    return tuple(cli for cli in clis() if cli.hooks is not None)


@cache
def _loaded(folder: str) -> Cli:
    found: Cli = import_module(f"{folder}.cli", __package__).CLI
    return found
