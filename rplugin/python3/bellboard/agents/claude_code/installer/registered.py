"""The handlers that Claude Code's settings get, by event.

This file does no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from ...installing.hooktext import Handler

#: Seconds until the CLI ends a hook, where its usual time is too short: to wait for an answer.
TIMEOUTS: Final = {"PermissionRequest": 86_400}


def handlers(events: Iterable[str], line: Callable[[str], str]) -> dict[str, Handler]:
    """Return the handler of each event; `line` gives its command."""
    return {event: _handler(event, line(event)) for event in events}


def _handler(event: str, command: str) -> Handler:
    handler = {"type": "command", "command": command}
    return {**handler, "timeout": TIMEOUTS[event]} if event in TIMEOUTS else handler
