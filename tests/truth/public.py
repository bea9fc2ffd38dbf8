"""Make a trace that can be committed: without paths of this machine, and without noise."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final

from rig.cache import CHECKOUT
from truth.account import Line

LAB: Final = "/home/user/lab"  # the path shown in recordings
HOMES: Final = re.compile(r"/(?:(?:private/)?tmp|dev/shm)/bb-[A-Za-z0-9_]+")
PROJECTS: Final = re.compile(r"-(?:tmp|dev-shm)-bb-[A-Za-z0-9-]+-project")
TOLD: Final = ("user", "assistant", "system", "queue-operation", "custom-title", "ai-title")
PRIVATE: Final = ("messagingSocketPath",)
FIRST: Final = ("does ", "published ", "misplaced", "agents --json")  # notes to keep


def public(lines: Iterable[Line]) -> list[Line]:
    """Yield the lines that matter."""
    kept = []
    for x in lines:
        if "note" in x and not str(x["note"]).startswith(FIRST):
            continue
        entry = x.get("transcript", {}).get("entry")
        if entry is not None and entry.get("type") not in TOLD:
            continue
        kept.append(_anywhere(x))
    return kept


def _anywhere(x: Line) -> Line:
    text = json.dumps(x).replace(str(CHECKOUT), f"{LAB}/bellboard")
    text = PROJECTS.sub("-home-user-lab-project", HOMES.sub(LAB, text))
    line: dict[str, Any] = json.loads(text)
    for key in PRIVATE:
        (line.get("registry", {}).get("record") or {}).pop(key, None)
    return line
