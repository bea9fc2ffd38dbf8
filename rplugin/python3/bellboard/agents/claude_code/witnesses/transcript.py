"""Find where Claude Code writes the transcripts of its sessions."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import Final

from ....system.files import entries, is_file, names_in

CONFIG: Final = "CLAUDE_CONFIG_DIR"  # the variable that names the config directory
_SESSION: Final = re.compile(r"[A-Za-z0-9_-]{1,200}")


def path_of(config_dir: str | Path, session_id: str, cwd: str) -> str:
    """Return where the CLI writes a session's transcript, for sessions without hooks."""
    if not _SESSION.fullmatch(session_id):
        return ""
    projects, name = Path(config_dir) / "projects", f"{session_id}.jsonl"
    likely = Path(folder_of(str(config_dir), cwd)) / name
    if cwd and is_file(likely):
        return str(likely)
    # The folder name is lossy, truncated if long, and may be overridden: search them all.
    try:
        paths = [projects / folder / name for folder in names_in(projects)]
    except OSError:
        paths = []
    return next((str(path) for path in paths if is_file(path)), str(likely) if cwd else "")


def folder_of(config_dir: str, cwd: str) -> str:
    """Return the default folder for the transcripts of a directory."""
    return f"{config_dir}/projects/{re.sub('[^A-Za-z0-9]', '-', cwd)}"


def begun_in(config_dir: str, cwd: str, since: float, taken: Collection[str]) -> str:
    """Return the session in a directory that was written to since then, if there is only one."""
    if not (config_dir and cwd):
        return ""
    found = set()
    try:
        for name, status in entries(folder_of(config_dir, cwd)):
            sid, _, kind = name.rpartition(".")
            is_one = kind == "jsonl" and _SESSION.fullmatch(sid) and sid not in taken
            if is_one and status.st_mtime >= since:
                found.add(sid)
    except (OSError, ValueError):
        return ""
    return found.pop() if len(found) == 1 else ""
