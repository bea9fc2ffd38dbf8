"""The CLIs that bellboard observes."""

from __future__ import annotations

from typing import Final

from .claude_code.cli import ClaudeCode
from .cli import Cli

CLIS: Final[tuple[Cli, ...]] = (ClaudeCode(),)
