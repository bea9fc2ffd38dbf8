"""The files of the hooks in the state folder: their script, and the record of installed hooks.

emit          a copy of `hooks/emit`, at a path that survives updates and moves of the plugin
hooks.json    each file with our hooks: their CLI, their events, and the text before them, so that
              they can be removed without a trace
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from ...core.events import AGENT
from ...storage.state_folder import is_ours
from ...system.files import content, opened, real, replace, touch
from ...system.files import shipped as shipped_file
from ...system.locks import locked
from .settings_file import Before

MARK: Final = b"into bellboard's spool"  # at the top of every version of the script
HEAD: Final = 400  # bytes


class HookedFile(msgspec.Struct):
    """A file with our hooks."""

    events: list[str] = []  # events that should be there; empty while the file is being written
    before: Before = {}
    agent: str = AGENT
    made: list[str] = []  # new folders, innermost first
    made_folder: bool = False  # in older records: whether the innermost folder was made
    reported: bool = msgspec.field(default=False, name="told")  # hooks that are gone

    def folders(self, path: Path) -> list[str]:
        """Return the folders that were made for the file, innermost first."""
        return self.made or [str(path.parent)] * self.made_folder


HookedFiles = dict[str, HookedFile]


def shipped() -> Path:
    """Return the script of this installation."""
    return shipped_file("emit")


def script(home: Path) -> Path:
    """Return the path of the script that the hooks run."""
    return home / "emit"


def keep_script(home: Path) -> None:
    """Install or update the script."""
    data = shipped().read_bytes()
    with _locked(home):
        if content(script(home)) != data:
            replace(script(home), data, content(script(home)))
        if script(home).stat().st_mode & 0o777 != 0o700:  # a host may have been killed before this
            script(home).chmod(0o700)


def is_script(path: str, home: Path) -> bool:
    """Return whether a path is our script: the kept copy, the shipped one, or another version.

    The path comes from the file of a CLI, which may hold anything.
    """
    with contextlib.suppress(OSError):
        there = real(path)
        if there in (str(shipped()), real(script(home))):
            return True
        with opened(there, ours=False) as (fd, _):
            return MARK in os.read(fd, HEAD)
    return False


def record(home: Path) -> Path:
    """Return the path of the record of installed hooks."""
    return home / "hooks.json"


def hooked_files(home: Path) -> HookedFiles:
    """Return the files with hooks; empty if the record cannot be read or is not ours."""
    try:
        return stored(home)
    except OSError:
        return {}


def stored(home: Path) -> HookedFiles:
    """Return the files with hooks, if the record is ours; raise OSError if it is unreadable.

    Use this to change files or the record: an error must not look like "no hooks".
    """
    touch(record(home))
    return _decoded(home, content(record(home))) if is_ours(home) else {}


def unread(home: Path, e: OSError) -> str:
    """Return the message about a record that cannot be read."""
    return f"cannot read {record(home)}: {e.strerror or e}"


@contextlib.contextmanager
def changing(home: Path) -> Iterator[HookedFiles]:
    """Change the record under its lock; without a state folder, changes are dropped.

    Raise OSError if the record cannot be read or written.
    """
    if not is_ours(home):
        yield {}
        return
    with _locked(home):
        old = content(record(home))
        known = _decoded(home, old)
        before = msgspec.json.encode(known)
        yield known
        if msgspec.json.encode(known) != before:
            replace(record(home), _encoded(known, old), old)


def _decoded(home: Path, data: bytes | None) -> HookedFiles:
    try:
        return msgspec.json.decode(data or b"{}", type=HookedFiles)
    except ValueError:  # includes msgspec's own error
        why = "not a record of hooks that this version can read; update bellboard, or remove it"
        raise OSError(errno.EINVAL, why, str(record(home))) from None


def _encoded(known: HookedFiles, old: bytes | None) -> bytes:
    """Return a record that keeps the fields of the old one that a newer version added."""
    was = msgspec.json.decode(old or b"{}", type=dict[str, dict[str, msgspec.Raw]])
    whole = {
        path: {**was.get(path, {}), **msgspec.to_builtins(hooked)} for path, hooked in known.items()
    }
    return msgspec.json.format(msgspec.json.encode(whole)) + b"\n"


def _locked(home: Path) -> contextlib.AbstractContextManager[None]:
    """Hold the lock, briefly; `Held` names whoever keeps it for longer."""
    return locked(home / "hooks.lock")
