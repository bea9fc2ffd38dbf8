"""The dialects of the CLIs that bellboard knows."""

from __future__ import annotations

from typing import Final

from .claude_code.dialect.spoken import ClaudeDialect
from .dialect import Dialect

DIALECTS: Final[tuple[Dialect, ...]] = (ClaudeDialect(),)

_BY_KEY: Final = {dialect.key: dialect for dialect in DIALECTS}


def dialect_of(agent: str) -> Dialect:
    """Return the dialect of an agent; one that is not known has hooks of the form of the first."""
    return _BY_KEY.get(agent, DIALECTS[0])
