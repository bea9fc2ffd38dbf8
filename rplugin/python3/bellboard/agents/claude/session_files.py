"""The files of sessions: Claude Code's record of each, and the paths of their transcripts."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from ...core.events import is_id
from ...core.evidence import Evidence, TraceLine
from ...core.request import Went
from ...core.text import LONGEST_PATH, whole
from ...core.untrusted import Facts, decimal, number_of
from ...system.files import decoded, entries, is_file, names_in, opened, read, status_of
from ...system.packaged import Version, version_in
from ...system.processes import (
    began_at,
    has_proc,
    innermost,
    is_alive,
    known_as,
    owner_of,
    space_of,
    started_of,
)
from ..agent import Agent
from .hooks import CONFIG

# Find the transcripts that Claude Code writes.


TAIL: Final = 128 << 10  # bytes at the end of a transcript to read
_SESSION: Final = re.compile(r"[A-Za-z0-9_-]{1,200}")


def path_of(config_dir: str | Path, session_id: str, cwd: str) -> str:
    """Return the path of a session's transcript, for sessions without hooks."""
    if not _SESSION.fullmatch(session_id):
        return ""
    projects, name = Path(config_dir) / "projects", f"{session_id}.jsonl"
    likely = Path(transcripts_folder(str(config_dir), cwd)) / name
    if cwd and is_file(likely):
        return str(likely)
    # The folder name is lossy, truncated if long, and may be overridden: search them all.
    try:
        paths = [projects / folder / name for folder in names_in(projects)]
    except OSError:
        paths = []
    return next((str(path) for path in paths if is_file(path)), str(likely) if cwd else "")


def transcripts_folder(config_dir: str, cwd: str) -> str:
    """Return the default folder for the transcripts of a directory."""
    return f"{config_dir}/projects/{re.sub('[^A-Za-z0-9]', '-', cwd)}"


def begun_in(config_dir: str, cwd: str, since: float, taken: Collection[str]) -> str:
    """Return the one session of a directory that was written since then; "" if not exactly one."""
    if not (config_dir and cwd):
        return ""
    found = set()
    try:
        for name, status in entries(transcripts_folder(config_dir, cwd)):
            sid, _, kind = name.rpartition(".")
            is_one = kind == "jsonl" and _SESSION.fullmatch(sid) and sid not in taken
            if is_one and status.st_mtime >= since:
                found.add(sid)
    except (OSError, ValueError):
        return ""
    return found.pop() if len(found) == 1 else ""


# The CLI's own session files: `sessions/<pid>.json` in each of its config directories.
#
# They are undocumented, so nothing is taken for granted: a file counts only while its process
# runs, may be half-written (it is overwritten in place), and only the fields that evidence
# needs are used. The `*.key` files beside them are secrets and are never opened.


Record = dict[str, object]

CHANGED: Final = "statusUpdatedAt"
FLAG: Final = "spare"  # the only field that is true or false
FIELDS: Final = (
    *("pid", "sessionId", "cwd", "status", "waitingFor", "statusUpdatedAt", "updatedAt"),
    *("startedAt", "procStart", "version", "kind", "entrypoint", "name", "nameSource", "tmux"),
    *("parkedJobId", FLAG),
)
ODD: Final = "cannot be parsed"
LIMIT: Final = 64 << 10  # bytes of a file; real ones have 700
MOST: Final = 2000  # files of a directory to read
REUSED: Final = "its process is dead and the pid was reused"
CLOCKS: Final = 2.0  # seconds by which the times of file and process may differ

_NAME: Final = re.compile(r"([1-9][0-9]{0,9})\.json", re.ASCII)


class _Reported(NamedTuple):
    directory: Path
    record: Record


class Listing(NamedTuple):
    """The session files of a directory, by pid."""

    pids: list[int]
    why: str  # why the directory cannot be read; "" if it can, or does not exist


class FileState(NamedTuple):
    """The state of a session file."""

    record: Record | None  # if the file is valid
    why: str  # why the file is invalid; "" if it is valid or missing
    is_gone: bool  # whether the process no longer has a session file


def config_of(environ: Mapping[str, str]) -> Path:
    """Return the CLI's config directory, by its own rule."""
    given = environ.get(CONFIG)
    return Path(given) if given else Path(environ.get("HOME", "/")) / ".claude"


class Registry:
    """Reports each value of the session files once, and again for a new generation."""

    def __init__(self, config_dirs: Iterable[str | Path], generation: str = "") -> None:
        self.notes: dict[str, str] = {}  # path → why the file is invalid, for health
        self._generation = generation
        self._directories: list[Path] = []
        self._reported: dict[int, _Reported] = {}
        for config_dir in config_dirs:
            self.add(config_dir)

    def add(self, config_dir: str | Path) -> bool:
        """Add a config directory; return False if it is known already, or not absolute."""
        directory = Path(config_dir) / "sessions"
        if not directory.is_absolute() or directory in self._directories:
            return False
        self._directories.append(directory)
        return True

    def paths(self) -> list[Path]:
        """Return the directories to watch, whether they exist or not."""
        return list(self._directories)

    @property
    def records(self) -> dict[int, Record]:
        """Return the last valid record of each process."""
        return {_pid_in(known.record): known.record for known in self._reported.values()}

    def directory_of(self, pid: int) -> str:
        """Return the config directory with the file of a process, or ""."""
        known = (x for x in self._reported.values() if _pid_in(x.record) == pid)
        return next((str(x.directory.parent) for x in known), "")

    def is_read(self, pid: int) -> bool:
        """Return whether the session file of a process was read, valid or not."""
        noted = any(f"{directory}/{pid}.json" in self.notes for directory in self._directories)
        return noted or pid in self.records

    def renew(self, generation: str) -> None:
        """Report everything again at the next check."""
        if generation != self._generation:
            self._generation = generation
            self._reported.clear()

    def check(self, now: float, path: str | Path | None = None) -> list[Evidence]:
        """Return the changes, everywhere or at one path; never raises."""
        if path is None:
            return [f for directory in self._directories for f in self._all(now, directory)]
        directory, pid = self.at(path)
        if directory is None:
            return []
        return self._all(now, directory) if pid is None else self._one(now, directory, pid)

    def at(self, path: str | Path) -> tuple[Path | None, int | None]:
        """Return the directory at or above a path, and the process of its session file."""
        path = Path(path)
        if path in self._directories:
            return path, None
        name = _NAME.fullmatch(path.name)
        if name is None or path.parent not in self._directories:
            return None, None
        return path.parent, int(name[1])

    def listed(self, directory: Path, listing: Listing) -> list[int]:
        """Process a listing; return the processes whose files have to be read."""
        if directory not in self._directories:
            return []
        pids, why = listing
        self._note(str(directory), why)
        there = {f"{directory}/{pid}.json" for pid in pids}
        pids += [p for p, known in self._reported.items() if known.directory == directory]
        for path in [p for p in self.notes if p.startswith(f"{directory}/") and p not in there]:
            del self.notes[path]
        return list(dict.fromkeys(pids))

    def take(self, now: float, directory: Path, pid: int, state: FileState) -> list[Evidence]:
        """Process the state of a session file; return new evidence."""
        if directory not in self._directories:
            return []
        self._note(f"{directory}/{pid}.json", state.why)
        if state.is_gone:
            return self._gone(now, directory, pid)
        record = state.record
        known = self._reported.get(pid)
        if record is None or (known is not None and _value(known.record) == _value(record)):
            return []
        found = []
        if known is not None and _pid_in(known.record) != _pid_in(record):
            found = self._gone(now, known.directory, pid)  # overwritten by another container
        self._reported[pid] = _Reported(directory, record)
        line = TraceLine(pid=_pid_in(record), record=record).line(now, "registry")
        # A record that comes back with the same status time (2.1.119 gives none) differs only in
        # its time of writing.
        was = known.record.get(CHANGED) if known is not None else None
        since = record.get("updatedAt", "") if record.get(CHANGED) == was else ""
        found.append(Evidence(line, f"registry {_value(record)} {since} {self._generation}"))
        return found

    def remove(self, config_dir: str | Path) -> None:
        """Remove a config directory."""
        directory = Path(config_dir) / "sessions"
        if directory in self._directories:
            self._directories.remove(directory)
            self._reported = {
                p: known for p, known in self._reported.items() if known.directory != directory
            }
            for path in [
                p for p in self.notes if Path(p) == directory or Path(p).parent == directory
            ]:
                del self.notes[path]

    def _all(self, now: float, directory: Path) -> list[Evidence]:
        pids = self.listed(directory, list_files(directory))
        return [f for pid in pids for f in self._one(now, directory, pid)]

    def _one(self, now: float, directory: Path, pid: int) -> list[Evidence]:
        return self.take(now, directory, pid, file_state(directory, pid))

    def _note(self, path: str, why: str) -> None:
        if why:
            self.notes[path] = why
        else:
            self.notes.pop(path, None)

    def _gone(self, now: float, directory: Path, pid: int) -> list[Evidence]:
        known = self._reported.get(pid)
        if known is None or known.directory != directory:
            return []
        del self._reported[pid]
        line = TraceLine(pid=_pid_in(known.record), record=None).line(now, "registry")
        return [Evidence(line, f"registry gone {_value(known.record)} {self._generation}")]


def list_files(directory: Path) -> Listing:
    """List the session files in a directory; never raises."""
    try:
        if status_of(directory).st_uid not in (0, os.getuid()):
            return Listing([], "belongs to another user")
        names = [_NAME.fullmatch(name) for name in names_in(directory)]
    except FileNotFoundError:
        return Listing([], "")
    except (OSError, ValueError) as error:
        return Listing([], f"cannot be read: {getattr(error, 'strerror', None) or error}")
    pids = [int(name[1]) for name in names if name]
    too_many = f"{len(pids)} files; only {MOST} are read" if len(pids) > MOST else ""
    return Listing(pids[:MOST], too_many)


def of_listing(known: Mapping[str, object], now: float) -> FileState:
    """Return the state of a process from `claude agents --json`, if its file cannot be parsed."""
    record = _kept(known)
    if record is None:
        return FileState(None, ODD, False)
    record["updatedAt"] = int(now * 1000)  # the list gives no time
    return FileState(record, f"{ODD}; using `claude agents --json` instead", False)


def went_on(directory: Path, pid: int, session_id: str, since: float) -> Went | None:
    """Return how a session went on after `since`, by its file, which shows it before any hook."""
    try:
        record = decoded(read(directory / f"{innermost(pid)}.json", LIMIT)[0]) or {}
    except OSError:
        return None
    at, status = number_of(record.get("statusUpdatedAt")) or 0.0, record.get("status", "waiting")
    is_later = record.get("sessionId") == session_id and at >= since * 1000
    return Went(at / 1000, status == "idle") if status != "waiting" and is_later else None


def file_state(directory: Path, pid: int) -> FileState:
    """Read the session file of a process, and check that the process runs; never raises."""
    path = directory / f"{pid}.json"
    try:
        raw, status = read(path, LIMIT)
    except FileNotFoundError:
        return FileState(None, "", True)
    except OSError as error:
        return FileState(None, error.strerror or str(error), False)
    given = decoded(raw)
    record = _kept(given) if given is not None else None
    if record is None or (given or {}).get("pid", pid) != pid:
        # Half-written, or in a future format: keep the last valid value.
        return FileState(None, ODD, False)
    space = str((given or {}).get("pidDomain", ""))
    outside = _outside(pid, space, str(record.get("procStart", "")), status.st_mtime)
    why = _disowned(outside, record, status.st_mtime) if outside == pid else ""
    why = why if outside else "its process is dead"
    if why:
        return FileState(None, why, True)
    pid = outside
    record |= {"pid": pid, "procStart": started_of(pid) or record.get("procStart", "")}
    return FileState(record, "", False)


def _outside(inner: int, space: str, started: str, written: float) -> int:
    """Return the process that wrote a file, if its own pid differs from the one that we see.

    The file names its pid namespace (`linux:…:pid:[…]`; then 0 if no process is in it), or the
    start time of the process.
    """
    if not has_proc() or (started_of(inner) == started and not space):
        return inner
    if not space:
        found = [p for p in known_as(inner, written) if started_of(p) == started]
    elif space.endswith(space_of(inner) or "?"):
        return inner
    else:
        found = [p for p in known_as(inner, written) if space.endswith(space_of(p) or "?")]
    return found[0] if len(found) == 1 else 0 if space else inner


def _kept(given: Mapping[str, object]) -> Record | None:
    """Return the fields to use, or None if there is no session id."""
    record: Record = {}
    for field in FIELDS:
        value = given.get(field)
        if isinstance(value, str):
            record[field] = whole(value[:LONGEST_PATH])
        elif isinstance(value, int | float) and (field == FLAG or not isinstance(value, bool)):
            record[field] = value
    return record if is_id(record.get("sessionId")) else None


def _pid_in(record: Record) -> int:
    """Return the process of a record, which `file_state` has put there."""
    pid = record["pid"]
    return pid if isinstance(pid, int) else 0


def _value(record: Record) -> str:
    """Return a text that is the same for records that differ only in their time of writing."""
    return "\n".join(f"{k}={v}" for k, v in record.items() if k != "updatedAt")


def _disowned(pid: int, record: Record, written: float) -> str:
    """Return why a file does not belong to a running process of ours, or ""."""
    if pid == os.getpid():
        return "it names this background process"
    owner = owner_of(pid)
    if owner is None or not is_alive(pid):
        return "its process is dead"
    if owner != os.getuid():
        return "its process belongs to another user"
    claimed, started = str(record.get("procStart", "")), started_of(pid)
    if decimal(claimed) is not None and decimal(started) is not None:
        return "" if claimed == started else REUSED
    began = began_at(pid)  # CLIs before 2.1.119 give no start time
    if began is not None and began > written + CLOCKS:
        return REUSED
    return ""


# The running versions, as far as session files name them.


SCROLLS: Final = (2, 1, 330)  # the first version that was seen to scroll its input
SILENT: Final = (2, 1, 76)  # the first version with session files, which do not name it yet


def oldest_running(environ: Mapping[str, str]) -> Version | None:
    """Return the oldest version that is running; all others know its hook events, too."""
    return min(versions_of(registry_of(config_of(environ)).records), default=None)


def is_folding(config: Path, pid: int) -> bool:
    """Return whether the input of a process has room for a long text only if that is folded."""
    record = registry_of(config).records.get(pid)
    return record is not None and (version_in(str(record.get("version"))) or SILENT) < SCROLLS


def registry_of(folder: Path) -> Registry:
    """Return the session files of a config directory, read once."""
    registry = Registry([folder])
    registry.check(time.time())
    return registry


def versions_of(records: Mapping[int, Record]) -> dict[Version, int]:
    """Count the sessions of each version, newest first."""
    named = {pid: version_in(str(record.get("version"))) for pid, record in records.items()}
    silent = {pid: None if "status" in record else SILENT for pid, record in records.items()}
    known = [version for pid, named_ in named.items() if (version := named_ or silent[pid])]
    return {version: known.count(version) for version in sorted({*known}, reverse=True)}


def last_entries(agent: Agent, path: str) -> list[Facts]:
    """Return the last entries of a transcript; none if it cannot be read."""
    try:
        with opened(path) as (fd, status):
            start = max(0, status.st_size - TAIL)
            raw = os.pread(fd, TAIL, start)
    except OSError:
        return []
    lines = raw.split(b"\n")[1 if start else 0 :]
    found = (decoded(line) for line in lines if line and not agent.is_noise(line))
    return [entry for entry in found if entry is not None]
