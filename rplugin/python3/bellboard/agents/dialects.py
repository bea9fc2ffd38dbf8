"""The dialects of the CLIs that bellboard knows; each is loaded when it is first needed."""

from __future__ import annotations

from functools import cache
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


def dialect_of(agent: str) -> Dialect:
    """Return the dialect of an agent; decode an unknown one like the first."""
    return _loaded(agent if agent in _KNOWN else KEYS[0])


def dialects() -> tuple[Dialect, ...]:
    """Return all of them, the first one first."""
    return tuple(map(dialect_of, KEYS))


@cache
def _loaded(agent: str) -> Dialect:
    """Load a dialect, and no other: together they take longer than most commands."""
    match agent:
        case "codex":
            from .codex.dialect.spoken import CodexDialect

            return CodexDialect()
        case "opencode":
            from .opencode.dialect.spoken import OpenCodeDialect

            return OpenCodeDialect()
        case "copilot":
            from .copilot.dialect.spoken import CopilotDialect

            return CopilotDialect()
        case "qwen":
            from .qwen.dialect.spoken import QwenDialect

            return QwenDialect()
        case "gemini":
            from .gemini.dialect.spoken import GeminiDialect

            return GeminiDialect()
        case "pi":
            from .pi.dialect.spoken import PiDialect

            return PiDialect()
        case "cursor":
            from .cursor.dialect.spoken import CursorDialect

            return CursorDialect()
        case "droid":
            from .droid.dialect.spoken import DroidDialect

            return DroidDialect()
        case "goose":
            from .goose.dialect.spoken import GooseDialect

            return GooseDialect()
        case "kimi":
            from .kimi.dialect.spoken import KimiDialect

            return KimiDialect()
        case "amp":
            from .amp.dialect.spoken import AmpDialect

            return AmpDialect()
        case "crush":
            from .crush.dialect.spoken import CrushDialect

            return CrushDialect()
        case "codecompanion":
            from .codecompanion.dialect.spoken import CodeCompanionDialect

            return CodeCompanionDialect()
        case "avante":
            from .avante.dialect.spoken import AvanteDialect

            return AvanteDialect()
        case "agentic":
            from .agentic.dialect.spoken import AgenticDialect

            return AgenticDialect()
        case _:
            from .claude_code.dialect.spoken import ClaudeDialect

            return ClaudeDialect()
