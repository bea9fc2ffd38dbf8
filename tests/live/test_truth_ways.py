"""How `make live` scores other ways to know a status, and counts the rules that decided."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from live.account import Stretch, Wrong
from live.lines import PID, Line, file, hook, report, tick
from live.own import ways
from live.own.page import causes
from live.own.reported import FILE_LATER, LEFT, WHICH_END, Difference
from live.own.rules import decided
from live.own.score import Score, of_processes, scored
from live.page import OWN, page, part
from live.report import Row

pytestmark = pytest.mark.core


#: A permission that is asked after a second, and given ten seconds later.
TURN = [
    hook(100.0, "SessionStart", source="startup"),
    file(100.0, "idle"),
    report(102.0, "idle"),
    hook(110.0, "UserPromptSubmit", prompt="go"),
    file(110.0, "busy"),
    report(110.0, "working"),
    hook(120.0, "PreToolUse", tool_name="Bash", tool_use_id="a"),
    hook(120.0, "PermissionRequest", tool_name="Bash"),
    file(120.0, "waiting"),
    report(120.0, "blocked:kind=permission"),
    hook(126.0, "Notification", notification_type="permission_prompt"),
    file(130.0, "busy"),
    report(130.0, "working"),
    report(131.0, "working:id=a1"),
    report(140.0, "clear:id=a1"),
    hook(140.0, "PostToolUse", tool_name="Bash", tool_use_id="a"),
    hook(150.0, "Stop"),
    file(150.0, "idle"),
    report(150.0, "done"),
    tick(160.0),
]


def shown(way: str, trace: list[Line]) -> list[tuple[float, str | None]]:
    return [(change["t"], change["to"]) for change in ways.WAYS[way](trace)]


def test_each_way_follows_its_own_evidence() -> None:
    """Hooks alone see a question when its notification comes, and its end with the tool's."""
    started, ended = [(100.0, "idle"), (110.0, "working")], (150.0, "completed")
    asked = [(126.0, "blocked"), (140.0, "working")]
    assert [*started, *asked, ended] == shown("hooks", TURN)
    asked = [(120.0, "blocked"), (140.0, "working")]
    assert [*started, *asked, ended] == shown("newer hooks", TURN)
    asked = [(120.0, "blocked"), (130.0, "working")]
    assert [*started, *asked, ended] == shown("session file", TURN)
    now = [status for _, status in shown("everything", TURN)]
    assert ["idle", "working", "blocked", "working", "completed"] == now
    reported = [(102.0, "idle"), started[1], *asked, ended]
    assert reported == shown("report", TURN)
    assert reported == shown("alone", TURN)


def test_what_is_right_is_counted_from_the_first_report_on(tmp_path: Path) -> None:
    """In seconds: of a process that has not spoken yet, and of one that never does, none."""
    trace = [file(100.0, "busy", pid=8), *TURN]
    (tmp_path / "turn.jsonl").write_text("".join(json.dumps(x) + "\n" for x in trace))
    scores = scored([tmp_path / "turn.jsonl"])
    assert pytest.approx(58 - 5 * 0.7) == scores["report"].compared
    assert 1.0 == scores["report"].agrees
    assert pytest.approx(6.0 - 0.35) == scores["hooks"].missed
    assert pytest.approx(10.0 - 0.35) == scores["hooks"].false
    assert pytest.approx(10.0) == scores["hooks"].slowest
    assert pytest.approx(10.0 - 0.7) == scores["hooks"].asked


def test_a_question_that_is_never_shown_is_as_late_as_it_was_long() -> None:
    score = Score()
    score.add("turn", of_processes(TURN), [{"t": 100.0, "session_id": str(PID), "to": "idle"}])
    assert pytest.approx(20.0) == score.slowest
    assert pytest.approx(10.0 - 0.7) == score.missed


def test_the_rules_that_decide_are_counted_by_what_the_program_had_reported(
    tmp_path: Path,
) -> None:
    """The program reports a question at once here, the end of the turn half a second later."""
    trace = [report(x["t"] + 0.5, "done") if "done" in str(x) else x for x in TURN]
    (tmp_path / "turn.jsonl").write_text("".join(json.dumps(x) + "\n" for x in trace))
    table = {rule: row for (rule, _), row in decided([tmp_path / "turn.jsonl"]).items()}
    assert 1 == table["begin"].unsaid
    assert 1 == table["settle"].soon
    assert 5 == sum(row.times for row in table.values())


def test_the_page_keeps_what_was_not_played_again() -> None:
    """A column of another time, the part about programs, and that about other agents."""
    row = Row("text turn", compared=4.0, wrong=(1.0,), delays=(0.25,))
    old = page(
        {"2.1.330": {"text turn": row}}, old=f"{OWN}\n\n| way | 1 |\n\n## Other agents\n\nthey\n"
    )
    new = page({"2.1.332": {"text turn": Row("text turn", compared=4.0)}}, old=old)
    assert "| text turn | 100 % · 0.00 s | 75 % · 0.25 s |" in new
    assert "| scene | 2.1.332 | 2.1.330 |" in new
    assert "* 2.1.330: 1 scenes, 75.00% of 4 s" in new
    assert [OWN, "", "| way | 1 |", ""] == part(new, OWN)
    assert new.endswith("## Other agents\n\nthey\n")
    assert new == page({}, old=new)
    older = page({}, old=new.replace("2.1.330", "2.0.1"))  # which nobody plays any more
    assert "| text turn | 100 % · 0.00 s | 75 % · 0.25 s |" in older


def test_what_was_wrong_is_told_by_cause() -> None:
    """The differences leave out how a turn ended: the file knows only that it did."""
    wrong = Wrong(10.0, 16.0, "idle", "?", Stretch(9.0, 17.0, str(PID), PID, frozenset()))
    differences = [
        Difference(9.0, 2.0, PID, "idle", "busy", FILE_LATER),
        Difference(15.0, 5.0, PID, "working", "shell", LEFT),
        Difference(12.0, 1.0, 8, "working", "idle", LEFT),
    ]
    assert {FILE_LATER: 1.0, LEFT: 1.0, WHICH_END: 4.0} == causes(wrong, differences)
