"""Read the end of a session's transcript, and then follow it.

A transcript is opened only while its session needs it, and never read from its start.  First its
last part is read, for the title, the model, the context in use and the state of the turn; then only
new lines.  Lines longer than `LINE` are skipped and never held in memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import partial
from pathlib import Path
from typing import Final
from zlib import crc32

from ..core.events import Event, line_of
from ..core.evidence import Evidence, TraceLine
from ..core.observing import Want
from ..core.rules.steps import is_alone
from ..core.session import Session, says, status_of
from ..core.untrusted import WRONG_SHAPE, Facts, bounded
from ..core.words import amount
from ..system import processes
from ..system.files import decoded, is_folder, is_path, opened
from ..system.reach import reach
from .agent import Agent, tells
from .need import CHANGED, PATHS, RESCAN, Need, Observing

TAIL: Final = 128 << 10  # bytes to read first; titles are repeated from time to time
BRIEF: Final = 16 << 10  # bytes to read first, if only the state of the turn matters
WIDER: Final = 2 << 20  # bytes to read if the first contain only the large result of a tool
LINE: Final = 1 << 20  # bytes; a longer line is a pasted file or image
CHUNK: Final = LINE  # so that few lines are split between two reads
BEHIND: Final = 4 << 20  # bytes; a reader further behind starts again near the end
LINGER: Final = 10.0  # seconds after the end of a turn: title, usage and errors are still written
NEEDED: Final = frozenset({"working", "blocked", "unknown"})
MARK: Final = 64  # bytes before the offset, which identify the file
KEPT: Final = 512  # transcripts whose offsets are remembered after following
APART: Final = 1e-6  # seconds between the times of lines read at once, which keeps their order
MOST: Final = 200  # most entries to report at once: each becomes a file of the spool
TRIED: Final = 2  # requests to the model: the second is a retry if nothing came between
LATEST: Final = 6  # entries that show the state of a turn: a tool, its result, an end


def is_needed(status: str, since: float, now: float, alone: bool = False) -> bool:
    """Return whether a session with this status needs its transcript to be followed.

    It is `alone` if neither hooks nor session files report its work.
    """
    return alone or status in NEEDED or now < since + LINGER


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
        """Return a note about lines or files that cannot be read, or ""."""
        odd = f"{amount(self._odd, 'line')} that cannot be parsed" if self._odd else ""
        long = f"{amount(self._long, 'line')} of more than {LINE >> 20} MB" if self._long else ""
        return ", ".join(filter(None, (self._unread, odd, long)))

    def check(self, now: float) -> list[Evidence]:
        """Return the evidence in new lines since the last call; never raises."""
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
        except OSError as error:  # a new file of this name is a different one
            self._identity, self._offset = (0, 0), 0
            is_there = not isinstance(error, FileNotFoundError)
            self.has_folder = is_there or is_folder(os.path.dirname(self.path))  # noqa: PTH120
            self._unread = (error.strerror or str(error)) if is_there else ""
            return []
        self._unread = ""
        times = (event.t for _, event in found if event.kind != "note")  # titles have no time
        self._since = max(times, default=self._since)
        return [evidence for evidence, _ in found]

    def become(self, other: Tail) -> None:
        """Take over the state of a copy that was read in another process."""
        self.__dict__.update(other.__dict__)

    def _is_as_read(self, fd: int) -> bool:
        """Return whether this is the file that was read before: inodes are reused."""
        before = self._before
        return os.pread(fd, len(before), self._offset - len(before)) == before

    def _from_tail(self, fd: int, size: int, now: float) -> list[tuple[Evidence, Event]]:
        """Read the end of the file; return only the few entries that matter."""
        found: list[tuple[Evidence, Event]] = []
        for span in self._spans:
            # One byte earlier, so that a line that starts exactly after it counts as complete.
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
    """Read new lines, perhaps in another process; return the updated tail and the evidence."""
    found = tail.check(now)
    return tail, found


def entry_event(agent: Agent, session_id: str, entry: Facts, now: float) -> Event | None:
    """Decode an entry; return None if it shows nothing."""
    try:
        event = agent.entry(session_id, entry, now, now)
    except WRONG_SHAPE:
        return None
    return bounded(event) if tells(event) else None


def gist(events: Sequence[Event], since: float) -> Iterator[int]:
    """Yield the entries to report of those read at once: facts, and the state of the turn.

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


BACK: Final = 32 << 20  # bytes from the end of a log in which its last turn is looked for


def newest_first(path: str, is_noise: Callable[[bytes], bool], most: int = BACK) -> Iterator[Facts]:
    """Yield the last entries of a log from its end; none if it cannot be read.

    Read no further than needed: nothing beyond `most`, and no line that is longer than `LINE`.
    """
    try:
        with opened(path) as (fd, status):
            at, rest, is_long = status.st_size, b"", False
            while at > max(0, status.st_size - most):
                start = max(0, at - CHUNK)
                data, at = os.pread(fd, at - start, start) + rest, start
                if is_long:
                    data = data[: data.rfind(b"\n") + 1]
                head, *lines = data.split(b"\n")
                is_long = (is_long and not lines) or len(head) > LINE
                rest = b"" if is_long else head
                for raw in (*reversed(lines), *(() if at else (rest,))):
                    if raw and len(raw) <= LINE and not is_noise(raw):
                        entry = decoded(raw)
                        if entry is not None:
                            yield entry
    except OSError:
        return


# Find, watch and read the logs of sessions that are at work.


def known_until(s: Session) -> float:
    """Return the time until which the work of a session is known.

    For a session found at work, only the transcript shows it; entries older than its process are
    of another process.  Without hooks, the session file says when a turn ended, but not how.  It
    may be the first to say that the session asks; the question is earlier in the log.
    """
    if is_alone(s) or (says(s) == "turn" and not s.hooked):
        return max(s.over, processes.began_at(s.pid) or s.last)
    rested = s.over if status_of(s) in NEEDED else 0.0
    return s.last if s.hooked else s.began or rested or s.last


Find = Callable[[Session], tuple[str, Callable[[], str]]]


class Logs:
    """Follows the logs of an agent's sessions while they need it, each from its last offset.

    For a session whose log no hook has reported, `find` returns a place that may hang, and the
    function that finds the log.
    """

    def __init__(self, agent: Agent, brief: bool, find: Find | None = None) -> None:
        self.kind = f"{agent.key} log"
        self._agent, self._find = agent, find
        self._span = BRIEF if brief else TAIL
        self._tails: dict[str, Tail] = {}  # by session

    def observing(self) -> Observing:
        """Return these logs as all that an agent needs observed."""
        return Observing({self.kind: self.observe}, self.wanted, forget=self.forget)

    def wanted(self, s: Session, now: float) -> Iterator[Want]:
        """Yield the log of a session while it is needed; the end of a turn may come late."""
        if is_needed(status_of(s), s.since, now, is_alone(s)):
            yield Want(self.kind, (s.session_id, s.transcript))

    def forget(self, sid: str) -> None:
        """Drop a session that has ended."""
        self._tails.pop(sid, None)

    async def observe(self, need: Need) -> None:
        """Report new entries in the log of a session."""
        path = need.want.of[1]
        while not path and self._find is not None:
            folder, find = self._find(need.session)
            path = await reach(find, folder) if is_path(folder) else ""
            if not path:
                await need.news(CHANGED, RESCAN)
        if not is_path(path):
            return
        tail = self.tail(need.session, path)
        need.watch(path)
        while True:
            # Read with a copy: if nobody takes its evidence, the lines are read again.
            as_read, found = await reach(partial(read_on, copy(tail), need.means.clock()), path)
            had_folder = tail.has_folder
            tail.become(as_read)
            for evidence in found:
                need.report(evidence)
            need.say(path, tail.note)
            if tail.has_folder and not had_folder:
                need.watch(path)
                need.means.watched.renew(path)
                continue
            if not tail.has_folder:
                # For the first session in a directory, even the folder of its log is missing.
                need.watch(path, str(Path(path).parent.parent))
            await need.news(PATHS, RESCAN)

    def tail(self, s: Session, path: str) -> Tail:
        """Return the tail of a log; entries older than the newest evidence give only facts."""
        tail = self._tails.pop(s.session_id, None)
        if tail is None or tail.path != path:
            since = s.last if tail is not None else known_until(s)
            tail = Tail(self._agent, s.session_id, path, since, self._span)
        self._tails[s.session_id] = tail
        while len(self._tails) > KEPT:
            del self._tails[next(iter(self._tails))]
        return tail


async def observe_terminal(need: Need) -> None:
    """Report a process that has outlived its terminal."""
    pid = int(need.want.of[0])
    while True:
        await need.news(RESCAN)
        if await reach(partial(has_lost_terminal, pid), f"{processes.PROC}/{pid}/stat"):
            gone = TraceLine(pid=pid, alive=False, found=True).line(need.means.clock(), "process")
            need.report(Evidence(gone, f"process {pid} tty gone"))


def has_lost_terminal(pid: int) -> bool:
    """Return whether a process goes on after its terminal was closed, so that nobody can use it."""
    return processes.is_alive(pid) and not processes.tty_of(pid)
