"""Two processes of one session write one transcript: what it says is of one of them, if of any."""

from __future__ import annotations

from typing import Any, Final

import pytest

from bellboard.core.board import Board
from bellboard.core.published import snapshot
from playback import Line, play

pytestmark = pytest.mark.pure

ONE, TWO = 41, 42
PANES: Final = {ONE: "%1", TWO: "%2"}
ORPHANED: Final = "[Tool call interrupted: the session ended before this call's result was recorded"


def hook(t: float, pid: int, name: str, **facts: Any) -> Line:
    payload = {"hook_event_name": name, "session_id": "s", "cwd": "/p", **facts}
    origin = {"agent": "claude", "pid": pid, "tmux": "/t", "pane": PANES[pid], "tty": f"/dev/{pid}"}
    return {"t": t, "hook": payload, "origin": origin}


def file(t: float, pid: int, status: str, waits: str = "") -> Line:
    record = {"pid": pid, "sessionId": "s", "cwd": "/p", "procStart": str(pid), "status": status}
    record |= {"statusUpdatedAt": int(1000 * t), **({"waitingFor": waits} if waits else {})}
    return {"t": t, "registry": {"pid": pid, "record": record}}


def said(t: float, **entry: Any) -> Line:
    stamp = f"1970-01-01T00:01:{t - 60:06.3f}Z"
    return {"t": t, "transcript": {"session_id": "s", "entry": {"timestamp": stamp, **entry}}}


def result(t: float, **more: str) -> Line:
    block = {"type": "tool_result", "tool_use_id": "a", "is_error": True, "content": ORPHANED}
    return said(t, type="user", message={"role": "user", "content": [block]}, **more)


#: The first process works, or asks; the second one has been opened, and rests.
WORKS: Final = (
    hook(60.0, ONE, "SessionStart", source="startup"),
    hook(61.0, ONE, "UserPromptSubmit", prompt="go", prompt_id="p1"),
    file(61.1, ONE, "busy"),
    hook(62.0, ONE, "PreToolUse", tool_name="Bash", tool_use_id="a", tool_input={}),
)
ASKS: Final = (
    *WORKS,
    hook(62.1, ONE, "PermissionRequest", tool_name="Bash", tool_input={}),
    file(62.2, ONE, "waiting", "permission prompt"),
)
OPENED: Final = (
    hook(64.0, TWO, "SessionStart", source="resume"),
    file(64.1, TWO, "idle"),
)


def shown(*lines: Line) -> Line:
    """What is published in the end."""
    board_changes, _ = play([*lines, {"t": lines[-1]["t"] + 1.0, "tick": {}}])
    return board_changes[-1]


def test_a_result_that_the_second_process_writes_answers_nothing() -> None:
    """It makes one up for each call that the transcript has without a result."""
    assert "blocked" == shown(*ASKS, *OPENED, result(64.2, toolDenialKind="interrupted"))["to"]


def test_nor_does_any_result_while_the_files_tell() -> None:
    """The first one's file says that it waits."""
    assert "blocked" == shown(*ASKS, *OPENED, result(64.2))["to"]


def test_an_end_in_the_transcript_is_of_the_process_that_stopped() -> None:
    """The other one works on."""
    turn = (
        hook(65.0, TWO, "UserPromptSubmit", prompt="and you", prompt_id="p2"),
        file(65.1, TWO, "busy"),
        hook(66.0, TWO, "Stop", stop_hook_active=False),
        file(66.1, TWO, "idle"),
        said(66.2, type="system", subtype="stop_hook_summary"),
        said(66.3, type="system", subtype="turn_duration"),
    )
    assert "working" == shown(*WORKS, *OPENED, *turn)["to"]
    without_files = [x for x in (*WORKS, *OPENED, *turn) if "registry" not in x]
    assert "working" == shown(*without_files)["to"]


def test_an_end_that_is_read_after_its_process_is_gone_is_not_the_others() -> None:
    """The line is older than the leaving."""
    turn = (
        hook(65.0, TWO, "UserPromptSubmit", prompt="and you", prompt_id="p2"),
        hook(66.0, TWO, "Stop", stop_hook_active=False),
        file(66.1, TWO, "idle"),
        hook(66.5, TWO, "SessionEnd", reason="prompt_input_exit"),
        {"t": 66.6, "process": {"pid": TWO, "alive": False}},
        {**said(66.3, type="system", subtype="turn_duration"), "t": 66.8},
    )
    assert "working" == shown(*WORKS, *OPENED, *turn)["to"]


def test_an_interrupt_in_the_second_process_is_none_of_the_first() -> None:
    """Whatever line of the transcript tells of it."""
    text = {"type": "text", "text": "[Request interrupted by user]"}
    turn = (
        hook(65.0, TWO, "UserPromptSubmit", prompt="and you", prompt_id="p2"),
        file(65.1, TWO, "busy"),
        file(66.0, TWO, "idle"),
        said(66.1, type="user", message={"role": "user", "content": [text]}),
        said(66.2, type="system", subtype="turn_duration"),
    )
    assert "blocked" == shown(*ASKS, *OPENED, *turn)["to"]
    assert "working" == shown(*WORKS, *OPENED, *turn)["to"]


def test_a_prompt_in_one_process_has_seen_how_the_other_one_ended() -> None:
    """Esc in it leaves the session idle: nobody is told again of what came before."""
    ended = (hook(62.5, ONE, "Stop", stop_hook_active=False), file(62.6, ONE, "idle"))
    start = (WORKS[0], WORKS[1], WORKS[2], *ended)
    opened = (hook(61.5, TWO, "SessionStart", source="resume"), file(61.6, TWO, "idle"))
    lines = sorted([*start, *opened], key=lambda x: x["t"])
    assert "completed" == shown(*lines)["to"]
    prompt = (
        hook(70.0, TWO, "UserPromptSubmit", prompt="and you", prompt_id="p2"),
        file(70.1, TWO, "busy"),
        file(71.0, TWO, "idle"),
    )
    assert "idle" == shown(*lines, *prompt)["to"]


def test_an_end_is_seen_too_if_only_the_file_is_behind() -> None:
    """The second process opens between the Stop and the first one's file."""
    lines = [*WORKS[:3], hook(63.5, ONE, "Stop", stop_hook_active=False), *OPENED]
    assert "idle" == shown(*lines, file(64.5, ONE, "idle"))["to"]


@pytest.mark.parametrize("stood", [0.1, 4.0])
def test_what_one_process_completed_stays_to_be_seen_when_it_is_gone(stood: float) -> None:
    """The other one rests, and nobody has looked; it may leave as soon as it stopped."""
    turn = (
        hook(65.0, TWO, "UserPromptSubmit", prompt="and you", prompt_id="p2"),
        file(65.1, TWO, "busy"),
        hook(66.0, TWO, "Stop", stop_hook_active=False),
        hook(66.0 + stood, TWO, "SessionEnd", reason="resume"),
        {"t": 66.1 + stood, "process": {"pid": TWO, "alive": False}},
    )
    first = (WORKS[0], file(60.1, ONE, "idle"), *OPENED)
    assert "completed" == shown(*first, *turn)["to"]
    command = (file(66.02, TWO, "idle"), file(66.05, TWO, "busy"))
    assert "completed" == shown(*first, *turn[:3], *command, *turn[3:])["to"]


def test_process_and_terminal_are_those_of_the_one_that_asks() -> None:
    """The second one's, while the first one rests; and the other way about."""
    for pid, asking in ((TWO, OPENED), (ONE, ())):
        lines = [hook(60.0, ONE, "SessionStart", source="startup"), *asking]
        lines += [hook(65.0, pid, "UserPromptSubmit", prompt="go"), file(65.1, pid, "busy")]
        lines += [hook(66.0, pid, "PermissionRequest", tool_name="Bash", tool_input={})]
        lines += [file(66.1, pid, "waiting", "permission prompt"), *(OPENED if pid == ONE else ())]
        board = Board()
        play(sorted(lines, key=lambda x: x["t"]), board)
        (row,) = snapshot(board.sessions.values())
        assert (pid, PANES[pid], f"/dev/{pid}") == (row["pid"], row["pane"], row["tty"])


def test_a_question_shows_whichever_news_of_it_comes_first() -> None:
    """The file may say that it waits long before the hook does, and be read long after it."""
    early = file(62.5, ONE, "waiting", "permission prompt")
    request = hook(63.0, ONE, "PermissionRequest", tool_name="Bash", tool_input={})
    later = {"t": 63.5, "tick": {}}
    assert "blocked" == shown(*WORKS, early, request)["to"]
    assert "blocked" == shown(*WORKS, request, later, {**early, "t": 63.6})["to"]


def test_a_summary_tells_that_a_stop_hook_sent_the_session_on() -> None:
    """Also where the line of its feedback is older than the news of the Stop, on a busy machine."""
    text = "Stop hook feedback:\n[test]: go on"
    feedback = said(62.8, type="user", isMeta=True, message={"role": "user", "content": text})
    summary = {"type": "system", "subtype": "stop_hook_summary", "hookErrors": ["[test]: go on"]}
    lines = (*WORKS[:3], hook(63.0, ONE, "Stop", stop_hook_active=False), feedback)
    assert "working" == shown(*lines, said(63.1, **summary, failedHookErrorIndexes=[]))["to"]
    assert "completed" == shown(*lines, said(63.1, **summary, failedHookErrorIndexes=[0]))["to"]
