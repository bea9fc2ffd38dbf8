"""The threads that Codex has open, by the locks that it holds: also before any hook runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from bellboard.agents.codex.agent import Codex
from bellboard.agents.codex.threads import locks_folder, thread_log, threads_in
from bellboard.core.session import Session
from files.test_lookout import MinimalHost, run
from rig.home import Home

FIRST, SECOND, THIRD = (f"01a1ffe9-c4e6-77a2-8c34-fc5ddbb8d97{n}" for n in range(3))
#: Locks each file that it is told of, as Codex does.
HOLDS = """
import fcntl, sys
held = []
for path in sys.stdin:
    held.append(open(path.strip(), "a"))
    fcntl.flock(held[-1], fcntl.LOCK_EX)
    print("held", flush=True)
"""


def id_at(t: float) -> str:
    """Return the id of a thread that was made then."""
    made = f"{int(t * 1000):012x}"
    return f"{made[:8]}-{made[8:]}-77a2-8c34-fc5ddbb8d970"


class Terminal:
    """A process that opens threads."""

    def __init__(self, home: Home, *arguments: str) -> None:
        self.folder = Path(locks_folder(home.env))
        self.folder.mkdir(parents=True, exist_ok=True)
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLDS, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=home.project,
            env=home.env,
        )

    def opens(self, thread: str) -> None:
        assert self.process.stdin and self.process.stdout
        print(self.folder / f"{thread}.lock", file=self.process.stdin, flush=True)
        assert self.process.stdout.readline() == "held\n"

    def hook(self, event: str, thread: str, **more: Any) -> dict[str, Any]:
        payload = {"session_id": thread, "hook_event_name": event, **more}
        return {"hook": payload, "origin": {"agent": "codex", "pid": self.process.pid}}

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def terminal(home: Home) -> Iterator[Terminal]:
    made = Terminal(home)
    yield made
    made.close()


def test_a_terminal_may_show_the_thread_that_ran_last(home: Home, terminal: Terminal) -> None:
    """So keys reach no other one, until that has its next prompt."""

    def may_show(thread: str, began: float) -> bool:
        s = Session(thread, agent="codex", began=began)
        return not Codex().unshown(s, terminal.process.pid, home.bellboard)

    first, second = (id_at(now) for now in (time.time() - 60, time.time() - 30))
    terminal.opens(first)
    assert may_show(first, time.time() - 50)
    terminal.opens(second)
    assert not may_show(first, time.time() - 50)
    assert may_show(second, time.time() - 20)
    assert may_show(first, time.time() - 10), "it had a prompt since"
    day = home.root / ".codex/sessions" / time.strftime("%Y/%m/%d")
    day.mkdir(parents=True)
    (day / f"rollout-x-{second}.jsonl").write_text("{}\n")
    assert not may_show(first, time.time() - 10)


def test_a_thread_shows_before_its_first_prompt(home: Home, terminal: Terminal) -> None:
    """With the folder that it works in; it ends with its process."""

    async def test(desk: MinimalHost) -> None:
        terminal.opens(FIRST)
        await desk.rescan()
        await desk.until(lambda: desk.statuses() == {FIRST: "idle"})
        s = desk.board.sessions[FIRST]
        assert (s.agent, s.cwd, s.hooked) == ("codex", str(home.project), False)
        terminal.opens(SECOND)  # without hooks, too
        await desk.until(lambda: desk.statuses() == {SECOND: "idle"})
        terminal.close()
        await desk.until(lambda: desk.statuses() == {})

    run(home, test)


def test_other_things_among_the_locks_hide_no_thread(terminal: Terminal) -> None:
    """Links to nothing, folders, pipes, files with odd names."""
    terminal.opens(FIRST)
    (terminal.folder / f"{SECOND}.lock").symlink_to("nothing")
    (terminal.folder / f"{THIRD}.lock").mkdir()
    os.mkfifo(terminal.folder / "01a1ffe9-pipe.lock")
    (terminal.folder / "\n.lock").touch()
    assert [thread.id for thread in threads_in(str(terminal.folder))] == [FIRST]


def test_threads_of_subagents_and_reviewers_are_not_the_users(
    home: Home, terminal: Terminal
) -> None:
    """By their logs; that of a review stays open, and is the newest."""
    for thread, source in [(FIRST, '"cli"'), (SECOND, '{"subagent":{"other":"guardian"}}')]:
        log = Path(log_folder(home), f"rollout-2026-11-21T21-01-13-{thread}.jsonl")
        log.parent.mkdir(parents=True, exist_ok=True)
        meta = f'"payload":{{"id":"{thread}","source":{source},"base_instructions":"…"}}'
        log.write_text(f'{{"type":"session_meta",{meta}}}\n')
        terminal.opens(thread)
    terminal.opens(THIRD)  # without a prompt yet
    assert [thread.id for thread in threads_in(str(terminal.folder))] == [THIRD, FIRST]


def log_folder(home: Home) -> str:
    made = int(FIRST.replace("-", "")[:12], 16) / 1000
    day = time.strftime("%Y/%m/%d", time.localtime(made))
    return f"{home.root}/.codex/sessions/{day}"


def test_a_thread_that_is_left_is_replaced_at_once(home: Home, terminal: Terminal) -> None:
    """No hook says so before the next prompt; its terminal is that of the new one."""

    async def test(desk: MinimalHost) -> None:
        terminal.opens(FIRST)
        place = {"tty": "/dev/pts/99", "nvim": "/run/nvim.sock"}
        started = terminal.hook("SessionStart", FIRST)
        started["origin"] |= place
        await desk.fold(**started)
        await desk.fold(**terminal.hook("UserPromptSubmit", FIRST))
        await desk.rescan()
        terminal.opens(SECOND)  # that of a subagent
        await desk.rescan()
        assert desk.statuses() == {FIRST: "working"}
        await desk.fold(**terminal.hook("Stop", FIRST))
        terminal.opens(THIRD)
        await desk.until(lambda: desk.statuses() == {THIRD: "idle"}, "after /clear")
        assert desk.board.sessions[THIRD].nvim == "/run/nvim.sock"
        await desk.fold(**terminal.hook("SessionStart", THIRD, source="clear"))
        await desk.fold(**terminal.hook("UserPromptSubmit", THIRD))
        assert desk.statuses() == {THIRD: "working"}
        await desk.fold(**terminal.hook("Stop", THIRD))
        await desk.fold(**terminal.hook("UserPromptSubmit", FIRST))  # resumed in its picker
        await desk.rescan()
        assert desk.statuses() == {FIRST: "working"}

    run(home, test)


def test_the_log_of_a_thread_without_hooks_is_found(home: Home, terminal: Terminal) -> None:
    """By its id, which begins with the time of its start; its folder appears with its prompt."""
    log = Path(log_folder(home))

    async def test(desk: MinimalHost) -> None:
        terminal.opens(FIRST)
        await desk.rescan()
        await desk.until(lambda: desk.statuses() == {FIRST: "idle"})
        log.mkdir(parents=True)
        (log / f"rollout-2026-11-21T21-01-13-{SECOND}.jsonl").touch()
        (log / f"rollout-2026-11-21T21-01-13-{FIRST}.jsonl").write_text(said("task_started"))
        shown = {"session_id": FIRST, "pid": terminal.process.pid}
        await desk.fold(title={**shown, "says": "busy"})
        assert desk.statuses() == {FIRST: "working"}
        with (log / f"rollout-2026-11-21T21-01-13-{FIRST}.jsonl").open("a") as file:
            file.write(said("task_complete", error={"message": "no key"}))
        await desk.fold(title={**shown, "says": "idle"})
        await desk.until(lambda: desk.statuses() == {FIRST: "error"})

    run(home, test)
    assert thread_log(str(home.root / ".codex"), "no-uuid") == ""


def said(kind: str, **more: Any) -> str:
    line = {"type": "event_msg", "payload": {"type": kind, **more}}
    return json.dumps({**line, "timestamp": f"{datetime.now(timezone.utc):%FT%T.%fZ}"}) + "\n"


def test_threads_without_a_terminal_and_odd_files_are_passed_over(home: Home) -> None:
    """Hooks report threads of the shared server and of `codex exec`."""
    (folder := Path(locks_folder(home.env))).mkdir(parents=True)
    for name in (
        ".coordination.lock",
        f"{FIRST}.lock",
        "x" * 200 + ".lock",
        "a b.lock",
        "dir.lock",
    ):
        (folder / name).touch() if name != "dir.lock" else (folder / name).mkdir()
    for argument in ("app-server", "exec"):
        server = Terminal(home, argument)
        try:
            server.opens(SECOND)
            assert threads_in(str(folder)) == []
        finally:
            server.close()
    assert threads_in("/no/such/folder") == []
    assert threads_in("odd\0path") == []
