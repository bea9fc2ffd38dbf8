"""The installed Claude Code: its version, and the hook events that it knows.

If a settings file names an unknown event, Claude Code up to 2.1.76 ignores all of its hooks, and
later versions show a dialog at each start.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Mapping
from typing import Final

from ...system.mounts import near
from ...system.packaged import NUMBERS, Version, numbers, version_at, version_in
from ...system.programs import run

#: Known to every supported version.
CORE: Final = (
    *("SessionStart", "SessionEnd", "UserPromptSubmit", "PreToolUse", "PostToolUse"),
    *("PostToolUseFailure", "PermissionRequest", "Notification", "Stop"),
    *("SubagentStart", "SubagentStop", "PreCompact"),
)
#: Later events that the board uses, by the version that added them.
LATER: Final[dict[Version, tuple[str, ...]]] = {
    (2, 1, 33): ("TeammateIdle", "TaskCompleted"),
    (2, 1, 76): ("PostCompact", "Elicitation", "ElicitationResult"),
    (2, 1, 78): ("StopFailure",),
    (2, 1, 83): ("CwdChanged",),
    (2, 1, 84): ("TaskCreated",),
    (2, 1, 88): ("PermissionDenied",),
    (2, 1, 119): ("PostToolBatch",),
    (2, 1, 251): ("PostModelSwitch",),
}
PATIENCE: Final = 3.0  # seconds for `claude --version`, which takes 0.1 s


def events_of(version: Version | None) -> tuple[str, ...]:
    """Return the events to register for a version; only the core ones if it is unknown."""
    later = (names for since, names in LATER.items() if version is not None and version >= since)
    return (*CORE, *(name for names in later for name in names))


def version_of(cli: str | None, environ: Mapping[str, str]) -> Version | None:
    """Return the version of the CLI at a path, or on PATH, or `cli` itself if it is a version."""
    if cli and (given := version_in(cli)):
        return given
    found = near(cli or "claude", environ.get("PATH", ""))
    if found is None:
        return None
    return version_at(found, "claude") or _by_asking(found, environ)


def _by_asking(program: str, environ: Mapping[str, str]) -> Version | None:
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = run([program, "--version"], PATIENCE, environ)
        return numbers(NUMBERS.search(done.output.decode("utf-8", "replace")))
    return None
