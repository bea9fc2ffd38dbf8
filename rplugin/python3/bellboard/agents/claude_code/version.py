"""Claude Code as installed here: which version, and which events of hooks it knows.

A settings file that names an event which the CLI does not know costs all hooks of it up to 2.1.76,
and a dialog at each start for long after.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

Version = tuple[int, ...]

#: Known to every version that has hooks worth the name.
CORE: Final = (
    *("SessionStart", "SessionEnd", "UserPromptSubmit", "PreToolUse", "PostToolUse"),
    *("PostToolUseFailure", "PermissionRequest", "Notification", "Stop"),
    *("SubagentStart", "SubagentStop", "PreCompact"),
)
#: The later ones that the board makes use of, by the version that brought them.
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
PATIENCE: Final = 3.0  # for `claude --version`, which takes 0.1 s

_VERSION: Final = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9})")


def events_of(version: Version | None) -> tuple[str, ...]:
    """The events to register for that version; the core ones if it is not known."""
    later = (names for since, names in LATER.items() if version is not None and version >= since)
    return (*CORE, *(name for names in later for name in names))


def version_in(text: str) -> Version | None:
    """(2, 1, 328) of `2.1.328`; None for anything else."""
    said = _VERSION.fullmatch(text)
    return _numbers(said) if said else None


def version_of(cli: str | None, environ: Mapping[str, str]) -> Version | None:
    """Of the CLI at that path, or on PATH, or as given itself; None if it cannot be found out."""
    if cli and (said := version_in(cli)):
        return said
    found = shutil.which(cli or "claude", path=environ.get("PATH", ""))
    if found is None:
        return None
    return _by_place(Path(found)) or _by_asking(found, environ)


def _by_place(program: Path) -> Version | None:
    """Its own installer keeps versions/2.1.328, npm a package.json: nothing needs to run."""
    real = program.resolve()
    if real.parent.name == "versions" and (named := _VERSION.fullmatch(real.name)):
        return _numbers(named)
    for folder in list(real.parents)[:3]:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            package = json.loads((folder / "package.json").read_bytes())
            told = _VERSION.match(str(package.get("version")))
            if told and str(package.get("name")).startswith("@anthropic-ai/claude-code"):
                return _numbers(told)
    return None


def _by_asking(program: str, environ: Mapping[str, str]) -> Version | None:
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            [program, "--version"],
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE,
            check=False,
        )
        if told := _VERSION.search(done.stdout):
            return _numbers(told)
    return None


def _numbers(found: re.Match[str]) -> Version:
    return tuple(int(part) for part in found.groups())
