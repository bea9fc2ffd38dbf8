"""The tail of a session's transcript: what is appended, told once, from the offset last read.

A transcript is opened only while its session needs it, and never read from its start: at first
the last part is read, for the title, the model, the context in use and how the turn stands; then
only what was added.  Of lines longer than `LINE` nothing is kept, not even in memory.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Final
from zlib import crc32

from ....core.events import Event, line_of
from ....core.finding import Finding
from ....core.words import amount
from ....system.files import decoded, opened, touch
from ..dialect.entries import gist, is_noise, told_by

TAIL: Final = 128 << 10  # bytes read at first; titles are written again every now and then
WIDER: Final = 2 << 20  # and where nothing is told there, but a tool's large result
LINE: Final = 1 << 20  # a longer line is a file or an image that somebody pasted
CHUNK: Final = 256 << 10
BEHIND: Final = 4 << 20  # bytes; whoever is further behind starts anew at the tail
LINGER: Final = 10.0  # seconds after an end in which title, usage and errors are still written
NEEDED: Final = frozenset({"working", "blocked", "unknown"})
MARK: Final = 64  # bytes before the offset by which a file is known again
_SESSION: Final = re.compile(r"[A-Za-z0-9_-]{1,200}")
KEPT: Final = 512  # offsets of transcripts that are not followed now


def is_needed(status: str, since: float, now: float, alone: bool = False) -> bool:
    """Whether a session of that status, since then, needs its transcript to be followed.

    `alone`: neither a hook nor the registry tells what it does, so nothing else wakes us.
    """
    return alone or status in NEEDED or now < since + LINGER


class Transcripts:
    """Follows the transcripts of those sessions that need it."""

    def __init__(self) -> None:
        self._followed: dict[str, Tail] = {}  # by session
        self._left: dict[str, Tail] = {}

    @property
    def followed(self) -> dict[str, str]:
        """The path of each session's transcript that is followed."""
        return {sid: tail.path for sid, tail in self._followed.items()}

    @property
    def notes(self) -> dict[str, str]:
        """Of each that is followed: what of it cannot be read; for health."""
        return {t.path: note for t in self._followed.values() if (note := t.note)}

    def follow(self, session_id: str, path: str | Path, since: float = 0.0) -> bool:
        """From where it was left, else from its tail; True if it was not followed there before.

        `since`: the newest evidence of that session; older entries only tell facts.
        """
        tail = self._followed.get(session_id)
        if tail is not None and tail.path == str(path):
            return False
        self.leave(session_id)
        before = self._left.pop(session_id, None)
        if before is not None and before.path == str(path):
            self._followed[session_id] = before
        else:
            self._followed[session_id] = Tail(session_id, str(path), since)
        return True

    def leave(self, session_id: str) -> None:
        """Look at it no more; where it was left is remembered."""
        tail = self._followed.pop(session_id, None)
        if tail is not None:
            self._left[session_id] = tail
            while len(self._left) > KEPT:
                del self._left[next(iter(self._left))]

    def forget(self, session_id: str) -> None:
        """The session has ended."""
        self.leave(session_id)
        self._left.pop(session_id, None)

    def look(self, now: float, changed: Iterable[str] | None = None) -> list[Finding]:
        """What was added, in all or in the changed ones; never raises."""
        paths = None if changed is None else set(changed)
        tails = [t for t in self._followed.values() if paths is None or t.path in paths]
        return [finding for tail in tails for finding in tail.look(now)]

    def tail(self, session_id: str) -> Tail | None:
        """Of a session that is followed."""
        return self._followed.get(session_id)

    def has(self, session_id: str, tail: Tail) -> bool:
        """Whether it still is that session's, followed or left."""
        return tail in (self._followed.get(session_id), self._left.get(session_id))


class Tail:
    """One transcript, and how far it has been read."""

    def __init__(self, session_id: str, path: str, since: float) -> None:
        self.path = path
        self._session_id = session_id
        self._since = since  # what was told up to then needs no telling again
        self._identity = (0, 0)
        self._offset = 0  # of the first line that was not read whole
        self._before = b""  # what stands before the offset, as it was read
        self._skips = False  # within a line that is too long
        self._odd = self._long = 0  # lines of which nothing was understood, or kept
        self._unread = ""
        self.has_folder = True  # that it is in; the first session in a directory has none yet

    @property
    def note(self) -> str:
        """What of it cannot be read; empty if there is nothing to say."""
        odd = f"{amount(self._odd, 'line')} that cannot be understood" if self._odd else ""
        long = f"{amount(self._long, 'line')} of more than {LINE >> 20} MB" if self._long else ""
        return ", ".join(filter(None, (self._unread, odd, long)))

    def look(self, now: float) -> list[Finding]:
        """What was added since the last look; never raises."""
        self.has_folder = True
        try:
            with opened(self.path) as (fd, status):
                identity, size = (status.st_dev, status.st_ino), status.st_size
                behind = size - self._offset
                goes_on = identity == self._identity and 0 <= behind <= BEHIND
                if goes_on and self._is_as_read(fd):
                    found = list(self._told(fd, now)) if behind else []
                else:
                    self._identity = identity
                    found = self._from_tail(fd, size, now)
        except OSError as error:  # the next one of that name is another one
            self._identity, self._offset = (0, 0), 0
            is_there = not isinstance(error, FileNotFoundError)
            self.has_folder = is_there or os.path.isdir(os.path.dirname(self.path))  # noqa: PTH112, PTH120
            self._unread = (error.strerror or str(error)) if is_there else ""
            return []
        self._unread = ""
        times = (event.t for _, event in found if event.kind != "note")  # titles have no time
        self._since = max(times, default=self._since)
        return [finding for finding, _ in found]

    def become(self, other: Tail) -> None:
        """Be as far as a copy of it, which was read on elsewhere."""
        self.__dict__.update(other.__dict__)

    def _is_as_read(self, fd: int) -> bool:
        """Not another file: one that is removed may leave its number to the next of its name."""
        before = self._before
        return os.pread(fd, len(before), self._offset - len(before)) == before

    def _from_tail(self, fd: int, size: int, now: float) -> list[tuple[Finding, Event]]:
        """The first look: a few entries at most, however long nobody listened."""
        found: list[tuple[Finding, Event]] = []
        for span in (TAIL, WIDER):
            # One byte earlier, so that a line that begins just there is whole.
            self._offset, self._before = max(0, size - span - 1), b""
            self._skips = self._offset > 0
            found = list(self._told(fd, now))
            if found or size <= span:
                break
        return [found[n] for n in gist([event for _, event in found], self._since)]

    def _told(self, fd: int, now: float) -> Iterator[tuple[Finding, Event]]:
        for offset, raw in self._lines(fd):
            given = None if (noise := is_noise(raw)) else decoded(raw)
            self._odd += given is None and not noise
            event = told_by(self._session_id, given, now) if given is not None else None
            if event is not None and given is not None:
                uuid = given.get("uuid")
                # A file that was cut and written anew has other lines in the same places.
                place = f"{self._identity[1]}:{offset}:{crc32(raw):x}"
                name = uuid if isinstance(uuid, str) else place
                key = f"transcript {self._session_id} {name[:200]}"
                yield Finding(line_of(event), key), event

    def _lines(self, fd: int) -> Iterator[tuple[int, bytes]]:
        """The whole lines from the offset on, which moves with them; a torn last one waits."""
        rest = b""
        while data := os.pread(fd, CHUNK, self._offset + len(rest)):
            if self._skips:
                end = data.find(b"\n") + 1
                self._skips = not end
                self._offset += end or len(data)
                self._before = data[: end or len(data)][-MARK:]
                data = data[end:] if end else b""
            *lines, rest = (rest + data).split(b"\n")
            for raw in lines:
                at = self._offset
                self._offset += len(raw) + 1
                self._before = raw[-MARK:] + b"\n"
                if raw and len(raw) <= LINE:
                    yield at, raw
            if len(rest) > LINE:
                self._offset += len(rest)
                self._before = rest[-MARK:]
                self._long += 1
                self._skips, rest = True, b""


def read_on(tail: Tail, now: float) -> tuple[Tail, list[Finding]]:
    """Look at it, wherever that is done: the tail as it is then, and what was added."""
    found = tail.look(now)
    return tail, found


def place_of(config_dir: str | Path, session_id: str, cwd: str) -> str:
    """Where the CLI keeps a session's transcript, or soon will: for sessions without hooks."""
    if not _SESSION.fullmatch(session_id):
        return ""
    projects, name = Path(config_dir) / "projects", f"{session_id}.jsonl"
    likely = Path(folder_of(str(config_dir), cwd)) / name
    if cwd and _is_file(likely):
        return str(likely)
    # The name of the folder is lossy, cut when long, and may be overridden: look in each.
    try:
        touch(projects)
        with os.scandir(projects) as folders:
            paths = [Path(folder.path) / name for folder in folders]
    except (OSError, ValueError):
        paths = []
    return next((str(path) for path in paths if _is_file(path)), str(likely) if cwd else "")


def folder_of(config_dir: str, cwd: str) -> str:
    """Where the transcripts of sessions in a directory are, if nobody has chosen another place."""
    return f"{config_dir}/projects/{re.sub('[^A-Za-z0-9]', '-', cwd)}"


def begun_in(config_dir: str, cwd: str, since: float, taken: Collection[str]) -> str:
    """The one session in a directory that was written to since then; empty if there are more."""
    if not (config_dir and cwd):
        return ""
    found = set()
    try:
        touch(folder := folder_of(config_dir, cwd))
        with os.scandir(folder) as entries:
            for entry in entries:
                sid, _, kind = entry.name.rpartition(".")
                is_one = kind == "jsonl" and _SESSION.fullmatch(sid) and sid not in taken
                if is_one and entry.stat(follow_symlinks=False).st_mtime >= since:
                    found.add(sid)
    except (OSError, ValueError):
        return ""
    return found.pop() if len(found) == 1 else ""


def _is_file(path: Path) -> bool:
    touch(path)
    return os.path.isfile(path)  # noqa: PTH113 - it raises nothing, however odd the path
