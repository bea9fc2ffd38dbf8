"""GitHub Copilot CLI beside its hooks: its log says what no hook does, its files what is open."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from bellboard.agents.copilot.sessions import LIMIT, Opened, opened_in
from bellboard.core.deadlines import LEADS
from files.test_lookout import MinimalHost, run
from rig.home import Home

SID = "0f8fad5b-d9cb-469f-a165-70867728950e"


@pytest.fixture
def sleeper() -> Iterator[int]:
    """A process that stays alive."""
    with subprocess.Popen(["sleep", "60"]) as child:
        yield child.pid
        child.kill()


def folder_of(home: Home) -> Path:
    folder = home.root / ".copilot" / "session-state" / SID
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def stamp() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


def opens(home: Home, pid: int, works: bool = False) -> None:
    """Write the files of Copilot while a session is open."""
    (folder_of(home) / f"inuse.{pid}.lock").write_text(str(pid))
    listed = {SID: {"schemaVersion": 1, "working": works, "refreshedAt": stamp()}}
    (home.root / ".copilot" / "open-sessions-state.json").write_text(json.dumps(listed))


def logs(home: Home, type: str, **data: Any) -> None:
    """Append to the log of the session."""
    with (folder_of(home) / "events.jsonl").open("a") as log:
        log.write(json.dumps({"type": type, "data": data, "timestamp": stamp()}) + "\n")


def hook(event: str, pid: int, **payload: Any) -> dict[str, Any]:
    origin = {"agent": "copilot", "pid": pid}
    return {"event": event, "hook": {"sessionId": SID, **payload}, "origin": origin}


def test_its_log_says_that_a_permission_was_granted_and_a_turn_interrupted(
    home: Home, sleeper: int
) -> None:
    """No hook does.  The log appears with the first turn."""

    async def test(desk: MinimalHost) -> None:
        folder_of(home)
        await desk.fold(**hook("sessionStart", sleeper, source="new"))
        await desk.fold(**hook("userPromptSubmitted", sleeper, prompt="do it"))
        assert desk.status() == "working"
        asks = {"notification_type": "permission_prompt", "message": "Run command: make"}
        await desk.fold(**hook("notification", sleeper, **asks))
        logs(home, "permission.requested", permissionRequest={"toolCallId": "c1"})
        await desk.until(lambda: desk.status() == "blocked")
        logs(home, "permission.completed", toolCallId="c1", result={"kind": "approved"})
        await desk.until(lambda: desk.status() == "working")
        logs(home, "abort", reason="user_abort")
        await desk.until(lambda: desk.status() == "idle")

    run(home, test)


def test_its_log_says_that_it_gave_up(home: Home, sleeper: int) -> None:
    async def test(desk: MinimalHost) -> None:
        logs(home, "session.start", sessionId=SID)
        await desk.fold(**hook("userPromptSubmitted", sleeper, prompt="do it"))
        logs(home, "session.error", errorType="authentication", message="no key")
        await desk.until(lambda: desk.status() == "error")
        assert desk.board.sessions[SID].error == "authentication: no key"

    run(home, test)


def test_only_the_list_says_that_it_was_stopped_between_two_tries(home: Home, sleeper: int) -> None:
    """Neither a hook nor its log does; the list that was true before the turn ends nothing."""
    folder_of(home)

    async def test(desk: MinimalHost) -> None:
        opens(home, sleeper)
        await desk.fold(**hook("sessionStart", sleeper, source="new"))
        await desk.fold(**hook("userPromptSubmitted", sleeper, prompt="do it"))
        await desk.fold(**hook("errorOccurred", sleeper, error={"message": "500"}))
        await desk.rescan()
        await desk.until(lambda: "registry" in desk.kinds())
        assert desk.status() == "working"
        opens(home, sleeper, works=True)
        opens(home, sleeper)
        await desk.until(lambda: desk.status() == "idle")
        assert desk.board.sessions[SID].interrupted

    run(home, test)


def test_its_log_may_say_a_moment_after_the_list_that_it_gave_up(home: Home, sleeper: int) -> None:
    """The session was never interrupted then."""
    folder_of(home)

    async def test(desk: MinimalHost) -> None:
        logs(home, "session.start", sessionId=SID)
        await desk.fold(**hook("userPromptSubmitted", sleeper, prompt="do it"))
        await desk.fold(**hook("errorOccurred", sleeper, error={"message": "500"}))
        opens(home, sleeper)
        logs(home, "session.error", errorType="query", message="500")
        seen = {desk.status()}
        await desk.until(lambda: seen.add(desk.status()) or "error" in seen)
        assert seen == {"working", "error"}

    run(home, test)


def test_a_terminal_without_a_prompt_is_listed(home: Home, sleeper: int) -> None:
    """The first hook comes with the first prompt, for the same session."""

    async def test(desk: MinimalHost) -> None:
        opens(home, sleeper)
        await desk.rescan()
        await desk.until(lambda: desk.statuses() == {SID: "idle"})
        await desk.fold(**hook("sessionStart", sleeper, source="new"))
        await desk.fold(**hook("userPromptSubmitted", sleeper, prompt="do it"))
        assert desk.statuses() == {SID: "working"}
        assert desk.board.sessions[SID].agent == "copilot"

    run(home, test)


def test_a_session_without_hooks_that_works_is_followed(home: Home, sleeper: int) -> None:
    """For example, a session that was open before the hooks were installed."""

    async def test(desk: MinimalHost) -> None:
        opens(home, sleeper)
        await desk.rescan()
        await desk.until(lambda: desk.statuses() == {SID: "idle"})
        logs(home, "user.message", content="do it")
        opens(home, sleeper, works=True)
        await desk.rescan()
        await desk.until(lambda: desk.status() == "working")
        logs(home, "session.error", errorType="query", message="400")
        opens(home, sleeper)
        await desk.until(lambda: desk.status() == "error")

    run(home, test)


#: The last entry of a turn → the status afterwards.
ENDS: dict[str, tuple[str, dict[str, Any], str]] = {
    "its last words": ("assistant.message", {"content": "Done", "toolRequests": []}, "completed"),
    "Esc": ("abort", {"reason": "user_abort"}, "idle"),
    "it gave up": ("session.error", {"errorType": "query", "message": "400"}, "error"),
    "nothing": ("assistant.turn_end", {}, "idle"),
}


@pytest.mark.parametrize("end", ENDS)
def test_without_hooks_its_files_say_how_each_turn_ended(
    end: str, home: Home, sleeper: int
) -> None:
    """The list states that it rests, and the log says how that came: three turns in a row."""
    kind, data, status = ENDS[end]

    async def test(desk: MinimalHost) -> None:
        opens(home, sleeper)
        await desk.rescan()
        await desk.until(lambda: desk.statuses() == {SID: "idle"})
        for turn in range(3):
            logs(home, "user.message", content="do it", interactionId=f"turn {turn}")
            opens(home, sleeper, works=True)
            await desk.until(lambda: desk.status() == "working")
            logs(home, "assistant.message", content="First", toolRequests=[{"toolCallId": "c"}])
            logs(home, kind, **data)
            opens(home, sleeper)
            await desk.until(lambda: desk.status() == status)

    run(home, test)


#: Entries that ask without hooks → the entry that answers.
ASKS: dict[str, tuple[str, dict[str, Any]]] = {
    "permission.requested": ("permission.completed", {"permissionRequest": {"toolCallId": "c"}}),
    "tool.execution_start": ("human_response.recorded", {"toolName": "ask_user"}),
}


@pytest.mark.parametrize("asks", ASKS)
def test_without_hooks_its_log_says_what_it_asks_while_the_list_says_that_it_works(
    asks: str, home: Home, sleeper: int
) -> None:
    """A Neovim that is opened only then shows the question, too, for as long as it is open."""
    answer, data = ASKS[asks]
    opens(home, sleeper)
    logs(home, "user.message", content="do it")
    opens(home, sleeper, works=True)
    logs(home, asks, toolCallId="c", **data)

    async def test(desk: MinimalHost) -> None:
        await desk.rescan()
        await desk.until(lambda: desk.status() == "blocked")
        led = time.monotonic() + LEADS
        await desk.until(lambda: time.monotonic() > led + 0.5)
        assert desk.status() == "blocked"
        logs(home, answer, toolCallId="c")
        await desk.until(lambda: desk.status() == "working")
        logs(home, "assistant.message", content="Done", toolRequests=[])
        opens(home, sleeper)
        await desk.until(lambda: desk.status() == "completed")

    run(home, test)


def test_files_left_by_a_crash_are_not_listed_as_sessions(home: Home, sleeper: int) -> None:
    """A process has to be alive, and older than the lock that names it."""
    root = home.root / ".copilot"
    opens(home, sleeper)
    [opened] = opened_in(str(root))
    since = opened.record["refreshedAt"]
    told = {"sessionId": SID, "working": False, "refreshedAt": since}
    assert opened == Opened(sleeper, told)
    lock = folder_of(home) / f"inuse.{sleeper}.lock"
    os.utime(lock, (time.time() - 3600, time.time() - 3600))
    assert opened_in(str(root)) == []
    lock.rename(folder_of(home) / "inuse.999999999.lock")
    assert opened_in(str(root)) == []


@pytest.mark.parametrize(
    "content",
    [b"", b"\0" * 99, b"[]", b"{", b'{"../..": 1}', b'{"a\\u0000b": {}}', b'{"x": 1}', b"9" * 999],
)
def test_a_damaged_list_names_no_session(home: Home, content: bytes) -> None:
    root = home.root / ".copilot"
    root.mkdir()
    (root / "open-sessions-state.json").write_bytes(content)
    assert opened_in(str(root)) == []


def test_a_list_that_is_endless_or_not_a_file_is_ignored(home: Home) -> None:
    root = home.root / ".copilot"
    root.mkdir()
    path = root / "open-sessions-state.json"
    path.mkdir()
    assert opened_in(str(root)) == []
    path.rmdir()
    os.mkfifo(path)
    assert opened_in(str(root)) == []
    path.unlink()
    path.write_bytes(b'{"' + b"x" * LIMIT + b'": {}}')
    assert opened_in(str(root)) == []


def test_after_clear_its_process_has_another_session(home: Home, sleeper: int) -> None:
    """The new session is listed at once, even if the list changes before the hook runs."""

    async def test(desk: MinimalHost) -> None:
        opens(home, sleeper)
        await desk.fold(**hook("sessionStart", sleeper, source="new"))
        await desk.fold(**hook("userPromptSubmitted", sleeper, prompt="do it"))
        await desk.fold(**hook("agentStop", sleeper, stopReason="end_turn"))
        other = SID.replace("0", "1")
        folder = folder_of(home).with_name(other)
        folder.mkdir()
        (folder / f"inuse.{sleeper}.lock").write_text(str(sleeper))
        listed = {other: {"schemaVersion": 1, "working": False}}
        (home.root / ".copilot" / "open-sessions-state.json").write_text(json.dumps(listed))
        await desk.rescan()
        await desk.until(lambda: desk.statuses() == {other: "idle"})
        await desk.fold(**hook("sessionEnd", sleeper, reason="user_exit"))
        assert desk.statuses() == {other: "idle"}

    run(home, test)
