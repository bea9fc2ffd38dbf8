"""The ranking of the sources that state a status: which of them is believed.

Its own report is better than its session file or server, and these than the title of its terminal.
What the best living source states is the status of the run: the machine (`machine.py`) is set to it
each time it changes, so that the machine goes on from there when the source ends or does not keep
up.  Until a source speaks again, the machine may lead it: see `deadlines.py`.

A report never hides a question, because whatever can write to a terminal can write a report.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from .events import LIVE, Event
from .program_status import asked, stated
from .session import (
    ABSENT,
    FILES,
    RUNS,
    STATUSES,
    OwnReport,
    Run,
    Session,
    Stated,
    own,
    status_of,
)

#: Source → what it is called.
NAMES: Final = {
    "report": "its own report",
    "file": "its session file",
    "server": "its server",
    "title": "the title of its terminal",
}
#: What a program reports → the word of a session file for that.
WORDS: Final = {
    "working": "busy",
    "blocked": "waiting",
    "done": "idle",
    "error": "idle",
    "idle": "idle",
    "background": "shell",
}
UNNAMED: Final = "choice"  # what a program asks, if it does not say which kind of question that is
#: What a report says → how the turn ended.
ENDS: Final = {"done": "stop", "background": "stop", "error": "fail"}
#: Word of a session file → the kind of evidence that it is.
KINDS: Final = {
    "busy": "states busy",
    "turn": "states busy",
    "idle": "states idle",
    "shell": "states shell",
    "waiting": "states waiting",
}
SAYS_REST: Final = frozenset({"idle", "shell"})
#: What shows in its terminal, which may be another thread of the same process.
TERMINAL: Final = frozenset({"report", "title"})
LATER: Final = 1.0  # seconds by which a report may be older than what a session file says
#: Word → the statuses that agree with it.
AGREES: Final = {
    "busy": frozenset({"working", "unknown"}),
    "turn": frozenset({"working", "unknown", "blocked"}),
    **dict.fromkeys(SAYS_REST, frozenset({"idle", "completed", "error", "background", "unknown"})),
    "waiting": frozenset({"blocked"}),
}


def best(s: Session, run: Run) -> Stated:
    """Return the statement of the best living source of a run."""
    p, report = own(s, run), run.own_report
    other = p.states if p is not None and not p.doubted else Stated()
    if report is None or report.doubted:
        return other
    its = reported(report)
    is_old = "" in report.unsaid  # it was not said again after a time without hosts
    if not its.says or (other.source in FILES and (is_old or _adds(other, its, run))):
        return other
    # A Stop has just listed its shells; later, the report has their records while they run.
    is_left = run.held == "stop" or any(x.id in report.records for x in run.shells)
    return replace(its, says="shell") if its.says == "idle" and run.shells and is_left else its


def _adds(other: Stated, its: Stated, run: Run) -> bool:
    """Return whether a session file or server knows more than a program's own report."""
    if other.says == "waiting":
        return bool(other.asks)  # a report never hides a question
    if other.says == "shell" and its.says == "idle":
        return True  # reports have no word for it
    # A file that rests may only flicker.
    has_stopped = run.held in ("stop", "fail") and run.stopped > its.at
    return is_later(other, its) and (its.says != "busy" or has_stopped)


def is_later(other: Stated, its: Stated) -> bool:
    """Return whether a session file says something else, and later than a report.

    A report comes first: nobody reads that terminal any more, as that of a suspended Neovim, or a
    report was lost.  But only a report tells that a session at rest asks to log in.
    """
    late = 0.0 if its.says == "busy" else LATER
    return other.says in KINDS and other.says != its.says and other.at > its.at + late


def is_unread(s: Session, run: Run) -> bool:
    """Return whether a report is to be set aside if its session file does not come to agree."""
    p, report = own(s, run), run.own_report
    if report is None or p is None or report.doubted or p.doubted or p.states.source not in FILES:
        return False
    its = reported(report)
    return bool(its.says) and not is_dialog(p.states) and is_later(p.states, its)


def reported(report: OwnReport) -> Stated:
    """Return the status of a program's own report, in the words of a session file."""
    word = stated(report.records)
    if not word:
        return Stated()
    root = report.records.get("")
    if word == "blocked":
        record = asked(report.records)
        return Stated("waiting", record.kind or UNNAMED, "", record.msg, report.said, "report")
    if word == "dialog":
        return Stated("waiting", at=report.said, source="report")
    detail = root.msg if root is not None and word in ENDS else ""
    return Stated(WORDS[word], "", "", detail, report.said, "report", ENDS.get(word, ""))


def is_same(now: Stated, before: Stated) -> bool:
    """Return whether nothing else is stated than before, and nothing newer."""
    return replace(now, at=before.at, source=before.source) == before and now.at <= before.at


def is_dialog(x: Stated) -> bool:
    """Return whether a dialog is open that may be the user's own."""
    return x.says == "waiting" and not x.asks


def statement_words(x: Stated) -> str:
    """Return a statement and its source in words."""
    return f"{NAMES[x.source]} says {'that a turn runs' if x.says == 'turn' else x.says}"


def is_hearsay(s: Session, source: str) -> bool:
    """Return whether a source may mean another thread, so that it ends no turn and no question.

    A terminal that several threads share shows one of them.  So work that hooks reported ends by
    hooks or the log, and what only the terminal showed ends there; so does a dialog that it showed,
    as nobody can leave one for another thread.
    """
    if not (s.origin.many and s.hooked and source in TERMINAL):
        return False
    is_told = (s.turn == "working" or bool(s.blocks)) and not (s.rested or s.held)
    return is_told and not any(b.stated for b in s.blocks.values())


def counts_at_once(s: Session, now: Stated) -> bool:
    """Return whether a statement is no blip: it asks, or confirms what was reported."""
    if now.says == "waiting" and now.asks:
        return True
    if now.says == "turn" or (now.says == "busy" and now.source in LIVE):
        return True
    if now.source == "report" and not s.hooked:
        return True
    report = s.own_report
    if report is not None and not report.doubted and reported(report).says == "busy":
        return False  # it would tell, unless nobody reads it any more
    is_told = s.hooked and s.held in ("stop", "fail") and not s.queue
    return now.says in SAYS_REST and is_told and now.at >= s.stopped


def statement(s: Session, clock: float, stands: bool = False) -> Event:
    """Return the statement about the run in front as an event."""
    x = s.stated
    t = clock if not x.says or (stands and x.says == "waiting") else x.at
    if not x.says and s.turn in (ABSENT, "unknown"):  # only its process shows it: since it was seen
        t = max(t, s.last)
    kind = "states dialog" if is_dialog(x) else KINDS.get(x.says, "states nothing")
    return Event(
        kind,
        kind,
        t,
        clock,
        s.session_id,
        pid=s.pid,
        status=x.says,
        stands=stands,
        at=x.at,
        asks=x.asks or (UNNAMED if x.says == "waiting" else ""),
        tool=x.tool,
        detail=x.detail,
        about=x.source,
    )


def agrees(s: Session) -> bool:
    """Return whether the status of the run in front is what its best source states."""
    x, status = s.stated, status_of(s)
    if not s.stood or is_dialog(x) or status in AGREES.get(x.says, STATUSES):
        return True
    if x.says in SAYS_REST and is_hearsay(s, x.source):
        return True
    if x.says == "idle" and x.at < s.compacting:
        return True  # to some, a compaction is no turn, so that says nothing of it
    # A server says it of each thread.
    shown = [b for b in s.blocks.values() if b.shown]
    return x.source == "server" and status == "blocked" and all(b.agent for b in shown)


def lead(s: Session, clock: float) -> None:
    """Note since when the machine leads its best source, or set that aside if it does not keep up.

    A source that was given time to follow and has not changed when the machine leads it once more
    does not keep up.  One that says what cannot be true any more has no time to be right.
    """
    if s.turn == ABSENT or agrees(s):
        s.leads = 0.0
    elif s.overruled or is_refuted(s):
        set_aside(s)
        lead(s, clock)
    elif not s.leads or any(b.shown and b.since > s.leads for b in s.blocks.values()):
        s.leads = clock


def is_refuted(s: Session) -> bool:
    """Return whether a statement cannot be true any more.

    Nobody asks once the only thread that could has gone on.  Two voices, such as a Stop and the
    log, are needed before a turn is over while its program says that it works.
    """
    if s.stated.says in RUNS:
        return status_of(s) in AGREES["idle"]
    has_crew = s.agents or any(t.agent for t in s.tools.values())
    return s.stated.says == "waiting" and not has_crew


def set_aside(s: Session) -> None:
    """Believe the best source no more until it changes."""
    if s.stated.source == "report" and s.own_report is not None:
        s.own_report = replace(s.own_report, doubted=True)
    elif (p := own(s)) is not None:
        s.processes = {**s.processes, s.pid: replace(p, doubted=True)}
    s.stated, s.stood, s.leads, s.overruled = best(s, s), True, 0.0, 0.0
