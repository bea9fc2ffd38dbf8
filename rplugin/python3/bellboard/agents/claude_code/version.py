"""The installed Claude Code: its version, and the hook events that it knows.

If a settings file names an unknown event, Claude Code up to 2.1.76 ignores all of its hooks, and
later versions show a dialog at each start.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ...system.files import decoded, read, real
from ...system.mounts import near
from ...system.program import run

Version = tuple[int, ...]

LARGEST: Final = 1 << 20  # bytes of package.json
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

_VERSION: Final = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9})")


def events_of(version: Version | None) -> tuple[str, ...]:
    """Return the events to register for a version; only the core ones if it is unknown."""
    later = (names for since, names in LATER.items() if version is not None and version >= since)
    return (*CORE, *(name for names in later for name in names))


def version_in(text: str) -> Version | None:
    """Return (2, 1, 328) for `2.1.328`, and None for anything else."""
    found = _VERSION.fullmatch(text)
    return _numbers(found) if found else None


def version_of(cli: str | None, environ: Mapping[str, str]) -> Version | None:
    """Return the version of the CLI at a path, or on PATH, or `cli` itself if it is a version."""
    if cli and (given := version_in(cli)):
        return given
    found = near(cli or "claude", environ.get("PATH", ""))
    if found is None:
        return None
    return _by_place(Path(found)) or _by_asking(found, environ)


def _by_place(program: Path) -> Version | None:
    """Read the version from versions/2.1.328 (native installer) or package.json (npm)."""
    there = Path(real(program))
    if there.parent.name == "versions" and (named := _VERSION.fullmatch(there.name)):
        return _numbers(named)
    for folder in list(there.parents)[:3]:
        with contextlib.suppress(OSError):
            package = decoded(read(folder / "package.json", LARGEST, ours=False)[0]) or {}
            found = _VERSION.match(str(package.get("version")))
            if found and str(package.get("name")).startswith("@anthropic-ai/claude-code"):
                return _numbers(found)
    return None


def _by_asking(program: str, environ: Mapping[str, str]) -> Version | None:
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = run([program, "--version"], PATIENCE, environ)
        if found := _VERSION.search(done.output.decode("utf-8", "replace")):
            return _numbers(found)
    return None


def _numbers(found: re.Match[str]) -> Version:
    return tuple(int(part) for part in found.groups())
