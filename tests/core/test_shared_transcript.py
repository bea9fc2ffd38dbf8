"""Two processes of one session write one transcript: each line belongs to one of them, or none."""

from __future__ import annotations

from typing import Any, Final

import pytest

from bellboard.agents import traces
from bellboard.core.board import Board
from bellboard.core.published import snapshot
from rig.host.playback import Line, encoded, play

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


#: The first process works or asks; the second was opened and is at rest.
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
    """Return the session as published at the end."""
    board_changes, _ = play([*lines, {"t": lines[-1]["t"] + 1.0, "tick": {}}])
    return board_changes[-1]


def test_a_result_written_by_the_second_process_answers_nothing() -> None:
    """That process makes up a result for each call in the transcript without one."""
    assert "blocked" == shown(*ASKS, *OPENED, result(64.2, toolDenialKind="interrupted"))["to"]


def test_no_result_answers_while_session_files_exist() -> None:
    """The first process's file says that it waits."""
    assert "blocked" == shown(*ASKS, *OPENED, result(64.2))["to"]


def test_an_end_in_the_transcript_belongs_to_the_process_that_stopped() -> None:
    """The other one keeps working."""
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


def test_an_end_read_after_its_process_left_is_not_the_others() -> None:
    """The line is older than the departure."""
    turn = (
        hook(65.0, TWO, "UserPromptSubmit", prompt="and you", prompt_id="p2"),
        hook(66.0, TWO, "Stop", stop_hook_active=False),
        file(66.1, TWO, "idle"),
        hook(66.5, TWO, "SessionEnd", reason="prompt_input_exit"),
        {"t": 66.6, "process": {"pid": TWO, "alive": False}},
        {**said(66.3, type="system", subtype="turn_duration"), "t": 66.8},
    )
    assert "working" == shown(*WORKS, *OPENED, *turn)["to"]


def test_an_interrupt_in_one_process_leaves_the_other_alone() -> None:
    """Any line of the transcript may report it."""
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


def test_a_prompt_in_one_process_marks_the_others_end_as_seen() -> None:
    """Esc in it leaves the session idle; the earlier end is not announced again."""
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


def test_an_end_is_seen_even_if_the_file_lags() -> None:
    """The second process opens between the Stop and the first one's file."""
    lines = [*WORKS[:3], hook(63.5, ONE, "Stop", stop_hook_active=False), *OPENED]
    assert "idle" == shown(*lines, file(64.5, ONE, "idle"))["to"]


@pytest.mark.parametrize("stood", [0.1, 4.0])
def test_an_unseen_end_outlives_its_process(stood: float) -> None:
    """The other one is idle and the end was not seen; a process may exit right after its Stop."""
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
    """The second one's while the first is idle, and the other way round."""
    for pid, asking in ((TWO, OPENED), (ONE, ())):
        lines = [hook(60.0, ONE, "SessionStart", source="startup"), *asking]
        lines += [hook(65.0, pid, "UserPromptSubmit", prompt="go"), file(65.1, pid, "busy")]
        lines += [hook(66.0, pid, "PermissionRequest", tool_name="Bash", tool_input={})]
        lines += [file(66.1, pid, "waiting", "permission prompt"), *(OPENED if pid == ONE else ())]
        board = Board()
        play(sorted(lines, key=lambda x: x["t"]), board)
        (row,) = snapshot(board.sessions.values())
        assert (pid, PANES[pid], f"/dev/{pid}") == (row["pid"], row["pane"], row["tty"])


def test_a_question_shows_with_whichever_evidence_comes_first() -> None:
    """The file may say waiting long before the hook event, or be read long after it."""
    early = file(62.5, ONE, "waiting", "permission prompt")
    request = hook(63.0, ONE, "PermissionRequest", tool_name="Bash", tool_input={})
    later = {"t": 63.5, "tick": {}}
    assert "blocked" == shown(*WORKS, early, request)["to"]
    assert "blocked" == shown(*WORKS, request, later, {**early, "t": 63.6})["to"]


def test_a_summary_shows_that_a_stop_hook_continued_the_session() -> None:
    """Hooks may fail without that: then the session rests, as its session file says."""
    summary = {"type": "system", "subtype": "stop_hook_summary", "hookErrors": ["[test]: go on"]}
    lines = (*WORKS[:3], hook(63.0, ONE, "Stop", stop_hook_active=False))
    rests = file(63.2, ONE, "idle")
    went_on = said(63.1, **summary, failedHookErrorIndexes=[])
    assert "working" == shown(*lines, went_on)["to"]
    assert "idle" == shown(*lines, went_on, rests, {"t": 66.0, "tick": {}})["to"]
    failed = said(63.1, **summary, failedHookErrorIndexes=[0])
    assert "completed" == shown(*lines, failed, rests)["to"]


def why(*lines: Line) -> str:
    """Return the reason of the last event, as `bellboard explain` prints it."""
    return [*traces.replay(encoded(lines), Board())][-1].verdict.why


def test_an_end_from_a_process_without_a_turn_says_so() -> None:
    """The session is listed, so that is not what keeps it from counting."""
    assert why(*WORKS, hook(63.0, TWO, "Stop")) == (
        f"this process (pid {TWO}) has no turn in this session"
    )
    assert why(hook(63.0, TWO, "Stop")).startswith("the session is not listed")


def test_an_end_that_is_held_says_by_what() -> None:
    """Until then the session works on, and `explain` shows the reason beside the Stop."""
    start, stop = WORKS[:2], hook(63.0, ONE, "Stop")
    agent = hook(62.0, ONE, "SubagentStart", agent_id="a1", agent_type="Explore")
    assert why(*start, agent, stop) == "The end of the turn is held: 1 agent runs"
    busy = "its session file says busy"
    assert why(*WORKS, stop) == f"The end of the turn is held: {busy}"
    assert why(*WORKS, hook(63.0, ONE, "StopFailure")) == f"The failure of the turn is held: {busy}"
    assert "held" not in why(*start, stop)
