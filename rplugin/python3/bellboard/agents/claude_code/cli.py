"""Claude Code, as the rest of the program observes it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ...core.events import AGENT
from ...core.session import Session
from ...system.processes import environment_of
from ..cli import Cli, Means, Sent, Waiting, Witness
from .dialect.deciding import first_in
from .witnesses import transcript
from .witnesses.registry import CONFIG, config_of, state_of, went_on
from .witnesses.witness import ClaudeWitness


class ClaudeCode(Cli):
    """See `Cli`."""

    key = AGENT
    modules = (transcript.__name__,)

    def witness(self, means: Means) -> Witness:
        return ClaudeWitness(means)

    def session_of(self, pid: int, environ: Mapping[str, str]) -> str:
        own = config_of(environment_of(pid, (CONFIG, "HOME")))
        for config in dict.fromkeys((own, config_of(environ))):
            record = state_of(config / "sessions", pid).record
            if record is not None:
                return str(record["sessionId"])
        return ""

    def went_on(self, pid: int, s: Session, since: float, environ: Mapping[str, str]) -> float:
        config = Path(s.config_dir or config_of(environ))
        return went_on(config / "sessions", pid, s.session_id, since)

    def first(self, s: Session, asked: Waiting, since: float, sent: Sent) -> str | None:
        entries = transcript.ends_with(s.transcript)
        return first_in(entries, asked.payload, asked.tool_id, sent.answer, since, sent.hook)
