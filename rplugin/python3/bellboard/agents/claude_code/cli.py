"""Claude Code, as the rest of the program observes it."""

from __future__ import annotations

from ...core.events import AGENT
from ..cli import Cli, Means, Witness
from .witnesses import transcript
from .witnesses.witness import ClaudeWitness


class ClaudeCode(Cli):
    """See `Cli`."""

    key = AGENT
    modules = (transcript.__name__,)

    def witness(self, means: Means) -> Witness:
        return ClaudeWitness(means)
