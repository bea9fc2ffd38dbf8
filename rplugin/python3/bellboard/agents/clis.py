"""The CLIs that bellboard observes; each is loaded when it is first needed."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from .cli import Cli
from .dialects import KEYS, folder_of, is_known


def cli_of(agent: str) -> Cli:
    """Return the CLI of an agent; treat an unknown one like the first."""
    return _loaded(agent if is_known(agent) else KEYS[0])


def clis() -> tuple[Cli, ...]:
    """Return all of them, the first one first."""
    return tuple(map(cli_of, KEYS))


def installable() -> tuple[Cli, ...]:
    """Return those whose hooks bellboard can install."""
    return tuple(cli for cli in clis() if cli.hooks is not None)


@cache
def _loaded(agent: str) -> Cli:
    found: Cli = import_module(f"{folder_of(agent)}.cli", __package__).CLI
    return found
