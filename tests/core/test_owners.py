"""A session in two processes: one of them is shown, complete, in its own terminal."""

from __future__ import annotations

from typing import Any

import pytest

from bellboard.agents.trace_line import from_line
from bellboard.core.board import Board
from bellboard.core.published import publish
from rig.host.playback import Line
from rig.host.strategies import T0

SOCKET = "/tmp/tmux-1000/default"
BASH = {"tool_name": "Bash", "tool_input": {"command": "make"}}
#: Two terminals: a tmux pane, and a Neovim's.
PLACES: dict[int, Line] = {
    11: {"pid": 11, "tty": "/dev/pts/1", "tmux": SOCKET, "pane": "%1"},
    12: {"pid": 12, "tty": "/dev/pts/2", "nvim": "/run/nvim.7.0"},
}


def hook(t: float, pid: int, name: str, **fields: Any) -> Line:
    told = {"session_id": "s", "hook_event_name": name, **fields}
    return {"t": T0 + t, "hook": told, "origin": PLACES[pid]}


def says(t: float, pid: int, status: str, **more: str) -> Line:
    record = {"sessionId": "s", "status": status, "statusUpdatedAt": (T0 + t) * 1000, **more}
    return {"t": T0 + t, "registry": {"pid": pid, "record": record}}


def shown(*lines: Line) -> Line:
    """Return the session as published at the end."""
    board = Board()
    for line in lines:
        board.fold(from_line(line))
    board.advance(board.ledger.clock + 0.5)
    return publish(board.sessions["s"])


def place(p: Line) -> Line:
    return {k: p[k] for k in ("pid", "tty", "tmux", "pane", "nvim") if k in p}


ASKS = [
    hook(0, 11, "SessionStart", source="startup"),
    hook(1, 11, "UserPromptSubmit", prompt="do it", prompt_id="p1"),
    hook(2, 11, "PreToolUse", tool_use_id="t1", prompt_id="p1", **BASH),
    hook(2.1, 11, "PermissionRequest", prompt_id="p1", **BASH),
]
SECOND = [*ASKS, hook(5, 12, "SessionStart", source="resume")]
AT_WORK = [*SECOND, hook(6, 12, "UserPromptSubmit", prompt="x", prompt_id="q1")]


@pytest.mark.parametrize(
    ("lines", "pid", "status"),
    [
        (SECOND, 11, "blocked"),
        (AT_WORK, 11, "blocked"),
        ([*AT_WORK, hook(7, 11, "PostToolUse", tool_use_id="t1", **BASH)], 11, "working"),
        ([*AT_WORK, hook(7, 11, "SessionEnd", reason="other")], 12, "working"),
        ([*AT_WORK, hook(7, 12, "SessionEnd", reason="other")], 11, "blocked"),
        ([*AT_WORK, hook(7, 12, "PermissionRequest", **BASH)], 11, "blocked"),
        (
            [
                *AT_WORK,
                hook(7, 12, "PermissionRequest", **BASH),
                hook(8, 11, "PostToolUse", tool_use_id="t1", **BASH),
            ],
            12,
            "blocked",
        ),
        ([*SECOND, {"t": T0 + 7, "process": {"pid": 12, "alive": False}}], 11, "blocked"),
        ([*SECOND, {"t": T0 + 7, "process": {"pid": 11, "alive": False}}], 12, "idle"),
    ],
)
def test_process_and_place_are_those_of_one_process(
    lines: list[Line], pid: int, status: str
) -> None:
    """Both processes may have reported their terminals again."""
    told = [{"t": T0 + 9, "process": {**PLACES[p], "alive": True}} for p in (11, 12)]
    still = [x for x in told if {"pid": x["process"]["pid"], "alive": False} not in gone(lines)]
    for p in (shown(*lines), shown(*lines, *still)):
        assert p["status"] == status
        assert place(p) == PLACES[pid]


def gone(lines: list[Line]) -> list[Line]:
    return [x["process"] for x in lines if "process" in x]


def test_looking_at_one_pane_is_not_looking_at_the_other() -> None:
    """The end that was seen clears; the other terminal's stays until seen there."""
    look = {"t": T0 + 4, "view": {"tmux": SOCKET, "pane": "%1"}, "viewer": "u"}
    done = [
        hook(7, 11, "PostToolUse", tool_use_id="t1", **BASH),
        hook(8, 11, "Stop", prompt_id="p1"),
        hook(9, 12, "Stop", prompt_id="q1"),
    ]
    p = shown(*AT_WORK, look, *done, {"t": T0 + 60, "tick": {}})
    assert (p["status"], place(p)) == ("completed", PLACES[12])


WAITS = [
    hook(0, 11, "SessionStart", source="startup"),
    says(0.3, 11, "idle"),
    hook(1, 11, "UserPromptSubmit", prompt="do it", prompt_id="p1"),
    says(1.1, 11, "busy"),
]


@pytest.mark.parametrize(
    ("asks", "tool", "detail"),
    [
        (hook(2, 11, "PermissionRequest", **BASH), "Bash", "waits for a hook: make"),
        (
            hook(2, 11, "Elicitation", mcp_server_name="db", message="Which table?"),
            "db",
            "waits for a hook: Which table?",
        ),
        (
            hook(2, 11, "PermissionRequest", agent_id="x1", tool_name="WebFetch"),
            "WebFetch",
            "waits for a hook",
        ),
    ],
)
def test_a_hook_that_decides_before_the_question_is_named(
    asks: Line, tool: str, detail: str
) -> None:
    waits = shown(*WAITS, asks, {"t": T0 + 5, "tick": {}})
    assert (waits["status"], waits["tool"], waits["detail"]) == ("working", tool, detail)
    asked = shown(*WAITS, asks, says(9, 11, "waiting", waitingFor="permission prompt"))
    assert asked["status"] == "blocked"
    assert not asked.get("detail", "").startswith("waits")


def test_a_record_of_an_older_version_has_one_run() -> None:
    """Before runs existed, a session held the turn and questions of all its processes."""
    board = Board()
    for line in ASKS:
        board.fold(from_line(line))
    board.advance(T0 + 3)
    bodies = dict(board.take_dirty())
    old = bodies["s"]
    assert old is not None
    without = old.replace(b"\xa3pid\x0b\xa4turn", b"\xa3qid\x0b\xa4turn", 1)
    assert without != old, "a record without the field"
    other = Board()
    other.load([("s", without)])
    other.fold(from_line(hook(5, 11, "PostToolUse", tool_use_id="t1", **BASH)))
    assert (publish(other.sessions["s"])["status"], other.sessions["s"].aside) == ("working", {})


def test_a_label_follows_a_resume_under_another_id() -> None:
    """In the same terminal and directory, however long ago the old one ended; not elsewhere."""
    label = {"t": T0 + 1, "label": {"session_id": "s", "label": "HEAVY"}}
    ended = [hook(0, 11, "SessionStart", cwd="/w"), label, hook(2, 11, "SessionEnd", cwd="/w")]

    def resumed(source: str, **more: Any) -> Line:
        origin = {**PLACES[11], "pid": 13, **more.pop("origin", {})}
        told = {"session_id": "new", "hook_event_name": "SessionStart", "cwd": "/w", **more}
        board = Board()
        for line in [
            *ended,
            {"t": T0 + 999, "hook": {**told, "source": source}, "origin": origin},
        ]:
            board.fold(from_line(line))
        return publish(board.sessions["new"])

    for source in ("resume", "fork"):
        assert (resumed(source)["label"], resumed(source)["previous"]) == ("HEAVY", ["s"])
    others = [resumed("startup"), resumed("resume", cwd="/x")]
    others.append(resumed("resume", origin={"tty": "/dev/pts/9", "pane": "%9"}))
    assert [p.get("label") for p in others] == [None] * 3


@pytest.mark.parametrize("begins", [3.2, 4.5], ids=["at once", "after slow hooks"])
@pytest.mark.parametrize("busy", [2.9, 3.1], ids=["before the end", "after it"])
def test_a_label_follows_a_clear_whose_file_says_that_it_is_busy(
    busy: float, begins: float
) -> None:
    lines = [
        hook(0, 11, "SessionStart", source="startup"),
        says(0.5, 11, "idle"),
        {"t": T0 + 1, "label": {"session_id": "s", "label": "work"}},
        hook(3, 11, "SessionEnd", reason="clear"),
        says(busy, 11, "busy"),
        hook(begins, 11, "SessionStart", source="clear", session_id="n"),
    ]
    board = Board()
    for line in sorted(lines, key=lambda line: line["t"]):
        board.fold(from_line(line))
    assert ("work", ("s",), "/dev/pts/1") == (
        board.sessions["n"].label,
        board.sessions["n"].previous,
        board.sessions["n"].tty,
    )


def test_the_last_hook_event_is_published() -> None:
    told = shown(*ASKS, says(9, 11, "busy"))["last_event"]
    assert told == {"event": "PermissionRequest", "t": T0 + 2.1}


def test_the_files_that_its_tools_changed_last_are_published() -> None:
    """Files of subagents count, by absolute path; only once the tool has succeeded."""

    def uses(t: float, name: str, tool: str, path: str, **more: str) -> Line:
        given = {"file_path": path}
        return hook(t, 11, name, tool_name=tool, tool_input=given, tool_use_id=f"e{t}", **more)

    edited = shown(
        *ASKS,
        uses(3, "PreToolUse", "Edit", "/srv/asked"),
        uses(4, "PostToolUseFailure", "Edit", "/srv/failed"),
        uses(5, "PostToolUse", "Read", "/srv/read"),
        uses(6, "PostToolUse", "Write", "relative"),
        uses(7, "PostToolUse", "Write", "/srv/new"),
        uses(8, "PostToolUse", "Edit", "/srv/old", agent_id="a1"),
        uses(9, "PostToolUse", "Edit", "/srv/new"),
    )["edited"]
    assert list(edited.items()) == [("/srv/old", T0 + 8), ("/srv/new", T0 + 9)]


def test_a_session_knows_when_its_process_started_from_another_one_in_it() -> None:
    """That is reported once: of a program that reports itself before a hook names its session.

    Of a server of several sessions, too.
    """
    board, place = Board(), {"pid": 12, "started": "470", "tty": "/dev/pts/2"}
    own = {"t": T0, "osc7501": {**place, "body": "state=working:app=codex"}}
    board.fold(from_line(own))
    for n, shared in ((1, False), (2, True)):
        hooked = {"session_id": f"s{n}", "hook_event_name": "SessionStart", "source": "startup"}
        origin = {**PLACES[12], "agent": "codex", "shared": shared}
        board.fold(from_line({"t": T0 + n, "hook": hooked, "origin": origin}))
        assert board.sessions[f"s{n}"].processes[12].started == "470"
