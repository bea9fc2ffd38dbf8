"""Find the files of this installation: in a checkout or in the installed package."""

from __future__ import annotations

import functools
import sys
from pathlib import Path


@functools.cache
def shipped(name: str) -> Path:
    """Return the path of a file of `hooks/`, without links."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "hooks" / name
    return (inside if inside.is_file() else package.parents[2] / "hooks" / name).resolve()


def plugin(head: str, name: str) -> str:
    """Return a plugin in JavaScript: its first line, what reports, and its own part."""
    parts = (shipped(part).read_text("utf-8") for part in ("report.js", name))
    return "".join((f"{head}\n", *parts))


def program() -> list[str]:
    """Return the command line of `bellboard`, for other programs to run in any folder.

    With -E, no PYTHONPATH makes it import files of that folder, and no PYTHONHOME keeps it from
    starting.
    """
    return [sys.executable, "-E", str(Path(__file__).resolve().parents[1] / "__main__.py")]
