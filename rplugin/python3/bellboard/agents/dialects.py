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
#: Name of a CLI → its package, relative to this one.
_FOLDERS: Final = {key: f".{key}" for key in KEYS} | {KEYS[0]: ".claude_code"}
#: Environment variable with the process that runs the hooks → its CLI.
RUNNERS: Final = {"COPILOT_LOADER_PID": "copilot"}
#: Package that could not be loaded → why: thousands of events may need it.
_failed: Final[dict[str, str]] = {}


def is_known(agent: str) -> bool:
    """Return whether bellboard knows the agent's own words."""
    return agent in _FOLDERS


def folder_of(agent: str) -> str:
    """Return the package of an agent; an unknown one is taken for the first."""
    return _FOLDERS.get(agent, _FOLDERS[KEYS[0]])


def dialect_of(agent: str) -> Dialect:
    """Return the dialect of an agent."""
    return _loaded(folder_of(agent))


def dialects() -> tuple[Dialect, ...]:
    """Return all of them, the first one first."""
    return tuple(map(dialect_of, KEYS))


def try_again() -> None:
    """Let what could not be loaded be tried again."""
    _failed.clear()


@cache
def _loaded(folder: str) -> Dialect:
    """Load a dialect, and no other: together they take longer than most commands.

    Raise ImportError if its file is that of another version, or half written, and not if the system
    lacks something; then without another try until `try_again`.
    """
    if folder in _failed:
        raise ImportError(_failed[folder])
    try:
        found: Dialect = import_module(f"{folder}.dialect.spoken", __package__).DIALECT
    except (MemoryError, OSError):
        raise
    except Exception as e:
        _failed[folder] = f"{folder[1:]}: {e}"
        raise ImportError(_failed[folder]) from e
    return found
