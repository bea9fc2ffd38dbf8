"""Captured screens of real CLIs: their meanings, and screens that mean nothing."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import pytest

from bellboard.agents.agent import Seen
from bellboard.agents.claude.screen import read_screen
from bellboard.agents.trace_line import from_line
from bellboard.core.board import Board
from bellboard.core.session import markers_of, published_status, question_of
from rig import DATA

CAPTURES = DATA / "captures"
T = 1.8e9
BASH = Seen("waiting", "permission", "Bash", "touch made.txt")
DANGER = Seen("waiting", "permission", "Bash", "curl -s http://127.0.0.1:1/x | sh")
TRUST = Seen("waiting", "choice", "", "trust this folder? /home/me/project")
EXPECTED = {
    "bash": BASH,
    "bash_narrow": DANGER,
    "danger": DANGER,
    "write": Seen("waiting", "permission", "Write", "w.txt"),
    "question": Seen("waiting", "question", "AskUserQuestion", "Which colour?"),
    "workflow": Seen("waiting", "permission", "Workflow", "Find all bugs"),
    "plan": Seen("waiting", "plan", "ExitPlanMode"),
    "form": Seen("waiting", "form", "", "What name?"),
    "trust": TRUST,
    "trust_narrow": TRUST,
    "rest": Seen("idle"),
    "typed": Seen("idle"),
    "done": Seen("idle"),
    "interrupted": Seen("idle"),
    "busy": Seen("busy"),
    "busy_tool": Seen("busy"),
    "retrying": Seen("busy", detail="attempt 4 of 4: 500 fake api_error"),
    "retrying_old": Seen("busy", detail="attempt 4 of 4"),
    "session_paused": Seen(
        "waiting",
        "choice",
        "",
        "session paused: Switch to Opus 4.8 · Edit prompt and retry with Opus 5.5",
    ),
    "menu_model": None,
    "menu_help": None,
    "menu_rewind": None,
}


@pytest.mark.parametrize(
    "path", sorted(CAPTURES.glob("*/*.txt")), ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_each_captured_screen_is_recognized(path: Path) -> None:
    """Idle, busy, each dialog, narrow ones too; a menu of the user's own is ignored."""
    assert EXPECTED[path.stem] == read_screen(path.read_text().splitlines())


@pytest.mark.parametrize("folder", sorted(CAPTURES.iterdir()), ids=lambda folder: folder.name)
def test_every_version_shows_every_dialog(folder: Path) -> None:
    """No capture is missing that another version has; older ones know no forms or workflows."""
    unknown = {"form"} if folder.name == "2.1.76" else set()
    unknown |= {"retrying" if folder.name in ("2.1.76", "2.1.119") else "retrying_old"}
    unknown |= {"workflow"} if folder.name != "2.1.330" else set()
    if folder.name == "2.1.332":
        unknown = EXPECTED.keys() - {"session_paused"}
    else:
        unknown |= {"session_paused"}
    assert EXPECTED.keys() - unknown == {path.stem for path in folder.iterdir()}


@pytest.mark.parametrize("name", ["rest", "busy", "menu_model", "question"])
def test_output_of_the_agent_is_not_read(name: str) -> None:
    """Text above the input box or dialog may look like a dialog itself."""
    captured = (CAPTURES / "2.1.328" / f"{name}.txt").read_text().splitlines()
    fake = (CAPTURES / "2.1.328" / "bash.txt").read_text().splitlines()
    assert EXPECTED[name] == read_screen([*fake, "", *captured])


@pytest.mark.parametrize("screen", [[], [""], ["❯"], ["─" * 40], ["❯ 1. Yes"], ["\x00" * 9] * 99])
def test_other_screens_say_nothing(screen: list[str]) -> None:
    """Such screens are empty, partial, or of other programs."""
    assert read_screen(screen) is None


# What follows from it


def board_of(*lines: dict[str, object]) -> Board:
    """Return a board with a session known only from its process, after these events."""
    record = {"pid": 7, "sessionId": "s", "cwd": "/srv", "procStart": "1"}
    board = Board()
    found = {"t": T, "registry": {"pid": 7, "record": record, "discovered": True}}
    for told in (found, *lines):
        board.fold(from_line(told))
    return board


def saw(t: float, says: str, **what: str) -> dict[str, object]:
    """Return the content of a screen as a trace line."""
    return {"t": T + t, "screen": {"session_id": "s", "pid": 7, "says": says, **what}}


def test_without_better_evidence_the_screen_decides() -> None:
    """Asking, busy, idle: each marked as inferred, with what it asks."""
    board = board_of(saw(1, "waiting", asks="choice", detail="trust this folder? /srv"))
    session = board.sessions["s"]
    question = question_of(session)
    assert question is not None
    assert ("blocked", "choice", "trust this folder? /srv") == (
        published_status(session),
        question.asks,
        question.detail,
    )
    assert "inferred" in markers_of(session, "blocked", question, False)
    for t, says, status in [(2, "busy", "working"), (3, "idle", "completed")]:
        board.fold(from_line(saw(t, says)))
        session = board.sessions["s"]
        assert status == published_status(session)
        assert "inferred" in markers_of(session, status, None, False)


def test_a_question_that_is_seen_again_waits_since_the_first_look() -> None:
    """The age of a question does not start over with every look."""
    asked = {"asks": "permission", "tool": "Bash", "detail": "make"}
    board = board_of(saw(1, "waiting", **asked), saw(9, "waiting", **asked))
    question = question_of(board.sessions["s"])
    assert question is not None
    assert T + 1 == question.since


def test_a_screen_never_counts_against_better_evidence() -> None:
    """Neither against hooks nor against a status in the session's own file."""
    hook = {"session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt": "go", "cwd": "/srv"}
    board = board_of({"t": T + 1, "hook": hook, "origin": {"pid": 7}}, saw(2, "idle"))
    assert "working" == published_status(board.sessions["s"])
    record = {"pid": 7, "sessionId": "s", "status": "busy", "procStart": "1"}
    board = board_of({"t": T + 1, "registry": {"pid": 7, "record": record}}, {"t": T + 2})
    board.fold(from_line(saw(3, "idle")))
    assert "working" == published_status(board.sessions["s"])


@pytest.mark.parametrize("read", [0, 1, 2])
def test_a_tool_in_the_log_proves_a_question_whenever_the_session_file_is_read(read: int) -> None:
    """Before it says that the session works, before that has lasted, or before it says it asks."""
    record = {"pid": 7, "sessionId": "s", "cwd": "/srv", "procStart": "1"}
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make"}}
    entry = {"type": "assistant", "message": {"content": [call]}}
    logged: dict[str, object] = {"t": T + 9, "transcript": {"session_id": "s", "entry": entry}}
    rest, works, asks = (
        {"t": T + t, "registry": {"pid": 7, "record": {**record, **said}}}
        for t, said in [
            (1, {"status": "idle"}),
            (8.9, {"status": "busy"}),
            (9.1, {"status": "waiting", "waitingFor": "permission prompt"}),
        ]
    )
    told: list[dict[str, object]] = [works, asks]
    told.insert(read, logged)
    board = board_of(rest, {"t": T + 3}, *told, saw(10, "waiting", asks="permission", tool="Bash"))
    session = board.sessions["s"]
    question = question_of(session)
    assert question is not None
    assert ("Bash", "make", "t1") == (question.tool, question.detail, question.tool_id)
    assert [] == markers_of(session, "blocked", question, False)


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_tool_in_the_log_is_what_the_words_of_the_program_name(at: int) -> None:
    """An own report may be read before the session file, and before the log."""
    record = {"pid": 7, "sessionId": "s", "cwd": "/srv", "procStart": "1"}
    works, asks = (
        {"t": T + t, "registry": {"pid": 7, "record": {**record, **said}}}
        for t, said in [
            (1, {"status": "busy"}),
            (9, {"status": "waiting", "waitingFor": "permission prompt"}),
        ]
    )
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make"}}
    entry = {"type": "assistant", "message": {"content": [call]}}
    msg = b64encode(b"approve Bash: make").decode()
    body = f"state=blocked:app=claude-code:kind=permission:msg={msg}"
    said = {"pid": 7, "started": "1", "tty": "/dev/pts/1", "session_id": "s", "body": body}
    told: list[dict[str, object]] = [{"t": T + 9.0, "osc7501": said}, asks]
    told.insert(at, {"t": T + 8.9, "transcript": {"session_id": "s", "entry": entry}})
    board = board_of(works, {"t": T + 3}, *told)
    question = question_of(board.sessions["s"])
    assert question is not None
    assert ("Bash", "make", "t1") == (question.tool, question.detail, question.tool_id)


@pytest.mark.parametrize("before", ["idle", "completed"])
@pytest.mark.parametrize("ends", ["result", "rest"])
def test_a_tool_in_the_log_of_a_session_at_rest_does_not_last(before: str, ends: str) -> None:
    """A tool with a result, or of a turn that ended before the session file was read, is over."""

    def says(t: float, status: str) -> dict[str, object]:
        record = {"pid": 7, "sessionId": "s", "cwd": "/srv", "procStart": "1", "status": status}
        return {"t": T + t, "registry": {"pid": 7, "record": record}}

    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "made"}
    logged: list[tuple[str, object]] = [("user", "go"), ("assistant", [call])]
    logged += [("user", [result])] if ends == "result" else []
    log = [
        {"t": T + 6 + n, "transcript": {"session_id": "s", "entry": {"type": who, "message": said}}}
        for n, (who, said) in enumerate((who, {"content": text}) for who, text in logged)
    ]
    began = [says(0, "busy")] if before == "completed" else []
    board = board_of(*began, {"t": T + 2}, says(3, "idle"), {"t": T + 5}, *log)
    session = board.sessions["s"]
    assert (before, ends == "rest") == (published_status(session), bool(session.tools))
    for line in (says(9, "busy"), says(9.1, "idle"), {"t": T + 10}):
        board.fold(from_line(line))
    session = board.sessions["s"]
    assert (before, {}) == (published_status(session), session.tools)


def test_an_older_look_changes_nothing() -> None:
    """Several hosts look, and the slowest one reports last."""
    board = board_of(saw(5, "busy"), saw(4, "waiting", asks="permission"))
    assert "working" == published_status(board.sessions["s"])


def test_work_on_the_screen_keeps_a_silent_transcript_from_ending_the_turn() -> None:
    """A tool may run for minutes without a line."""
    entry = {"type": "user", "message": {"content": "go"}}
    said = {"t": T + 1, "transcript": {"session_id": "s", "entry": entry}}
    board = board_of(said, saw(2, "busy"))
    board.advance(T + 120)
    assert "working" == published_status(board.sessions["s"])


def test_a_terminal_found_before_the_session_file_says_more_is_kept() -> None:
    """The file is written twice at the start; the process is looked at once."""
    record = {"pid": 7, "sessionId": "s", "cwd": "/srv", "procStart": "1"}
    board = Board()
    for told in (
        {"t": T, "registry": {"pid": 7, "record": record}},
        {"t": T + 0.1, "process": {"pid": 7, "alive": True, "started": "1", "tty": "/dev/pts/3"}},
        {"t": T + 0.2, "registry": {"pid": 7, "record": {**record, "status": "idle"}}},
        {"t": T + 2, "tick": {}},
    ):
        board.fold(from_line(told))
    session = board.sessions["s"]
    assert ("idle", "/dev/pts/3") == (published_status(session), session.tty)


@pytest.mark.parametrize("says", ["busy", "idle"])
def test_a_screen_adds_only_the_attempt_to_better_evidence(says: str) -> None:
    """And what is read first is as old as its last news: it may have been there all the time."""
    board = Board()
    hook = {"session_id": "s", "hook_event_name": "UserPromptSubmit"}
    board.fold(from_line({"t": T, "hook": hook, "origin": {"pid": 7}}))
    board.advance(T + 700)
    for n, more in enumerate(({"detail": "attempt 1 of 3", "found": True}, {})):
        shown = {"session_id": "s", "pid": 7, "says": says, **more}
        board.fold(from_line({"t": T + 700 + n, "screen": shown}))
        session = board.sessions["s"]
        expected = "attempt 1 of 3" if says == "busy" and not n else ""
        assert (session.turn, session.retrying, session.quiet) == ("working", expected, not n)
