"""Read the end of a session's transcript, and then what is appended to it.

A transcript is opened only while its session needs it, and never read from its start.  First its
last part is read, for the title, the model, the context in use and the state of the turn; then only
what was added.  Lines longer than `LINE` are skipped and never held in memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final
from zlib import crc32

from ..core.events import Event, line_of
from ..core.evidence import Evidence
from ..core.rules.steps import is_alone
from ..core.session import Session, status_of
from ..core.untrusted import WRONG_SHAPE, Facts, bounded
from ..core.words import amount
from ..system import processes
from ..system.files import decoded, is_folder, is_path, opened
from .agent import Agent, Means, Witness, tells

TAIL: Final = 128 << 10  # bytes to read first; titles are repeated from time to time
BRIEF: Final = 16 << 10  # bytes to read first, if only the state of the turn matters
WIDER: Final = 2 << 20  # bytes to read if those contain only the large result of a tool
LINE: Final = 1 << 20  # bytes; a longer line is a pasted file or image
CHUNK: Final = LINE  # so that few lines are split between two reads
BEHIND: Final = 4 << 20  # bytes; a reader further behind starts again near the end
LINGER: Final = 10.0  # seconds after the end of a turn: title, usage and errors are still written
NEEDED: Final = frozenset({"working", "blocked", "unknown"})
MARK: Final = 64  # bytes before the offset that identify the file
KEPT: Final = 512  # offsets to remember of transcripts that are not followed now
APART: Final = 1e-6  # seconds between the clocks of lines read at once, which keeps their order
MOST: Final = 200  # entries to report of those read at once: each becomes a file of the spool
TRIED: Final = 2  # requests to the model: the second one is a retry if nothing came between
LATEST: Final = 6  # entries that show the state of a turn: a tool, its result, an end


def is_needed(status: str, since: float, now: float, alone: bool = False) -> bool:
    """Return whether a session with that status needs its transcript to be followed.

    `alone`: neither hooks nor the registry report what it does.
    """
    return alone or status in NEEDED or now < since + LINGER


class Transcripts:
    """Follows the transcripts of sessions that need it."""

    def __init__(self, agent: Agent, span: int = TAIL) -> None:
        self._agent, self._span = agent, span
        self._followed: dict[str, Tail] = {}  # by session
        self._left: dict[str, Tail] = {}

    @property
    def followed(self) -> dict[str, str]:
        """Return the path of each followed transcript, by session."""
        return {sid: tail.path for sid, tail in self._followed.items()}

    @property
    def notes(self) -> dict[str, str]:
        """Return what cannot be read in each followed transcript, for health."""
        return {t.path: note for t in self._followed.values() if (note := t.note)}

    def follow(self, session_id: str, path: str | Path, since: float = 0.0) -> None:
        """Follow a transcript from where it was left, or from its end; none may be followed now.

        `since`: the newest evidence of the session; older entries only give facts.
        """
        tail = self._left.pop(session_id, None)
        if tail is None or tail.path != str(path):
            tail = Tail(self._agent, session_id, str(path), since, self._span)
        self._followed[session_id] = tail

    def leave(self, session_id: str) -> None:
        """Stop following a transcript, but remember the offset."""
        tail = self._followed.pop(session_id, None)
        if tail is not None:
            self._left[session_id] = tail
            while len(self._left) > KEPT:
                del self._left[next(iter(self._left))]

    def forget(self, session_id: str) -> None:
        """Drop a session that has ended."""
        self.leave(session_id)
        self._left.pop(session_id, None)

    def tail(self, session_id: str) -> Tail | None:
        """Return the tail of a followed session."""
        return self._followed.get(session_id)

    def has(self, session_id: str, tail: Tail) -> bool:
        """Return whether a tail still belongs to a session, followed or not."""
        return tail in (self._followed.get(session_id), self._left.get(session_id))


class Tail:
    """A transcript, and how far it has been read."""

    def __init__(
        self, agent: Agent, session_id: str, path: str, since: float, span: int = TAIL
    ) -> None:
        self.path = path
        self._spans = span, WIDER * span // TAIL
        self._agent = agent
        self._session_id = session_id
        self._since = since  # entries up to here were already reported
        self._identity = (0, 0)
        self._offset = 0  # of the first line not yet read
        self._before = b""  # the bytes before the offset
        self._skips = False  # whether the offset is inside a line that is too long
        self._odd = self._long = 0  # lines that could not be parsed, or were too long
        self._unread = ""
        self.has_folder = True  # False for the first session in a directory

    @property
    def note(self) -> str:
        """Return what cannot be read, or ""."""
        odd = f"{amount(self._odd, 'line')} that cannot be parsed" if self._odd else ""
        long = f"{amount(self._long, 'line')} of more than {LINE >> 20} MB" if self._long else ""
        return ", ".join(filter(None, (self._unread, odd, long)))

    def check(self, now: float) -> list[Evidence]:
        """Return what was added since the last call; never raises."""
        self.has_folder = True
        try:
            with opened(self.path) as (fd, status):
                identity, size = (status.st_dev, status.st_ino), status.st_size
                behind = size - self._offset
                goes_on = identity == self._identity and 0 <= behind <= BEHIND
                if goes_on and self._is_as_read(fd):
                    found = list(self._read(fd, now)) if behind else []
                    found = self._gist(found) if len(found) > MOST else found
                else:
                    self._identity = identity
                    found = self._from_tail(fd, size, now)
        except OSError as error:  # if it appears again, it is a different file
            self._identity, self._offset = (0, 0), 0
            is_there = not isinstance(error, FileNotFoundError)
            self.has_folder = is_there or is_folder(os.path.dirname(self.path))  # noqa: PTH120
            self._unread = (error.strerror or str(error)) if is_there else ""
            return []
        self._unread = ""
        times = (event.t for _, event in found if event.kind != "note")  # titles have no time
        self._since = max(times, default=self._since)
        return [finding for finding, _ in found]

    def become(self, other: Tail) -> None:
        """Take over the state of a copy that was read in another process."""
        self.__dict__.update(other.__dict__)

    def _is_as_read(self, fd: int) -> bool:
        """Return whether this is the file read before: inodes are reused."""
        before = self._before
        return os.pread(fd, len(before), self._offset - len(before)) == before

    def _from_tail(self, fd: int, size: int, now: float) -> list[tuple[Evidence, Event]]:
        """Read the end of the file; return only the few entries that matter."""
        found: list[tuple[Evidence, Event]] = []
        for span in self._spans:
            # One byte earlier, so that a line that starts exactly there counts as whole.
            self._offset, self._before = max(0, size - span - 1), b""
            self._skips = self._offset > 0
            found = list(self._read(fd, now))
            if found or size <= span:
                break
        return self._gist(found)

    def _gist(self, found: Sequence[tuple[Evidence, Event]]) -> list[tuple[Evidence, Event]]:
        return [found[n] for n in gist([event for _, event in found], self._since)]

    def _read(self, fd: int, now: float) -> Iterator[tuple[Evidence, Event]]:
        clock = now
        for offset, raw in self._lines(fd):
            if (given := self._agent.head_of(raw)) is None:
                given = None if (noise := self._agent.is_noise(raw)) else decoded(raw)
                self._odd += given is None and not noise
            if given is None:
                continue
            event = entry_event(self._agent, self._session_id, given, clock)
            if event is not None:
                clock += APART
                name = given.get("uuid")
                if not isinstance(name, str):
                    # A file that was truncated and rewritten has other lines at the same offsets.
                    name = f"{self._identity[1]}:{offset}:{crc32(raw):x}"
                key = f"transcript {self._session_id} {name[:200]}"
                yield Evidence(line_of(event), key), event

    def _lines(self, fd: int) -> Iterator[tuple[int, bytes]]:
        """Yield complete lines and advance the offset; an incomplete last line waits."""
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


def read_on(tail: Tail, now: float) -> tuple[Tail, list[Evidence]]:
    """Read what was added, perhaps in another process; return the updated tail and the findings."""
    found = tail.check(now)
    return tail, found


def ends_with(agent: Agent, path: str) -> list[Facts]:
    """Return the last entries of a transcript; none if it cannot be read."""
    try:
        with opened(path) as (fd, status):
            start = max(0, status.st_size - TAIL)
            raw = os.pread(fd, TAIL, start)
    except OSError:
        return []
    lines = raw.split(b"\n")[1 if start else 0 :]
    entries = (decoded(line) for line in lines if line and not agent.is_noise(line))
    return [entry for entry in entries if entry is not None]


def entry_event(agent: Agent, session_id: str, entry: Facts, now: float) -> Event | None:
    """Decode an entry; return None if it shows nothing."""
    try:
        event = agent.entry(session_id, entry, now, now)
    except WRONG_SHAPE:
        return None
    return bounded(event) if tells(event) else None


def gist(events: Sequence[Event], since: float) -> Iterator[int]:
    """Yield which of the entries read at once to report: facts, and the state of the turn.

    Of entries older than `since` only the facts count, because newer evidence exists.
    """
    last: dict[str, int] = {}
    for n, event in enumerate(events):
        if event.title:
            last["named" if event.named else "title"] = n
        for fact in ("prompt", "model", "message", "reviewer", "headless"):
            if getattr(event, fact):
                last[fact] = n
    news = [n for n, e in enumerate(events) if e.kind != "note" and e.t > since]
    attempts = [n for n in news if events[n].kind == "said attempt"]
    deciding = [n for n in news if n not in attempts]
    yield from sorted({*last.values(), *deciding[-LATEST:], *attempts[-TRIED:]})


# Find, watch and read the transcripts of sessions that are at work.


WATCHES = "transcript"
AWAITS = "its folder"


def known_until(s: Session) -> float:
    """Return until when it is known what a session did.

    For a session found at work, only the transcript shows it; what is older than its process was
    done by another one.  Without hooks, the session file says when a turn ended, but not how.  It
    may say first that one asks, and what it asks is in the log before that.
    """
    if is_alone(s):
        return max(s.over, processes.began_at(s.pid) or s.last)
    rested = s.over if status_of(s) in NEEDED else 0.0
    return s.last if s.hooked else s.began or rested or s.last


class Following:
    """Calls `report` with what is new in the transcripts that are needed."""

    def __init__(self, means: Means, agent: Agent) -> None:
        self.transcripts = Transcripts(agent, BRIEF if means.brief else TAIL)
        self._reach, self._watched = means.reach, means.watched
        self._report, self._clock = means.report, means.clock
        self._needing: dict[str, Session] = {}  # sessions whose transcripts are needed
        self._awaited: dict[str, str] = {}  # session → its transcript, while its folder is missing

    def attend(self, s: Session, folder: str = "", find: Callable[[], str] = str) -> None:
        """Follow the transcript of a session if it is needed now, else stop.

        If no hook has reported its path, `find` returns it; that may hang where `folder` does.
        """
        sid = s.session_id
        if not is_needed(status_of(s), s.since, self._clock(), is_alone(s)):
            self._needing.pop(sid, None)
            self._follow(sid, "")
            return
        self._needing[sid] = s
        if s.transcript:
            self._follow(sid, s.transcript)
        elif is_path(folder):
            self._reach.do(folder, find, partial(self._found, sid), key=f"transcript of {sid}")

    def forget(self, sid: str) -> None:
        """Drop a session that has ended."""
        self._needing.pop(sid, None)
        self._follow(sid, "")
        self.transcripts.forget(sid)

    def changed(self, paths: Collection[str]) -> None:
        """Read what changed among these paths."""
        for path in paths:
            for sid in self._watched.who(path, WATCHES):
                self._read(sid)
        for sid, path in list(self._awaited.items()):
            folder = os.path.dirname(path)  # noqa: PTH120 - a string, as the watch names it
            if folder in paths or os.path.dirname(folder) in paths:  # noqa: PTH120
                self._read(sid)

    def rescan(self) -> None:
        """Read every followed transcript."""
        for sid in list(self.transcripts.followed):
            self._read(sid)

    def _found(self, sid: str, path: str) -> None:
        if sid in self._needing:
            self._follow(sid, path)

    def _follow(self, sid: str, path: str) -> None:
        path = path if is_path(path) else ""
        tail = self.transcripts.tail(sid)
        before = tail.path if tail is not None else ""
        if path == before:
            return
        self.transcripts.leave(sid)
        self._watched.leave(before, WATCHES, sid)
        self._stop_waiting(sid)
        if path:
            s = self._needing[sid]
            self.transcripts.follow(sid, path, s.last if before else known_until(s))
            self._watched.need(path, WATCHES, sid)
            self._read(sid)

    def _read(self, sid: str) -> None:
        tail = self.transcripts.tail(sid)
        if tail is not None:
            work, key = partial(read_on, tail, self._clock()), f"{tail.path} of {sid}"
            self._reach.do(tail.path, work, partial(self._took, sid, tail), key=key)

    def _took(self, sid: str, tail: Tail, result: tuple[Tail, list[Evidence]]) -> None:
        as_read, found = result
        if as_read is not tail:  # it was read in another process
            tail.become(as_read)
        if not self.transcripts.has(sid, tail):
            return  # the session has ended
        for finding in found:
            self._report(finding)
        if self.transcripts.tail(sid) is not tail:
            return
        if not tail.has_folder and sid not in self._awaited:
            # The first session in a directory: even the folder of its transcript is missing.
            self._awaited[sid] = tail.path
            self._watched.need(str(Path(tail.path).parent.parent), AWAITS, sid)
        elif tail.has_folder and sid in self._awaited:
            self._stop_waiting(sid)
            self._watched.renew(tail.path)
            self._read(sid)

    def _stop_waiting(self, sid: str) -> None:
        if path := self._awaited.pop(sid, ""):
            self._watched.leave(str(Path(path).parent.parent), AWAITS, sid)


class LogWitness(Witness):
    """Observes a CLI that has hooks and logs: follows each log while its session needs it."""

    def __init__(self, means: Means, agent: Agent) -> None:
        self.following = Following(means, agent)

    @property
    def notes(self) -> dict[str, str]:
        return self.following.transcripts.notes

    def attend(self, s: Session) -> None:
        self.following.attend(s)

    def leave(self, sid: str) -> None:
        self.following.forget(sid)

    def died(self, pid: int) -> None:
        """Ignore the end of a process: a log has none."""

    def changed(self, paths: Collection[str]) -> None:
        self.following.changed(paths)

    def rescan(self) -> None:
        self.following.rescan()

    def renew(self, generation: str) -> None:
        """Do nothing: what was reported of a log stays known."""

    def close(self) -> None:
        """Do nothing: watches and timers belong to the host."""


class SeatedWitness(LogWitness):
    """Follows logs, and reports processes that have outlived their terminal."""

    def __init__(self, means: Means, agent: Agent) -> None:
        super().__init__(means, agent)
        self._reach, self._report, self._clock = means.reach, means.report, means.clock
        self._seated: dict[str, set[int]] = {}  # session → its processes, if it has a terminal

    def attend(self, s: Session) -> None:
        super().attend(s)
        self._seated[s.session_id] = {*s.processes} if s.tty else set()

    def leave(self, sid: str) -> None:
        super().leave(sid)
        self._seated.pop(sid, None)

    def rescan(self) -> None:
        super().rescan()
        for pid in {pid for pids in self._seated.values() for pid in pids}:
            work, then = partial(has_lost_terminal, pid), partial(self._report_lost, pid)
            self._reach.do(f"{processes.PROC}/{pid}/stat", work, then)

    def _report_lost(self, pid: int, is_lost: bool) -> None:
        if is_lost:
            gone = {"pid": pid, "alive": False, "found": True}
            self._report(Evidence({"t": self._clock(), "process": gone}, f"process {pid} tty gone"))


def has_lost_terminal(pid: int) -> bool:
    """Return whether a process goes on although its terminal was closed: nobody can use it."""
    return processes.is_alive(pid) and not processes.tty_of(pid)
