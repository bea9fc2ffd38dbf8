"""The CLI's own session files: `sessions/<pid>.json` of each of its config directories.

Undocumented, so read with suspicion: it counts only while the process that wrote it lives, it may
be half-written (it is overwritten in place), and of its fields only those leave that evidence
reads.  What stands beside it as `*.key` is a secret and is not even opened.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from ....core.detail import whole
from ....core.events import LONGEST_ID
from ....core.finding import Finding
from ....core.lenient import decimal
from ....system.files import decoded, read, touch
from ....system.processes import began_at, is_alive, owner_of, started_of

Record = dict[str, object]

FIELDS: Final = (
    *("pid", "sessionId", "cwd", "status", "waitingFor", "statusUpdatedAt", "updatedAt"),
    *("startedAt", "procStart", "version", "kind", "entrypoint", "name", "nameSource", "tmux"),
)
ODD: Final = "cannot be understood"
LIMIT: Final = 64 << 10  # bytes of a file; real ones have 700
MOST: Final = 2000  # files of a directory that are looked at
LONGEST: Final = 4096  # of a text: PATH_MAX
CLOCKS: Final = 2.0  # seconds that the file's time and the process's may differ by

_NAME: Final = re.compile(r"([1-9][0-9]{0,9})\.json", re.ASCII)


class _Told(NamedTuple):
    directory: Path
    record: Record


class Listing(NamedTuple):
    """The session files of a directory, by pid."""

    pids: list[int]
    why: str  # why it cannot be read; empty also if it is not there


class Seen(NamedTuple):
    """One session file, as it was found."""

    record: Record | None  # if there is one to be believed
    why: str  # there is none; empty also if there is no file
    is_gone: bool  # its process has no session file any more


def config_of(environ: Mapping[str, str]) -> Path:
    """The CLI's config directory, by its own rule."""
    given = environ.get("CLAUDE_CONFIG_DIR")
    return Path(given) if given else Path(environ.get("HOME", "/")) / ".claude"


class Registry:
    """What the session files say; tells each value once, and anew for another generation."""

    def __init__(self, config_dirs: Iterable[str | Path], generation: str = "") -> None:
        self.notes: dict[str, str] = {}  # path → why it is not believed, for health
        self._generation = generation
        self._directories: list[Path] = []
        self._told: dict[int, _Told] = {}
        for config_dir in config_dirs:
            self.add(config_dir)

    def add(self, config_dir: str | Path) -> bool:
        """Look there too; False if it is known, or no place at all."""
        directory = Path(config_dir) / "sessions"
        if not directory.is_absolute() or directory in self._directories:
            return False
        self._directories.append(directory)
        return True

    def paths(self) -> list[Path]:
        """The directories to watch, there or not."""
        return list(self._directories)

    @property
    def records(self) -> dict[int, Record]:
        """The last good value of each process that counts."""
        return {pid: told.record for pid, told in self._told.items()}

    def directory_of(self, pid: int) -> str:
        """The config directory in which a process that counts has its file; empty if none has."""
        told = self._told.get(pid)
        return str(told.directory.parent) if told else ""

    def renew(self, generation: str) -> None:
        """Let the next look tell everything again."""
        if generation != self._generation:
            self._generation = generation
            self._told.clear()

    def look(self, now: float, path: str | Path | None = None) -> list[Finding]:
        """What has changed, everywhere or at one path that a watch named; never raises."""
        if path is None:
            return [f for directory in self._directories for f in self._all(now, directory)]
        directory, pid = self.at(path)
        if directory is None:
            return []
        return self._all(now, directory) if pid is None else self._one(now, directory, pid)

    def at(self, path: str | Path) -> tuple[Path | None, int | None]:
        """What a path is to us: a directory, the session file of a process in it, or nothing."""
        path = Path(path)
        if path in self._directories:
            return path, None
        name = _NAME.fullmatch(path.name)
        if name is None or path.parent not in self._directories:
            return None, None
        return path.parent, int(name[1])

    def listed(self, directory: Path, listing: Listing) -> list[int]:
        """Take in what `listing` found; whose files are to be looked at now."""
        if directory not in self._directories:
            return []
        pids, why = listing
        self._note(str(directory), why)
        there = set(pids)
        pids += [p for p, told in self._told.items() if told.directory == directory]
        for path in [p for p in self.notes if p.startswith(f"{directory}/")]:
            if path not in {f"{directory}/{pid}.json" for pid in there}:
                del self.notes[path]
        return list(dict.fromkeys(pids))

    def take(self, now: float, directory: Path, pid: int, seen: Seen) -> list[Finding]:
        """Take in what `look_at` found; what is new in it."""
        if directory not in self._directories:
            return []
        self._note(f"{directory}/{pid}.json", seen.why)
        if seen.is_gone:
            return self._gone(now, directory, pid)
        record = seen.record
        told = self._told.get(pid)
        if record is None or (told is not None and _value(told.record) == _value(record)):
            return []
        self._told[pid] = _Told(directory, record)
        line = {"t": now, "registry": {"pid": pid, "record": record}}
        # 2.1.119 does not say since when: a status that comes back is told apart by the writing.
        since = "" if "statusUpdatedAt" in record else record.get("updatedAt", "")
        return [Finding(line, f"registry {_value(record)} {since} {self._generation}")]

    def remove(self, config_dir: str | Path) -> None:
        """Look there no more."""
        directory = Path(config_dir) / "sessions"
        if directory in self._directories:
            self._directories.remove(directory)
            self._told = {p: told for p, told in self._told.items() if told.directory != directory}
            for path in [
                p for p in self.notes if Path(p) == directory or Path(p).parent == directory
            ]:
                del self.notes[path]

    def _all(self, now: float, directory: Path) -> list[Finding]:
        pids = self.listed(directory, list_files(directory))
        return [f for pid in pids for f in self._one(now, directory, pid)]

    def _one(self, now: float, directory: Path, pid: int) -> list[Finding]:
        return self.take(now, directory, pid, look_at(directory, pid))

    def _note(self, path: str, why: str) -> None:
        if why:
            self.notes[path] = why
        else:
            self.notes.pop(path, None)

    def _gone(self, now: float, directory: Path, pid: int) -> list[Finding]:
        told = self._told.get(pid)
        if told is None or told.directory != directory:
            return []
        del self._told[pid]
        line = {"t": now, "registry": {"pid": pid, "record": None}}
        return [Finding(line, f"registry gone {_value(told.record)} {self._generation}")]


def list_files(directory: Path) -> Listing:
    """The session files in it; never raises."""
    touch(directory)
    try:
        names = [_NAME.fullmatch(name) for name in os.listdir(directory)]  # noqa: PTH208
    except FileNotFoundError:
        return Listing([], "")
    except (OSError, ValueError) as error:
        return Listing([], f"cannot be read: {getattr(error, 'strerror', None) or error}")
    pids = [int(name[1]) for name in names if name]
    too_many = f"{len(pids)} files; {MOST} of them are looked at" if len(pids) > MOST else ""
    return Listing(pids[:MOST], too_many)


def of_listing(told: Mapping[str, object], now: float) -> Seen:
    """What `claude agents --json` tells of a process whose file cannot be understood."""
    record = _kept(told)
    if record is None:
        return Seen(None, ODD, False)
    record["updatedAt"] = int(now * 1000)  # it does not tell since when
    return Seen(record, f"{ODD}; `claude agents --json` tells instead", False)


def look_at(directory: Path, pid: int) -> Seen:
    """The session file of a process, and whether that lives; never raises."""
    path = directory / f"{pid}.json"
    try:
        raw, status = read(path, LIMIT)
    except FileNotFoundError:
        return Seen(None, "", True)
    except OSError as error:
        return Seen(None, error.strerror or str(error), False)
    given = decoded(raw)
    record = _kept(given) if given is not None else None
    if record is None or (given or {}).get("pid", pid) != pid:
        # Half-written, or of a format to come: the last good value stands.
        return Seen(None, ODD, False)
    why = _disowned(pid, record, status.st_mtime)
    if why:
        return Seen(None, why, True)
    record |= {"pid": pid, "procStart": started_of(pid) or record.get("procStart", "")}
    return Seen(record, "", False)


def _kept(given: Mapping[str, object]) -> Record | None:
    """The fields that may leave; None without a session."""
    record: Record = {}
    for field in FIELDS:
        value = given.get(field)
        if isinstance(value, str):
            record[field] = whole(value[:LONGEST])
        elif isinstance(value, int | float) and not isinstance(value, bool):
            record[field] = value
    sid = record.get("sessionId")
    return record if isinstance(sid, str) and 0 < len(sid) <= LONGEST_ID else None


def _value(record: Record) -> str:
    """What makes a record another one: all but the time of its last writing."""
    return "\n".join(f"{k}={v}" for k, v in record.items() if k != "updatedAt")


def _disowned(pid: int, record: Record, written: float) -> str:
    """Why a file is not that of the process it names; empty if it is."""
    if pid == os.getpid():
        return "its process is this host"
    owner = owner_of(pid)
    if owner is None or not is_alive(pid):
        return "its process is dead"
    if owner != os.getuid():
        return "another user's process"
    told, started = str(record.get("procStart", "")), started_of(pid)
    if decimal(told) is not None and decimal(started) is not None:
        return "" if told == started else "its process is dead, and the pid another's"
    began = began_at(pid)  # CLIs before 2.1.119 tell no start
    if began is not None and began > written + CLOCKS:
        return "its process is dead, and the pid another's"
    return ""
