"""Claude Code, as the rest of the program observes it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...core.events import AGENT
from ...core.request import Sent, Went
from ...core.session import Session
from ...system.processes import environment_of, innermost
from ..cli import Cli, Means, Waiting, Witness
from ..installing.hookline import HooksFile, below_home
from .abilities import NEWEST
from .witnesses.registry import config_of, state_of, went_on
from .witnesses.transcript import CONFIG

if TYPE_CHECKING:
    from .installer import Settings


class ClaudeCode(Cli):
    """See `Cli`."""

    key = AGENT
    name = "Claude Code"
    program = "claude"
    variable = CONFIG
    tested = (2, 1, 332)
    abilities = NEWEST
    resuming = ("--resume",)
    hooks = HooksFile(below_home(".claude", CONFIG), "settings.json")
    without_hooks = (
        "its sessions are known from their files and screens; "
        "hooks add the tool in use, subagents and progress"
    )

    def witness(self, means: Means) -> Witness:
        from .witnesses.witness import ClaudeWitness

        return ClaudeWitness(means)

    def reporting(self, line: Callable[[str], str]) -> str:
        from .installer import handlers
        from .version import CORE

        hooks = {event: [{"hooks": [each]}] for event, each in handlers(CORE, line).items()}
        return json.dumps({"hooks": hooks}, indent=2, ensure_ascii=False)

    def installer(self, home: Path, environ: Mapping[str, str]) -> Settings:
        from .installer import Settings

        return Settings(home, environ, self)

    def session_of(self, pid: int, environ: Mapping[str, str]) -> str:
        own = config_of(environment_of(pid, (CONFIG, "HOME")))
        for config in dict.fromkeys((own, config_of(environ))):
            record = state_of(config / "sessions", innermost(pid)).record
            if record is not None and record["pid"] == pid:
                return str(record["sessionId"])
        return ""

    def went_on(
        self, pid: int, s: Session, since: float, environ: Mapping[str, str]
    ) -> Went | None:
        config = Path(s.config_dir or config_of(environ))
        return went_on(config / "sessions", pid, s.session_id, since)

    def asking(self, s: Session, environ: Mapping[str, str]) -> bytes:
        from ..tailing import ends_with
        from .dialect.asking import asking
        from .dialect.spoken import DIALECT
        from .witnesses.transcript import path_of

        config = s.config_dir or config_of(environ)
        path = s.transcript or path_of(config, s.session_id, s.cwd)  # no hook may have named it
        return asking(s.session_id, ends_with(DIALECT, path))

    def winner(self, s: Session, asked: Waiting, since: float, sent: Sent) -> str | None:
        from ..tailing import ends_with
        from .dialect.deciding import first_in
        from .dialect.spoken import DIALECT

        entries = ends_with(DIALECT, s.transcript)
        return first_in(entries, asked.payload, asked.tool_id, since, sent)


CLI: Final = ClaudeCode()
