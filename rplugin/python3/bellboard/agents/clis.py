"""The CLIs that bellboard observes."""

from __future__ import annotations

from typing import Final

from .agentic.cli import Agentic
from .amp.cli import Amp
from .avante.cli import Avante
from .claude_code.cli import ClaudeCode
from .cli import Cli
from .codecompanion.cli import CodeCompanion
from .codex.cli import Codex
from .copilot.cli import Copilot
from .crush.cli import Crush
from .cursor.cli import Cursor
from .droid.cli import Droid
from .gemini.cli import Gemini
from .goose.cli import Goose
from .kimi.cli import Kimi
from .opencode.cli import OpenCode
from .pi.cli import Pi
from .qwen.cli import Qwen

CLIS: Final[tuple[Cli, ...]] = (
    ClaudeCode(),
    Codex(),
    OpenCode(),
    Copilot(),
    Qwen(),
    Gemini(),
    Pi(),
    Cursor(),
    Droid(),
    Goose(),
    Kimi(),
    Amp(),
    Crush(),
    CodeCompanion(),
    Avante(),
    Agentic(),
)
#: Those whose hooks bellboard can install.
INSTALLABLE: Final = tuple(cli for cli in CLIS if cli.hooks is not None)

_BY_KEY: Final = {cli.key: cli for cli in CLIS}


def cli_of(agent: str) -> Cli:
    """Return the CLI of an agent; treat an unknown one like the first."""
    return _BY_KEY.get(agent, CLIS[0])
