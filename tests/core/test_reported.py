"""The own reports of a program (OSC 7501), compared with its session file and its screen.

The recordings are of the real CLI in a Neovim terminal; `own/reported.py` scores them.
"""

from __future__ import annotations

import base64
import re
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from bellboard.core import program_status
from live.account import STANDS, Account, Stretch, most_urgent, wrong_times
from live.own import reported
from live.own.reported import FILE, SCREEN, Comparison, compared
from live.public import brief
from rig import home as homes
from rig.host.playback import TRACES, Line, play, read_lines

RECORDED: Final = sorted((TRACES / "reported").glob("*.jsonl"))
#: Whoever is later, both say the same in the end.
LATER: Final = (
    *(reported.UNHEARD, reported.FILE_LATER, reported.SCREEN_LATER, reported.REPORT_LATER),
    *(reported.FLICKER, reported.ENDING),
)


@cache
def lines_of(path: Path) -> list[Line]:
    return read_lines(path)


def scores(other: str) -> dict[str, Comparison]:
    return {path.stem: compared(lines_of(path), other) for path in RECORDED}


def test_every_recorded_report_is_valid() -> None:
    """Reports of the CLI and of other writers are."""
    bodies = [x["osc7501"] for path in RECORDED for x in lines_of(path) if "osc7501" in x]
    assert len(bodies) > 350
    for said in bodies:
        assert program_status.parsed(said["body"]).state
        assert said["pid"] > 0
        assert said["started"].isdigit()
        assert said["tty"].startswith("/dev/pts/")


def test_no_recording_names_this_machine() -> None:
    for path in RECORDED:
        told = path.read_text()
        for sent in re.findall(r"\b(?:title|msg)=([A-Za-z0-9+/=]+)", told):
            told += base64.b64decode(sent).decode()
        assert not re.search(r"/bb-|/work/|/root/|no-real-key|\.npm", told), path.name
        assert len(told) < 64_000, f"{path.name} is too long"


@pytest.mark.parametrize("other", [FILE, SCREEN])
def test_every_second_of_a_difference_is_explained(other: str) -> None:
    odd = {
        name: [x for x in score.differences if x.cause == reported.UNEXPLAINED]
        for name, score in scores(other).items()
    }
    assert {} == {name: found for name, found in odd.items() if found}


def test_a_report_is_later_than_the_file_only_for_moments() -> None:
    """The file is later, by the time that the report comes first."""
    found = scores(FILE).values()
    late = sum(x.of(reported.REPORT_LATER) for x in found)
    assert sum(x.of(reported.FILE_LATER) for x in found) > 10 * late


def test_the_report_agrees_with_the_session_file() -> None:
    """Differences are limits of the report, or short delays."""
    found = scores(FILE).values()
    seconds = sum(x.seconds for x in found)
    assert seconds > 600
    wrong = sum(
        x.of(reported.WHICH_END, reported.REPORT_LATER, reported.UNEXPLAINED) for x in found
    )
    assert 1 - wrong / seconds > 0.995


#: What lasts, by scene: the report has no word for it, has another one, or is not the CLI's own.
LASTS: Final = {
    reported.LEFT: "shell_",
    reported.OWN_DIALOG: "_ahead|_at_rest|login|usage_limit|shell_stopped|bg_|_menu|exit_at_work",
    reported.FORGED: "forged_by_a_tool|forged_in_a_question",
}


@pytest.mark.parametrize("cause", LASTS)
def test_what_a_report_cannot_tell_is_in_these_scenes(cause: str) -> None:
    """In no other for longer than a moment, and in some for longer than a second."""
    found = {name: score.of(cause) for name, score in scores(FILE).items()}
    assert [] == [n for n, s in found.items() if s > 0.5 and not re.search(LASTS[cause], n)]
    assert max(found.values()) > 1.0


def forged(name: str) -> tuple[list[reported.Difference], list[Stretch], list[Line]]:
    """Return the forgeries of a scene, the file's status meanwhile, and the shown status."""
    recorded = next(lines_of(path) for path in RECORDED if path.stem.startswith(f"{name}-"))
    found = [x for x in compared(recorded).differences if x.cause == reported.FORGED]
    assert max(x.seconds for x in found) > 3
    stood = [x for x in most_urgent(Account(recorded).stretches) if x.end - x.start > STANDS]
    during = [x for x in stood for f in found if x.start < f.start + f.seconds and f.start < x.end]
    changes, _ = play(recorded)
    return found, during, changes


def test_a_report_by_something_else_hides_no_question() -> None:
    """Hooks and file show it."""
    _, during, changes = forged("forged_in_a_question")
    assert "blocked" in set().union(*(x.allowed for x in during))
    assert [] == [w for x in during for w in wrong_times(x.compared, changes) if w > 0.1]


def test_a_report_by_something_else_hides_work_until_the_next_report() -> None:
    """A report is better than the file, and the CLI's own one follows."""
    found, during, changes = forged("forged_by_a_tool")
    assert {"working"} == set().union(*(x.allowed for x in during))
    longest = max(x.seconds for x in found) + 0.3
    assert [] == [w for x in during for w in wrong_times(x.compared, changes) if w > longest]


def lines(*given: tuple[float, str, str]) -> list[Line]:
    """Return a trace: a time, which witness, and what it says; the file's may have a reason."""

    def line(t: float, of: str, says: str) -> dict[str, Any]:
        if of == "report":
            where = {"pid": 1, "started": "7", "tty": "/dev/pts/1"}
            return {"t": t, "osc7501": {**where, "body": f"state={says}"}}
        if of == "screen":
            return {"t": t, "truth": says, "pid": 1, "screen": []}
        if of == "hook":
            hook = {"hook_event_name": says, "session_id": "s"}
            return {"t": t, "hook": hook, "origin": {"pid": 1}}
        if of == "note":
            return {"t": t, "note": says}
        status, _, waits = says.partition(": ")
        record = {"sessionId": "s", "status": status, **({"waitingFor": waits} if waits else {})}
        return {"t": t, "registry": {"pid": 1, "record": record}}

    return [*(line(*each) for each in given), {"t": 60.0, "tick": {}}]


def told(score: Comparison) -> list[tuple[float, float, str]]:
    return [(round(x.start, 3), round(x.seconds, 3), x.cause) for x in score.differences]


TURN: Final = (
    (1.0, "file", "idle"),
    (1.0, "report", "idle"),
    (10.0, "hook", "UserPromptSubmit"),
    (10.0, "report", "working"),
    (10.1, "file", "busy"),
    (20.0, "hook", "Stop"),
)


def test_the_one_that_is_later_is_named() -> None:
    """The file here, the report there."""
    score = compared(lines(*TURN, (20.0, "report", "done"), (20.2, "file", "idle")))
    assert [(10.0, 0.1, reported.FILE_LATER), (20.0, 0.2, reported.FILE_LATER)] == told(score)
    assert pytest.approx(59.0) == score.seconds
    assert pytest.approx(1 - 0.3 / 59) == score.agrees
    late = compared(lines(*TURN, (20.2, "file", "idle"), (20.9, "report", "done")))
    assert (20.2, 0.7, reported.REPORT_LATER) == told(late)[-1]


def test_a_report_that_stays_wrong_is_not_late() -> None:
    """No cause is known."""
    score = compared(lines(*TURN[:-1], (20.0, "file", "waiting: permission prompt")))
    assert (20.0, 40.0, reported.UNEXPLAINED) == told(score)[-1]


def test_a_report_by_something_else_counts_as_that_only_in_a_scene_of_it() -> None:
    given = (*TURN[:-1], (20.0, "report", "done"))
    assert (20.0, 40.0, reported.UNEXPLAINED) == told(compared(lines(*given)))[-1]
    forged = lines((0.5, "note", f"{reported.FORGES}"), *given)
    assert (20.0, 40.0, reported.FORGED) == told(compared(forged))[-1]


def test_how_the_turn_ended_is_compared_too() -> None:
    """Completed is not idle: hooks say which it is."""
    score = compared(lines(*TURN, (20.0, "report", "idle"), (20.1, "file", "idle")))
    assert (20.1, 39.9, reported.WHICH_END) == told(score)[-1]


@pytest.mark.parametrize(
    ("file", "says", "cause"),
    [
        ("waiting: dialog open", "done", reported.OWN_DIALOG),
        ("shell", "working", reported.LEFT),
        ("shell", "done", reported.LEFT),
    ],
)
def test_what_a_report_has_no_word_for_is_a_cause(file: str, says: str, cause: str) -> None:
    score = compared(lines(*TURN, (20.0, "report", says), (20.0, "file", file)))
    assert (20.0, 40.0, cause) == told(score)[-1]


def test_a_screen_shows_rest_but_not_how_the_turn_ended() -> None:
    shown = ((1.0, "screen", "idle"), (10.0, "screen", "working"), (20.3, "screen", "idle"))
    given = (*TURN, (20.0, "report", "error"), (20.0, "file", "idle"), *shown)
    ordered = sorted(given, key=lambda each: each[0])
    assert [(20.0, 0.3, reported.SCREEN_LATER)] == told(compared(lines(*ordered), SCREEN))


def test_the_texts_of_a_report_name_no_home_either() -> None:
    home = homes.Home(Path(homes.base(), "bb-a_c12"))
    sent = base64.b64encode(f"approve Bash: cat {home.project}/x".encode()).decode()
    body = f"state=blocked:msg={sent}"
    (line,) = brief([{"t": 1.0, "osc7501": {"pid": 1, "body": body}}])
    report = program_status.parsed(line["osc7501"]["body"])
    assert "approve Bash: cat /home/user/lab/project/x" == report.msg
