"""What a program reports of itself (OSC 7501), compared with its session file and its screen.

`compared` is the one way to score a trace with reports: it says for how long they agreed, and gives
each stretch in which they did not, with its cause.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from bellboard.agents.claude.agent import ClaudeCode
from bellboard.core import program_status
from bellboard.core.program_status import stated
from live.account import ANY, AT_REST, Allowed, of_process
from live.report import Line

#: What a report says, in the words of the board.
WORDS: Final = {"idle": "idle", "working": "working", "blocked": "blocked", "error": "error"}
WORDS |= {"done": "completed"}
FILE, SCREEN = "file", "screen"
FOLLOWS: Final = (
    3.0  # seconds; a busy machine writes the file, or draws the screen, that much later
)
FORGES: Final = "does forge"  # the note of a scene in which something else writes a report
MENU: Final = "dialog open"

# Causes of a difference.
UNHEARD: Final = "nothing is reported yet"
FILE_LATER: Final = "the file follows the report"
SCREEN_LATER: Final = "the screen follows the report"
REPORT_LATER: Final = "the report follows"
FLICKER: Final = "the file flickers"
OWN_DIALOG: Final = "a dialog that the user opened"
LEFT: Final = "something in the background outlives its turn"
FORGED: Final = "something else wrote the report"
LOGIN: Final = "it asks for a login, at rest"
ENDING: Final = "it is ending"
WHICH_END: Final = "how the turn ended"
HIDDEN: Final = "the screen does not show it"
UNEXPLAINED: Final = "unexplained"


@dataclass(frozen=True)
class Moment:
    """The known state of a process from some time on."""

    reported: str = ""  # what its records say of it
    kind: str = ""  # of what it reports to ask
    is_left: bool = False  # it reports that only something in the background is left of its turn
    status: str = ""  # in its session file
    waits: str = ""  # waitingFor there
    shows: str = ""  # its screen: blocked, working, idle
    heard: bool = False  # it has reported before
    ends: bool = False  # its session file is gone


@dataclass(frozen=True)
class Span:
    """A time in which nothing of that changes; `means` is what its session file says."""

    start: float
    end: float
    pid: int
    now: Moment
    means: Allowed

    @property
    def seconds(self) -> float:
        return self.end - self.start


@dataclass(frozen=True)
class Difference:
    """A time in which the report and the other say different things."""

    start: float
    seconds: float
    pid: int
    reported: str
    other: str
    cause: str


@dataclass(frozen=True)
class Comparison:
    """The seconds that were compared, and the differences in their order."""

    seconds: float
    differences: tuple[Difference, ...]

    def of(self, *causes: str) -> float:
        """Return the seconds of these causes; of all without any."""
        return sum(x.seconds for x in self.differences if not causes or x.cause in causes)

    @property
    def agrees(self) -> float:
        """Return the share of the time in which both said the same."""
        return 1 - self.of() / self.seconds if self.seconds else 1.0

    def __str__(self) -> str:
        causes = ", ".join(f"{cause} {seconds:.2f} s" for cause, seconds in self.by_cause.items())
        return f"{self.agrees:7.2%} of {self.seconds:5.1f} s  {causes}"

    @property
    def by_cause(self) -> Mapping[str, float]:
        """Return the seconds of each cause, the longest first."""
        causes = {x.cause: self.of(x.cause) for x in self.differences}
        return dict(sorted(causes.items(), key=lambda each: -each[1]))


def compared(lines: Sequence[Line], other: str = FILE) -> Comparison:
    """Compare the reports of a trace with the session files, or with the screens (`other`).

    Every second counts in which a process has a status in its file (or a screen), also those around
    a change: whoever is later, and by how much, is one of the causes.  What `idle` means in a file
    depends on how the turn ended, which hooks and transcript tell.
    """
    is_forged = any(str(x.get("note", "")).startswith(FORGES) for x in lines)
    found: list[Difference] = []
    seconds = 0.0
    for mine in by_process(lines):
        known = [x for x in mine if x.now.status and (other == FILE or x.now.shows)]
        seconds += sum(x.seconds for x in known)
        for n, x in enumerate(known):
            if not agrees(x, other):
                cause = cause_of(known, n, other, is_forged)
                said = x.now.status + (f" ({x.now.waits})" if x.now.waits else "")
                said = said if other == FILE else x.now.shows
                now = x.now.reported or "nothing"
                found.append(Difference(x.start, x.seconds, x.pid, now, said, cause))
    return Comparison(seconds, tuple(sorted(joined(found), key=lambda x: x.start)))


def agrees(x: Span, other: str) -> bool:
    """Return whether the report says what the other says."""
    word = WORDS.get(x.now.reported, "")
    if other == SCREEN:
        return (x.now.shows == "idle" and word in AT_REST) or word == x.now.shows
    return word in x.means


def cause_of(known: Sequence[Span], n: int, other: str, is_forged: bool) -> str:
    """Return why the report and the other differ in one of the stretches of a process."""
    now = known[n].now
    word = WORDS.get(now.reported, "")
    if not now.heard:
        return UNHEARD
    if not now.reported:
        return ENDING if not any(each.now.reported for each in known[n:]) else UNEXPLAINED
    if cause := standing(known, n, other) or who_follows(known, n, other):
        return cause
    if is_forged and word == "completed" and now.status in ("busy", "waiting"):
        return FORGED
    if other == FILE and word in AT_REST and now.status == "idle":
        return WHICH_END
    if other == SCREEN and word == "working" and now.status != "idle":
        return HIDDEN
    return UNEXPLAINED


def standing(known: Sequence[Span], n: int, other: str) -> str:
    """Return why both differ for as long as this lasts: one has no word for it."""
    now = known[n].now
    if other == SCREEN and now.shows == "blocked" and not was_asked(known, n):
        return OWN_DIALOG
    if now.waits == MENU:
        return OWN_DIALOG
    if now.status == "shell" or now.is_left:
        return LEFT
    return LOGIN if now.kind == "auth" and now.status != "waiting" else ""


def was_asked(known: Sequence[Span], n: int) -> bool:
    """Return whether the program reports the dialog that its screen shows, or has until now."""
    while n >= 0 and known[n].now.shows == "blocked":
        if known[n].now.reported == "blocked":
            return True
        n -= 1
    return False


def who_follows(known: Sequence[Span], n: int, other: str) -> str:
    """Return who is only later than the other, if both agree soon."""

    def pair(x: Span) -> tuple[str, ...]:
        now = x.now
        return (now.reported, *((now.status, now.waits) if other == FILE else (now.shows,)))

    first = last = n
    while first and pair(known[first - 1]) == pair(known[n]):
        first -= 1
    while last + 1 < len(known) and pair(known[last + 1]) == pair(known[n]):
        last += 1
    if last + 1 == len(known) or known[last].end - known[first].start > FOLLOWS:
        return ""
    before, after = known[last], known[last + 1]
    other_later = FILE_LATER if other == FILE else SCREEN_LATER
    if not agrees(after, other):
        is_known = standing(known, last + 1, other) or not after.now.reported
        return other_later if is_known else ""
    if before.now.reported != after.now.reported:
        return REPORT_LATER
    is_back = first and pair(known[first - 1]) == pair(after)
    return FLICKER if is_back and other == FILE else other_later


def joined(found: Iterable[Difference]) -> Iterator[Difference]:
    """Join differences of the same kind that follow each other."""
    last: Difference | None = None
    for x in found:
        if (
            last
            and x.start - (last.start + last.seconds) < 1e-6
            and x == replace(last, start=x.start, seconds=x.seconds)
        ):
            last = replace(last, seconds=last.seconds + x.seconds)
            continue
        if last:
            yield last
        last = x
    if last:
        yield last


def by_process(lines: Sequence[Line]) -> Iterator[list[Span]]:
    """Yield the stretches of each process that reports, until its end."""
    reporters = {x["osc7501"]["pid"] for x in lines if "osc7501" in x}
    for pid in sorted(reporters):
        times: list[tuple[float, Moment]] = list(moments(lines, pid))
        means = of_process(lines, pid)
        cuts = sorted({t for t, _ in times} | {t for x in means for t in (x.start, x.end)})
        mine = []
        for start, end in pairwise(cuts):
            now = next((m for t, m in reversed(times) if t <= start), None)
            if now is None or now.ends:
                continue
            said = next((x.allowed for x in means if x.start <= start and end <= x.end), ANY)
            mine.append(Span(start, end, pid, now, said or plain(now)))
        yield mine


def plain(now: Moment) -> Allowed:
    """Return what a session file says by itself, where hooks have announced something else."""
    words = {"busy": {"working"}, "waiting": {"blocked"}, "shell": {"background"}}
    return frozenset(words.get(now.status, AT_REST))


def moments(lines: Sequence[Line], pid: int) -> Iterator[tuple[float, Moment]]:
    """Yield what is known of a process, whenever that changes."""
    records: dict[str, program_status.Record] = {}
    now = Moment()
    for x in lines:
        if x.get("process", {}).get("pid") == pid and not x["process"]["alive"]:
            yield x["t"], replace(now, ends=True)
            return
        if x.get("registry", {}).get("pid") == pid:
            record = x["registry"]["record"] or {}
            gone = x["registry"]["record"] is None
            status, waits = record.get("status", ""), record.get("waitingFor", "")
            after = replace(now, status=status, waits=waits, ends=gone)
        elif x.get("osc7501", {}).get("pid") == pid:
            report = program_status.parsed(x["osc7501"]["body"])
            records = program_status.taken(records, report, x["t"])
            kind = records[""].kind if "" in records else ""
            is_left = now.is_left if report.id else ClaudeCode().reported(report) == "background"
            said = {"reported": stated(records), "kind": kind, "is_left": is_left}
            after = replace(now, **said, heard=True)
        elif "truth" in x and x.get("pid") == pid:
            after = replace(now, shows=x["truth"])
        else:
            continue
        if after != now:
            now = after
            yield x["t"], now
    yield lines[-1]["t"], replace(now, ends=True)
