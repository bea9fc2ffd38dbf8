"""The source of a program that is believed, and the reason of a session's status."""

from __future__ import annotations

from typing import Any, Final

import pytest
from msgspec.structs import replace

from bellboard.agents.traces import replay
from bellboard.core.board import Board
from bellboard.core.deadlines import LEADS
from bellboard.core.machine import apply
from bellboard.core.options import Options
from bellboard.core.program_status import Record
from bellboard.core.session import (
    ABSENT,
    Block,
    OwnReport,
    Process,
    Session,
    Shell,
    Stated,
    Tool,
)
from bellboard.core.sources import (
    agrees,
    best,
    counts_at_once,
    lead,
    reported,
    set_aside,
    statement,
)
from bellboard.core.words import reason
from core.test_cases import BY_ID
from rig.host.playback import TRACES, encoded, late, read_lines

T: Final = 1.8e9
PID: Final = 11
NOTHING: Final = Stated()


def file(says: str, asks: str = "", at: float = T, source: str = "file") -> Stated:
    return Stated(says, asks, at=at, source=source)


def report(state: str, kind: str = "", msg: str = "", at: float = T, **parts: str) -> OwnReport:
    """Return the own reports of a program and its parts."""
    records = {"": Record(state, at, kind, msg=msg)} if state else {}
    records |= {part: Record(said, at + 1) for part, said in parts.items()}
    return OwnReport(records, at, at)


def session(
    other: Stated = NOTHING, its: OwnReport | None = None, doubted: bool = False, **facts: Any
) -> Session:
    """Return a session in which these sources speak, and the best one has stood."""
    process = Process(PID, states=other, doubted=doubted)
    s = Session("s", pid=PID, processes={PID: process}, own_report=its, **facts)
    s.stated = best(s, s)
    return s


# ---------------------------------------------------------------- the ranking


@pytest.mark.parametrize(
    ("its", "other", "facts", "says", "source"),
    [
        (None, NOTHING, {}, "", ""),
        (None, file("busy"), {}, "busy", "file"),
        (report("working"), NOTHING, {}, "busy", "report"),
        (report("working"), file("idle"), {}, "busy", "report"),
        (report("done"), file("busy"), {}, "idle", "report"),
        (report("idle"), file("busy", source="title"), {}, "idle", "report"),
        (report("idle"), file("busy", source="server"), {}, "idle", "report"),
        (report(""), file("busy"), {}, "busy", "file"),
        # a report never hides a question, but a dialog may be the user's
        (report("working"), file("waiting", "permission"), {}, "waiting", "file"),
        (report("done"), file("waiting", "permission", source="server"), {}, "waiting", "server"),
        (report("working"), file("waiting", "permission", source="title"), {}, "busy", "report"),
        (report("working"), file("waiting"), {}, "busy", "report"),
        # a report has no word for shells
        (report("idle"), file("shell"), {}, "shell", "file"),
        (report("done"), file("shell"), {}, "shell", "file"),
        (report("working"), file("shell"), {}, "busy", "report"),
        (report("done", b1="working"), NOTHING, {"shells": ("b1",)}, "shell", "report"),
        (report("done", b1="working"), NOTHING, {"shells": ("b2",)}, "idle", "report"),
        # nobody reads that terminal any more
        (report("working"), file("idle", at=T + 9), {"stopped": T + 8}, "idle", "file"),
        (report("working"), file("idle", at=T + 9), {}, "busy", "report"),
        (report("working", at=T + 9), file("idle", at=T), {"stopped": T + 8}, "busy", "report"),
    ],
)
def test_the_best_source_decides(
    its: OwnReport | None, other: Stated, facts: dict[str, Any], says: str, source: str
) -> None:
    shells = tuple(Shell(x, "shell", T) for x in facts.get("shells", ()))
    stopped = facts.get("stopped", 0.0)
    s = session(other, its, shells=shells, stopped=stopped, held="stop" if stopped else "")
    assert (says, source) == (s.stated.says, s.stated.source)


def test_a_source_that_is_set_aside_leaves_the_word_to_the_next() -> None:
    s, told = session(file("idle"), report("working")), []
    for _ in range(3):
        told.append((s.stated.says, s.stated.source))
        set_aside(s)
    assert [("busy", "report"), ("idle", "file"), ("", "")] == told


def test_a_run_is_stated_by_its_own_process() -> None:
    s = session(file("busy"))
    s.processes = {**s.processes, 12: Process(12, states=file("idle"))}
    assert ["busy", "idle"] == [best(s, replace(s, pid=pid)).says for pid in (PID, 12)]


@pytest.mark.parametrize(
    ("its", "expected"),
    [
        (report(""), NOTHING),
        (report("idle", msg="x"), Stated("idle", at=T, source="report")),
        (report("working", msg="x"), Stated("busy", at=T, source="report")),
        (report("done", msg="ok"), Stated("idle", "", "", "ok", T, "report", "stop")),
        (report("background"), Stated("shell", at=T, source="report", ends="stop")),
        (report("error", msg="no"), Stated("idle", "", "", "no", T, "report", "fail")),
        (report("blocked", "question", "Q?"), Stated("waiting", "question", "", "Q?", T, "report")),
        (report("blocked"), Stated("waiting", "choice", at=T, source="report")),
        (report("dialog"), Stated("waiting", at=T, source="report")),
        (report("done", a="blocked"), Stated("waiting", "choice", at=T, source="report")),
        (report("done", a="working"), Stated("idle", at=T, source="report", ends="stop")),
    ],
)
def test_a_report_is_read_in_the_words_of_a_session_file(its: OwnReport, expected: Stated) -> None:
    assert expected == reported(its)


@pytest.mark.parametrize(
    ("now", "facts", "expected"),
    [
        (file("busy"), {}, False),
        (file("busy", source="title"), {}, True),
        (file("busy", source="server"), {}, True),
        (file("busy", source="report"), {}, True),
        (file("busy", source="report"), {"hooked": True}, False),
        (file("waiting", "permission"), {}, True),
        (file("waiting"), {}, False),
        (file("idle"), {}, False),
        (file("idle"), {"hooked": True, "held": "stop", "stopped": T - 1}, True),
        (file("shell"), {"hooked": True, "held": "fail", "stopped": T - 1}, True),
        (file("idle"), {"hooked": True, "held": "stop", "stopped": T + 1}, False),
        (file("idle"), {"hooked": True, "held": "stop", "stopped": T - 1, "queue": (T,)}, False),
        (file("idle"), {"hooked": True, "held": "report", "stopped": T - 1}, False),
        (file("a word of a newer CLI"), {}, False),
        (NOTHING, {}, False),
    ],
)
def test_what_is_no_blip_counts_at_once(now: Stated, facts: dict[str, Any], expected: bool) -> None:
    assert expected == counts_at_once(Session("s", turn="working", **facts), now)


@pytest.mark.parametrize(
    ("x", "kind", "t"),
    [
        (file("busy"), "states busy", T),
        (file("idle"), "states idle", T),
        (file("shell"), "states shell", T),
        (file("waiting", "permission"), "states waiting", T),
        (file("waiting"), "states dialog", T),
        (file("a word of a newer CLI"), "states nothing", T),
        (NOTHING, "states nothing", T + 1),
    ],
)
def test_a_statement_is_an_event_of_the_time_since_when_it_holds(
    x: Stated, kind: str, t: float
) -> None:
    e = statement(session(x), T + 1)
    assert (kind, t, T + 1, x.source) == (e.kind, e.t, e.clock, e.about)


# ---------------------------------------------------------------- what leads it


ASKED: Final = {":": Block("permission", T, tool="Bash", detail="make", shown=True, key=1)}
OF_AGENT: Final = {"a:": Block("permission", T, agent="a", shown=True, key=1)}


@pytest.mark.parametrize(
    ("says", "facts", "leads", "aside"),
    [
        (file("busy"), {"turn": "working"}, False, False),
        (file("busy"), {"turn": "unknown"}, False, False),
        (file("idle"), {"turn": "completed"}, False, False),
        (file("waiting", "x"), {"turn": "working", "blocks": ASKED}, False, False),
        (file("waiting"), {"turn": "working"}, False, False),
        (NOTHING, {"turn": "working"}, False, False),
        # a prompt, and a question
        (file("idle"), {"turn": "working"}, True, False),
        (file("busy"), {"turn": "working", "blocks": ASKED}, True, False),
        # a server says it of each thread
        (file("busy", source="server"), {"turn": "working", "blocks": OF_AGENT}, False, False),
        (file("busy", source="server"), {"turn": "working", "blocks": ASKED}, True, False),
        # it had time to follow
        (file("idle"), {"turn": "working", "overruled": T}, False, True),
        # it cannot be true any more
        (file("busy"), {"turn": "completed"}, False, True),
        (file("waiting", "x"), {"turn": "working"}, False, True),
        (
            file("waiting", "x"),
            {"turn": "working", "tools": {"t": Tool("Bash", T, agent="a")}},
            True,
            False,
        ),
    ],
)
def test_the_machine_leads_a_source_or_sets_it_aside(
    says: Stated, facts: dict[str, Any], leads: bool, aside: bool
) -> None:
    s = session(says, **facts)
    lead(s, T + 5)
    assert (leads * (T + 5), aside) == (s.leads, s.processes[PID].doubted)


def test_it_leads_since_it_first_differed_and_until_both_agree() -> None:
    s = session(file("idle"), turn="working")
    lead(s, T + 1)
    lead(s, T + 2)
    assert T + 1 == s.leads
    s.turn = "idle"
    lead(s, T + 3)
    assert 0.0 == s.leads


def test_what_has_not_stood_is_not_led() -> None:
    s = session(file("idle"), turn="working", stood=False)
    lead(s, T + 1)
    assert (0.0, False) == (s.leads, s.processes[PID].doubted)


@pytest.mark.parametrize("late_by", [0.0, 1.0])
def test_in_the_end_a_living_source_is_believed_or_set_aside(late_by: float) -> None:
    """In every case and recording; meanwhile nothing leads it for longer than two seconds."""
    cases = [case["trace"] for case in BY_ID.values()]
    recordings = [read_lines(path) for path in (TRACES / "recordings").glob("*.jsonl")]
    for lines in (*cases, *recordings):
        board = Board()
        for _ in replay(encoded(late(lines, "registry", late_by)), board):
            led = [s.leads for s in board.sessions.values() if s.leads and s.turn != ABSENT]
            assert [] == [t for t in led if board.ledger.clock > t + LEADS + 0.001], lines
        board.advance(board.ledger.clock + 100)
        listed = [s for s in board.sessions.values() if s.turn != ABSENT and not s.machine]
        assert [] == [s.session_id for s in listed if not agrees(s)], lines


# ---------------------------------------------------------------- the reason in one sentence


@pytest.mark.parametrize(
    ("s", "expected"),
    [
        (session(turn="working", hooked=True), "working since 10:02: hooks say so"),
        (session(turn="working"), "working since 10:02: its log or screen says so"),
        (
            session(file("busy"), turn="working", hooked=True),
            "working since 10:02: its session file says so",
        ),
        (
            session(file("busy", source="server"), turn="working"),
            "working since 10:02: its server says so",
        ),
        (
            session(file("busy", source="title"), turn="working"),
            "working since 10:02: the title of its terminal says so",
        ),
        (
            session(file("waiting", "permission"), report("blocked", "permission"), blocks=ASKED),
            "blocked since 10:02: its session file says so (permission); its own report agrees;"
            " asked: Bash `make`",
        ),
        (
            session(file("busy"), report("done"), turn="completed"),
            "completed since 10:02: its own report says so; its session file says busy",
        ),
        (
            session(file("waiting"), report("done"), turn="completed"),
            "completed since 10:02: its own report says so; its session file agrees",
        ),
        (
            session(file("busy"), turn="working", blocks=ASKED, leads=T, hooked=True),
            "blocked since 10:02: a hook says so, and its session file does not yet;"
            " asked: Bash `make`",
        ),
        (
            session(file("busy"), turn="completed", hooked=True, doubted=True),
            "completed since 10:02: hooks say so; its session file does not keep up",
        ),
        (
            session(file("idle"), turn="working", stood=False, hooked=True),
            "working since 10:02: hooks say so",
        ),
    ],
)
def test_the_reason_names_the_source_and_who_agrees(s: Session, expected: str) -> None:
    assert expected == reason(s, "10:02")


def test_a_source_that_falls_silent_ends_no_later_question() -> None:
    """Such as the title of a terminal that shows another thread; nor is a new session of 1970."""
    asks = Block("permission", T, stated=True)
    s = session(turn="blocked", blocks={"": asks}, last=T, hooked=True)
    assert apply(s, statement(s, 0.25), Options()).why == "older than the question"
    assert s.turn == "blocked"
    assert statement(session(turn="unknown", last=T), 0.25).t == T
