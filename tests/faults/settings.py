"""Text of the user: a host's options, the agent's settings, our hook line."""

from __future__ import annotations

import contextlib
import json
from random import Random
from typing import Any

from faults.fault import Fault, Kind
from faults.files import THINGS, remove
from faults.junk import brief, changed, encoded
from faults.messages import OPTIONS
from faults.target import Target

CONFIG: dict[str, Any] = {
    "options": OPTIONS,
    "callbacks": {"working": ["true"], "completed": "true"},
    "notices": {
        "mode": "normal",
        "quiet": ["22:00-07:00"],
        "desktop": {"after": 30},
        "sound": True,
        "push": {"command": ["true"]},
        "float": {"after": 0},
        "labels": {"HEAVY": {}},
    },
    "server": "/tmp/none",
    "focused": True,
    "pull_requests": False,
    "labels": {"HEAVY": {"pin": True}},
}
HOOK = {"type": "command", "command": '/srv/hooks/emit Stop "$PPID"', "timeout": 10}
SETTINGS: dict[str, Any] = {
    "hooks": {"Stop": [{"matcher": "", "hooks": [HOOK]}], "PreToolUse": [{"hooks": [HOOK]}]},
    "permissions": {"allow": ["Bash(ls:*)"]},
    "enabledPlugins": {"bellboard@x": True},
    "disableAllHooks": False,
}


def config(random: Random) -> Fault:
    """Put any value into any option of a host."""
    given = changed(random, CONFIG)
    given = given if isinstance(given, dict) else {}

    def do(target: Target) -> None:
        target.config = given
        target.restart()
        target.up()

    def undo(target: Target) -> None:
        target.config = {}
        target.restart()
        target.up()

    return Fault(brief(json.dumps(given), 400), do, undo)


def agents(random: Random) -> Fault:
    """Put any value into the agent's settings, or replace the file by another kind."""
    raw = encoded(random, changed(random, SETTINGS))
    name = random.choice(["settings.json", "settings.local.json", "plugins", ".claude.json"])
    what = random.choice([*([""] * 10), *THINGS, "60 MB", "60 MB of brackets"])

    def do(target: Target) -> None:
        target.installed()
        path = target.home.claude / name
        remove(path)
        with contextlib.suppress(OSError):
            if what.startswith("60 MB"):
                path.write_bytes((b"[" if "brackets" in what else b'{"a":"b"},') * (6 << 20))
            elif what:
                THINGS[what](path)
            else:
                path.write_bytes(raw)

    return Fault(f"{name}: {what or brief(raw)}", do, lambda x: remove(x.home.claude / name))


KINDS = (
    Kind("config", make=config),
    Kind("settings", make=agents, batch=8, settle=0.5),
)
