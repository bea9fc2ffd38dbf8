"""OpenCode, as the rest of the program observes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from ...system.shipped import shipped
from ..cli import Cli, Waiting
from ..installing.place import HooksFile
from . import server
from .abilities import ABILITIES


class OpenCode(Cli):
    """See `Cli`."""

    key = "opencode"
    name = "OpenCode"
    abilities = ABILITIES
    resuming = ("-s",)
    keeps_transcripts = False
    hooks = HooksFile(
        program="opencode",
        folder=lambda environ: _config(environ) / "opencode",
        name="plugins/bellboard.js",
        own=True,
        mark="// bellboard's plugin for OpenCode",
        note="running sessions load the plugin when they are started again",
    )

    def reporting(self, line: Callable[[str], str]) -> str:
        return shipped("opencode.js").read_text()

    def find(self, waiting: Waiting) -> None:
        server.find(waiting)

    def answer(self, waiting: Waiting, reply: bytes) -> None:
        server.answer(waiting, reply)


def _config(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("XDG_CONFIG_HOME") or f"{environ.get('HOME', '')}/.config")
