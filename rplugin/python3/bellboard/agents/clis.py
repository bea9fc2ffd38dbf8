"""The CLIs that bellboard observes; each is loaded when it is first needed."""

from __future__ import annotations

from functools import cache

from .cli import Cli
from .dialects import KEYS, is_known


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
    match agent:
        case "codex":
            from .codex.cli import Codex

            return Codex()
        case "opencode":
            from .opencode.cli import OpenCode

            return OpenCode()
        case "copilot":
            from .copilot.cli import Copilot

            return Copilot()
        case "qwen":
            from .qwen.cli import Qwen

            return Qwen()
        case "gemini":
            from .gemini.cli import Gemini

            return Gemini()
        case "pi":
            from .pi.cli import Pi

            return Pi()
        case "cursor":
            from .cursor.cli import Cursor

            return Cursor()
        case "droid":
            from .droid.cli import Droid

            return Droid()
        case "goose":
            from .goose.cli import Goose

            return Goose()
        case "kimi":
            from .kimi.cli import Kimi

            return Kimi()
        case "amp":
            from .amp.cli import Amp

            return Amp()
        case "crush":
            from .crush.cli import Crush

            return Crush()
        case "codecompanion":
            from .codecompanion.cli import CodeCompanion

            return CodeCompanion()
        case "avante":
            from .avante.cli import Avante

            return Avante()
        case "agentic":
            from .agentic.cli import Agentic

            return Agentic()
        case _:
            from .claude_code.cli import ClaudeCode

            return ClaudeCode()
