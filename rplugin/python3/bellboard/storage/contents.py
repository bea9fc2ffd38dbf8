"""What bellboard makes in the state folder, by name.

BELLBOARD_HOME may name any folder, also one that holds other things.  Such a folder is refused
(`stranger`).  In one of ours, only what has one of these names is removed; the four folders of the
spool are ours as a whole.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

#: A folder with one of these is ours, whatever else is in it, or was removed from it.
SIGNS: Final = ("spool/slot", "board.db", "board.lock", "drain.lock", "hooks.lock")
#: What `uninstall --purge` looks for, besides the folders of plugins: all that is below, and no
#: other folder whose name could be that of a plugin.
STATE: Final = (
    *("spool", "hosts", "answers", "links", "board.db", "board.db-*", "board.db.damaged-*"),
    *("board.lock", "drain.lock", "look.lock", "emit", "hooks.json", "hooks.lock"),
    ".bellboard-new.*",
)

_PID = r"[1-9][0-9]{0,9}"
_SERIAL = r"[0-9]{1,20}\.[0-9]{1,10}\.[0-9]{1,10}"  # time, process, number
_WORD = r"[A-Za-z0-9_]+"
_HOOK = rf"[0-9]{{8}}\.[0-9a-f.-]+\.{_WORD}(\.[0-9])?(\.0)*"  # as hooks/emit makes it
_EVENT = rf"({_HOOK}|([0-9]+\.{_WORD}|slot)\.{_SERIAL}|line\.([0-9a-f]{{32}}|{_SERIAL}))"
_DAMAGED = r"board\.db\.damaged-[0-9]{8}-[0-9]{6}-[0-9]{3}((-wal|-shm|-journal)[/|=@]?)?"
_REFUSED = r"[0-9]{20}-[A-Za-z0-9_.-]{0,150}(\.why)?"
_PIPE = rf"{_PID}\.[0-9]{{1,20}}"
_LETTER = rf"({_SERIAL}|\.{_SERIAL}\.{_PID})"  # complete, or being written
_MACHINE = rf"([A-Za-z0-9]|\.fleet)[A-Za-z0-9._-]*/(lock|fleet|(ask|reply)/({_LETTER})?)?"
_SSH = r"[0-9a-f]{40}(\.[A-Za-z0-9]+)?="
_FILES = r"board\.db(-wal|-shm|-journal)?|(board|drain|hooks|look)\.lock|hooks\.json|emit"
#: Paths as `ls -F` marks them: a folder ends with /, a pipe with |, a socket with =, a link with @.
_OURS: Final = re.compile(
    rf"{_FILES}|{_DAMAGED}|\.bellboard-new\.{_PID}|board\.db-probe\.{_PID}"
    r"|spool/((new|slot|tmp|bad)/)?"
    rf"|hosts/({_PID})?"
    rf"|answers/({_EVENT}(\.answer)?|{_PIPE}(\||\.taken|\.reply))?"
    rf"|links/(machines\.(json|lock)|\.machines\.json\.{_PID}|{_SSH}|{_MACHINE})?"
    rf"|[a-z]+/({_PID}(=|\.[0-9]{{1,30}}\.reply))?",  # where the plugin of a CLI listens
    re.ASCII,
)
#: What systems put into any folder: it does not make it a stranger's, and is never removed.
_SYSTEM: Final = re.compile(
    r"(.*/)?(lost\+found/|\.nfs[0-9a-f]+|\.fuse_hidden[0-9a-f]+|\.DS_Store|\._.+|\.localized"
    r"|\.directory|Icon\r|\.(fseventsd|Trashes|Trash-[0-9]+|Spotlight-V100|stfolder|snapshots?)/)"
)
_WHOLE: Final = re.compile(r"spool/(new|slot|tmp|bad)/")  # nothing else has a reason to be there
_MARKS: Final = {stat.S_IFDIR: "/", stat.S_IFIFO: "|", stat.S_IFSOCK: "=", stat.S_IFLNK: "@"}

is_event: Final = re.compile(_EVENT, re.ASCII).fullmatch
is_damaged: Final = re.compile(_DAMAGED, re.ASCII).fullmatch
is_refused: Final = re.compile(_REFUSED, re.ASCII).fullmatch
is_letter: Final = re.compile(_LETTER, re.ASCII).fullmatch
is_pipe: Final = re.compile(_PIPE, re.ASCII).fullmatch


def stranger(home: Path) -> str:
    """Return something in a folder that is not ours, or "" if the folder is empty or ours."""
    if any(os.path.lexists(home / sign) for sign in SIGNS):
        return ""
    return next(_strangers(str(home), ""), "")


def is_known(path: Path) -> bool:
    """Return whether something right in the state folder has one of our names."""
    return _OURS.fullmatch(_name(path)) is not None


def clear(path: Path, below: str = "") -> None:
    """Remove what has one of our names: a file, or a folder without what else is in it."""
    name = _name(path, below)
    if _OURS.fullmatch(name) is None:
        return
    if not name.endswith("/"):
        path.unlink(missing_ok=True)
    elif _WHOLE.fullmatch(name):
        import shutil  # which few commands need

        shutil.rmtree(path)
    else:
        for each in sorted(path.iterdir()):
            clear(each, name)
        if not any(path.iterdir()):
            path.rmdir()


def _strangers(folder: str, below: str) -> Iterator[str]:
    with contextlib.suppress(OSError), os.scandir(folder) as found:  # gone, or not to be read
        for entry in found:
            name = _name(Path(entry.path), below)
            if not name or _SYSTEM.fullmatch(name) is not None:
                continue
            if _OURS.fullmatch(name) is None:
                yield name
            elif name.endswith("/") and not _WHOLE.fullmatch(name):
                yield from _strangers(entry.path, name)


def _name(path: Path, below: str = "") -> str:
    """Return the name that a path has here, or "" if it is gone."""
    with contextlib.suppress(FileNotFoundError):
        return _marked(f"{below}{path.name}", path.lstat().st_mode)
    return ""


def _marked(name: str, mode: int) -> str:
    return name + _MARKS.get(stat.S_IFMT(mode), "")
