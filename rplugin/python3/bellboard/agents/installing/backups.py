"""The dated copies that are made of a settings file before it is changed."""

from __future__ import annotations

import contextlib
import glob
import os
import re
from datetime import datetime
from pathlib import Path
from typing import Final

KEPT: Final = 3  # copies of one file


def backup_of(path: Path) -> Path:
    """Return a name that sorts after all existing backups, and was not used before."""
    stamp = f"{path.name}.bellboard-{datetime.now().astimezone():%Y%m%d-%H%M%S}"
    last = next((copy.name for copy in reversed(backups(path)) if copy.name.startswith(stamp)), "")
    count = int(last[len(stamp) + 1 :] or 0) + 1 if last else 0
    while os.path.lexists(backup := path.with_name(f"{stamp}.{count}" if count else stamp)):
        count += 1
    return backup


def backups(path: Path) -> list[Path]:
    """Return the backups of a file, oldest first."""
    stamp = r"\.bellboard-(\d{8}-\d{6})(?:\.(\d{1,9}))?"
    dated = re.compile(re.escape(path.name) + stamp, re.ASCII)
    copies = path.parent.glob(f"{glob.escape(path.name)}.bellboard-*")
    found = {  # a folder that changes meanwhile may list a name twice
        (named[1], int(named[2] or 0), copy)
        for copy in copies
        if (named := dated.fullmatch(copy.name)) and copy.is_file() and not copy.is_symlink()
    }
    return [copy for _, _, copy in sorted(found)]


def prune(path: Path) -> None:
    """Remove all backups of a file but the newest."""
    for old in backups(path)[:-KEPT]:
        with contextlib.suppress(OSError):
            old.unlink()
