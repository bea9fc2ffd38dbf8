"""The real Claude Code CLI, of a version that never changes by itself."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from rig import npm
from rig.cache import Missing

VERSION = "2.1.328"
#: All that tests run; they are fetched before the clock of any test runs.
VERSIONS = ("2.1.76", "2.1.119", VERSION)


def executable(version: str = VERSION) -> Path:
    """The program of that version: a native binary, or (older) a script for node."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise Missing(f"{version!r} is no version; say it whole, as {VERSION}")
    package = npm.package("@anthropic-ai/claude-code", version)
    native = sorted(package.parent.glob("claude-code-*-*/claude"))
    if native:
        return native[0]
    script = package / "cli.js"
    if not script.exists():
        raise Missing(f"Claude Code {version} has no program for this machine; remove {package}")
    if shutil.which("node") is None:
        raise Missing(f"node is missing; Claude Code {version} runs on it")
    script.chmod(0o755)
    return script


def numbers(version: str) -> tuple[int, ...]:
    """(2, 1, 328), to compare versions."""
    return tuple(int(part) for part in version.split("."))
