"""What the state folder keeps for the hooks: the script that they run, and where they were put.

emit          a copy of `hooks/emit`: its place outlives updates and moves of the plugin
hooks.json    each settings file that our hooks were put into: for which events, and what the
              file was before, so that they can be taken out without a trace
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from ....storage.ground import is_ours
from ....system.atomic import content, replace
from ....system.files import opened, touch
from ....system.flocks import locked
from .settings_text import Before

MARK: Final = b"into bellboard's spool"  # in the first lines of each version of the script
HEAD: Final = 400  # bytes


class Place(msgspec.Struct):
    """One settings file."""

    events: list[str] = []  # that ought to be there; none while it is being written
    before: Before = {}
    made_folder: bool = False
    told: bool = False  # somebody was told that they are gone


Places = dict[str, Place]


def shipped() -> Path:
    """The script of this installation: of a checkout, or in the installed package."""
    package = Path(__file__).resolve().parents[3]
    inside = package / "hooks" / "emit"
    return inside if inside.is_file() else package.parents[2] / "hooks" / "emit"


def script(home: Path) -> Path:
    """Where the hooks find it."""
    return home / "emit"


def keep_script(home: Path) -> None:
    """Have the script of this installation there."""
    data = shipped().read_bytes()
    with _locked(home):
        if content(script(home)) != data:
            replace(script(home), data, content(script(home)))
            script(home).chmod(0o700)


def is_script(path: str, home: Path) -> bool:
    """Is it ours: the one kept here, that of this installation, or one of another version?"""
    touch(path)
    real = os.path.realpath(path)
    if real in (os.path.realpath(script(home)), os.path.realpath(shipped())):
        return True
    with contextlib.suppress(OSError), opened(real, ours=False) as (fd, _):
        return MARK in os.read(fd, HEAD)
    return False


def record(home: Path) -> Path:
    """The file that says where they were put."""
    return home / "hooks.json"


def places(home: Path) -> Places:
    """Where they were put; nowhere, if that cannot be read, or was written by somebody else."""
    touch(record(home))
    if not is_ours(home):
        return {}
    try:
        return msgspec.json.decode(content(record(home)) or b"{}", type=Places)
    except (OSError, msgspec.MsgspecError, ValueError):
        return {}


@contextlib.contextmanager
def changing(home: Path) -> Iterator[Places]:
    """Change what is recorded, alone; where there is no state folder, nothing is."""
    if not is_ours(home):
        yield {}
        return
    with _locked(home):
        known = places(home)
        yield known
        data = msgspec.json.format(msgspec.json.encode(known)) + b"\n"
        if (old := content(record(home))) != data:
            replace(record(home), data, old)


def _locked(home: Path) -> contextlib.AbstractContextManager[None]:
    """For moments only; `Held` says who has it for longer."""
    return locked(home / "hooks.lock")
