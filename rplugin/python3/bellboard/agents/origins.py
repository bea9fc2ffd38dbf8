"""Decode where evidence came from: the agent, its process, its terminal, its environment.

This file does no I/O.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ..core.events import AGENT, Origin
from ..core.text import whole
from ..core.untrusted import Facts, object_of, text_of
from .dialects import RUNNERS, VARIABLES

#: Names of variables in a trace line, a CLI's own or those of an event → those of an event.
NAMES: Final = {known: field for name, field in VARIABLES.items() for known in (name, field)}


def origin_of(given: object) -> Origin:
    """Decode an origin, without values of the wrong type."""
    if not isinstance(given, dict):
        return Origin()
    env, pid = object_of(given.get("env")), pid_of(given.get("pid"))
    return msgspec.structs.replace(
        where_of(given),
        agent=_runner(env, pid) or text_of(given, "agent") or AGENT,
        pid=pid,
        started=text_of(given, "started"),
        shared=given.get("shared") is True,
        many=given.get("many") is True,
        # the rest of an environment is private
        env={NAMES[k]: whole(v) for k, v in env.items() if k in NAMES and type(v) is str},
    )


def _runner(env: Facts, pid: int | None) -> str:
    """Return the agent whose process ran a hook: some also run those made for another."""
    return next((agent for name, agent in RUNNERS.items() if env.get(name) == str(pid)), "")


def where_of(given: Facts) -> Origin:
    """Decode the terminal that a line names."""
    return Origin(
        tty=text_of(given, "tty") or None,
        tmux=text_of(given, "tmux") or None,
        pane=text_of(given, "pane") or None,
        nvim=text_of(given, "nvim") or None,
        kitty=text_of(given, "kitty") or None,
    )


def pid_of(value: object) -> int | None:
    return value if type(value) is int and 0 < value < 1 << 31 else None
