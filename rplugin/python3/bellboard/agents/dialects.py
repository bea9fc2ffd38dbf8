"""The dialects of the CLIs that bellboard knows; each is loaded when it is first needed."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Final

from .claude_code.dialect.names import VARIABLES
from .dialect import Dialect

__all__ = ["KEYS", "RUNNERS", "VARIABLES", "dialect_of", "dialects", "is_known"]

#: Names of CLIs in evidence.
KEYS: Final = (
    *("claude", "codex", "opencode", "copilot", "qwen", "gemini", "pi", "cursor", "droid"),
    *("goose", "kimi", "amp", "crush", "codecompanion", "avante", "agentic"),
)
_KNOWN: Final = frozenset(KEYS)
#: Environment variable with the process that runs the hooks → its CLI.
RUNNERS: Final = {"COPILOT_LOADER_PID": "copilot"}


def is_known(agent: str) -> bool:
    """Return whether bellboard knows the agent's own words."""
    return agent in _KNOWN


def folder_of(agent: str) -> str:
    """Return the package of an agent, relative to this one."""
    return ".claude_code" if agent == "claude" else f".{agent}"


def dialect_of(agent: str) -> Dialect:
    """Return the dialect of an agent; decode an unknown one like the first."""
    return _loaded(agent if agent in _KNOWN else KEYS[0])


def dialects() -> tuple[Dialect, ...]:
    """Return all of them, the first one first."""
    return tuple(map(dialect_of, KEYS))


@cache
def _loaded(agent: str) -> Dialect:
    """Load a dialect, and no other: together they take longer than most commands."""
    found: Dialect = import_module(f"{folder_of(agent)}.dialect.spoken", __package__).DIALECT
    return found
