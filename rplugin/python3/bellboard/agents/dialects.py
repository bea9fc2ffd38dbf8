"""The dialects of the CLIs that bellboard knows."""

from __future__ import annotations

from typing import Final

from .agentic.dialect.spoken import AgenticDialect
from .amp.dialect.spoken import AmpDialect
from .avante.dialect.spoken import AvanteDialect
from .claude_code.dialect.spoken import ClaudeDialect
from .codecompanion.dialect.spoken import CodeCompanionDialect
from .codex.dialect.spoken import CodexDialect
from .copilot.dialect.spoken import CopilotDialect
from .crush.dialect.spoken import CrushDialect
from .cursor.dialect.spoken import CursorDialect
from .dialect import Dialect
from .droid.dialect.spoken import DroidDialect
from .gemini.dialect.spoken import GeminiDialect
from .goose.dialect.spoken import GooseDialect
from .kimi.dialect.spoken import KimiDialect
from .opencode.dialect.spoken import OpenCodeDialect
from .pi.dialect.spoken import PiDialect
from .qwen.dialect.spoken import QwenDialect

DIALECTS: Final[tuple[Dialect, ...]] = (
    ClaudeDialect(),
    CodexDialect(),
    OpenCodeDialect(),
    CopilotDialect(),
    QwenDialect(),
    GeminiDialect(),
    PiDialect(),
    CursorDialect(),
    DroidDialect(),
    GooseDialect(),
    KimiDialect(),
    AmpDialect(),
    CrushDialect(),
    CodeCompanionDialect(),
    AvanteDialect(),
    AgenticDialect(),
)

_BY_KEY: Final = {dialect.key: dialect for dialect in DIALECTS}


def is_known(agent: str) -> bool:
    """Return whether bellboard knows the agent's own words."""
    return agent in _BY_KEY


def dialect_of(agent: str) -> Dialect:
    """Return the dialect of an agent; decode an unknown one like the first."""
    return _BY_KEY.get(agent, DIALECTS[0])
