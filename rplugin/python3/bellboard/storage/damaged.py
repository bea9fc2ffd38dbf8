"""Damaged databases: renamed with a date, and only the newest few are kept."""

from __future__ import annotations

import contextlib
import os
import random
import re
import time
from pathlib import Path
from typing import Final

from . import holders
from .causes import SUFFIXES
from .state_folder import is_damaged

MOST_ASIDE: Final = 5  # damaged databases to keep

_BESIDE: Final = re.compile(f"({'|'.join(filter(None, SUFFIXES))})$")


def set_aside(home: Path, inode: int) -> Path | None:
    """Rename a damaged database with a date; return None if another host has it open.

    `inode` identifies the damaged file: another host may have replaced it already.
    """
    path = home / "board.db"
    held = holders.alone(home)
    if held is None:
        return None
    try:
        if path.stat().st_ino != inode:
            return path
        there = _name(path)
        for suffix in reversed(SUFFIXES):  # the database last: until then this can be repeated
            with contextlib.suppress(FileNotFoundError):
                Path(f"{path}{suffix}").rename(f"{there}{suffix}")
        _keep_newest(home)
    except FileNotFoundError:
        return path
    finally:
        os.close(held)
    return Path(there)


def move_away(odd: Path, path: Path) -> None:
    """Rename what is in place of a file that SQLite keeps beside a database."""
    with contextlib.suppress(FileNotFoundError):
        odd.rename(f"{_name(path)}{odd.name.removeprefix(path.name)}")
        _keep_newest(path.parent)


def _name(path: Path) -> str:
    return f"{path}.damaged-{time.strftime('%Y%m%d-%H%M%S')}-{random.randrange(1000):03}"


def kept(home: Path) -> list[Path]:
    """Return what was set aside, oldest first; each may have files of SQLite beside it."""
    found = (path for path in home.glob("board.db.damaged-*") if is_damaged(path.name))
    return sorted({path.with_name(_BESIDE.sub("", path.name)) for path in found})


def _keep_newest(home: Path) -> None:
    for old in kept(home)[:-MOST_ASIDE]:
        for suffix in SUFFIXES:
            with contextlib.suppress(OSError):
                Path(f"{old}{suffix}").unlink()
