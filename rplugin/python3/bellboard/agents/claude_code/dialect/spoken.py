"""The dialect of Claude Code, whose parts are each decoded in a file of their own.

The parts about screens are loaded when one is read: hooks and files report everything else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ....core.events import AGENT
from ....core.program_status import Report
from ....core.request import Answer, Request
from ...dialect import About, Dialect, Press, Seen
from .asking import on_disk
from .hooks import hook
from .names import KINDS
from .reply import reply
from .request import request
from .rules import SETTINGS
from .said import decoded, head_of, is_noise
from .session_file import account

#: Its own report, once the turn is over and only these still run.
_WORK: Final = r"\d+ (?:shell|monitor|MCP task)s?"
_LEFT: Final = re.compile(rf"{_WORK}(?:\W+(?:and )?{_WORK})* still running")


class ClaudeDialect(Dialect):
    """See `Dialect`."""

    key = AGENT
    kinds = KINDS
    rules = f"permissions.allow in {SETTINGS}"

    event = staticmethod(hook)
    account = staticmethod(account)
    entry = staticmethod(decoded)
    is_noise = staticmethod(is_noise)
    head_of = staticmethod(head_of)
    request = staticmethod(request)
    on_disk = staticmethod(on_disk)
    reply = staticmethod(reply)

    def reported(self, report: Report) -> str:
        is_left = report.state == "working" and _LEFT.fullmatch(report.msg)
        is_dialog = report.state == "blocked" and not report.kind and report.msg == "dialog open"
        return "background" if is_left else "dialog" if is_dialog else report.state

    def on_screen(self, rows: Sequence[str]) -> Seen | None:
        from .screens import read

        return read(rows)

    def press(self, screen: Sequence[str], request: Request, answer: Answer, about: About) -> Press:
        from .pressing import press

        return press(screen, request, answer, about)

    def offers(self, screen: Sequence[str], request: Request) -> tuple[str, ...]:
        from .pressing import offers

        return offers(screen, request)

    def takes(self) -> str:
        from .pressing import TAKES

        return TAKES


DIALECT: Final = ClaudeDialect()
