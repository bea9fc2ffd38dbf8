"""A host that starts late: sessions that already run, and what happened unwatched."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bellboard.storage.spool import Spool
from bellboard.system.processes import began_at, children_of
from rig import ROOT
from rig.agents.agent import EVENTS, Agent
from rig.agents.api import Api
from rig.fixtures import Agents
from rig.home import Home
from rig.host.hosting import RecordedHost, made, opened
from rig.waiting import eventually

EMIT = ROOT / "hooks" / "emit"
GENEROUS = 15.0  # seconds: half of a slow scan; it takes 0.25 s on an idle machine
Start = Callable[..., RecordedHost]


def shows(host: RecordedHost, expected: dict[str, str]) -> bool:
    """Return True; raise AssertionError with what it shows instead."""
    assert host.shown == expected
    return True


def is_at(host: RecordedHost, sid: str, agent: Agent) -> bool:
    """Return whether its published terminal is that of its process."""
    socket = str(agent.pane.server.socket)
    place = {"pid": agent.pid, "tty": agent.pane.tty, "tmux": socket, "pane": agent.pane.id}
    return place.items() <= host.sessions[sid].items()


@pytest.mark.live
def test_running_sessions_are_found_after_installing(
    claude: Agents, home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three sessions already run, one of them blocked: all are listed as they are, at once."""
    working, blocked, idle = claude(), claude(), claude()
    working.submit("play:slow please")
    blocked.submit("play:perm please")
    working.becomes("busy")
    blocked.becomes("waiting")
    idle.becomes("idle")
    agents = {"working": working, "blocked": blocked, "idle": idle}
    expected = {str(agent.registry()["sessionId"]): status for status, agent in agents.items()}
    begun = time.monotonic()
    host = RecordedHost(home)
    try:
        eventually(lambda: host.shown == expected, "all three, as they are")
        took = time.monotonic() - begun
        with capsys.disabled():
            sys.stdout.write(f"\nthree sessions that ran before: listed after {took:.2f} s\n")
        assert took < GENEROUS
        for sid, status in expected.items():
            eventually(partial(is_at, host, sid, agents[status]), f"where {sid} is")
        assert [] == host.live
    finally:
        host.kill()


def our_hooks() -> dict[str, Any]:
    """Return settings with our hook for the events that every CLI knows."""
    command = f'set -- {{}} "$PPID"; . {EMIT}'
    return {
        "hooks": {
            event: [{"hooks": [{"type": "command", "command": command.format(event)}]}]
            for event in EVENTS["2.0.76"].split()
        }
    }


@pytest.mark.live
@pytest.mark.parametrize("hooked", [True, False], ids=["with hooks", "without hooks"])
def test_unwatched_changes_are_shown_and_not_announced(
    claude: Agents, home: Home, api: Api, start: Start, hooked: bool
) -> None:
    """Sessions finish, ask, work on and are killed; then a host starts again."""
    settings = our_hooks() if hooked else None
    names = ("finishes", "asks", "works on", "is killed")
    agents = {name: claude(settings=settings) for name in names}
    sids = {name: str(agent.becomes("idle")["sessionId"]) for name, agent in agents.items()}
    log = home.root / "callbacks"
    on = {"transition": ["sh", "-c", f'echo "$3 $2" >>{log}', "sh"]}
    first = start("first", on=on)
    eventually(lambda: set(first.shown) == set(sids.values()), "all four")
    api.hold()
    plays = ("text", "perm", "hang", "hang")  # however long a busy machine takes
    for agent, play in zip(agents.values(), plays, strict=True):
        agent.submit(f"play:{play} please")
        agent.becomes("busy")
    eventually(lambda: set(first.shown.values()) == {"working"}, "all at work")
    told = {(sid, "working") for sid in sids.values()}
    eventually(lambda: log_of(log) == told, "the callbacks of that")
    first.kill()

    api.release()
    os.kill(agents["is killed"].pid, signal.SIGKILL)
    agents["finishes"].becomes("idle")
    agents["asks"].becomes("waiting")
    if hooked:
        spool = home.bellboard / "spool" / "new"
        eventually(lambda: [*spool.glob("*.PermissionRequest")], "the question's hook")
    asked_at = time.time()
    eventually(lambda: time.time() > asked_at + 1, "a question from before the host")
    second = start("second", on=on)
    expected = {
        sids["finishes"]: "completed",
        sids["asks"]: "blocked",
        sids["works on"]: "working",
    }
    eventually(partial(shows, second, expected), "what became of them")

    agents["finishes"].submit("play:slow please")  # only what follows is announced
    next_one = (sids["finishes"], "working")
    eventually(lambda: next_one in second.live, "the next change")
    assert [next_one] == second.live
    eventually(lambda: log_of(log) == told, "no other callback")
    assert expected | dict([next_one]) == second.shown


def log_of(path: Path) -> set[tuple[str, str]]:
    """Return the callbacks that ran."""
    rows = path.read_text().splitlines() if path.exists() else []
    return {(sid, to) for sid, to in (row.split() for row in rows)}


# Without the CLI: what a host cannot prove, and what it can


SERVER = """
import socket, sys, time
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
time.sleep(300)
"""


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """Start a program that listens on a port."""
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE) as child:
        yield child
        child.kill()


def emit_before(spool: Spool, pid: int, event: str, ago: float, **more: Any) -> None:
    """Write a hook event of that process from some time ago."""
    payload = {"session_id": "s", "hook_event_name": event, "cwd": "/srv", **more}
    t = time.time() - ago
    spool.write({"t": t, "arrived": t, "hook": payload, "origin": {"pid": pid}})


def test_without_session_files_it_is_unknown_until_proven(
    home: Home, start: Start, process: subprocess.Popen[bytes]
) -> None:
    """The session worked before the gap; then the transcript shows its end, silently."""
    spool = made(home.bellboard)
    path = home.root / "transcript.jsonl"
    emit_before(spool, process.pid, "UserPromptSubmit", 300, transcript_path=str(path), prompt="go")
    host = start()
    eventually(lambda: host.shown == {"s": "unknown"}, "unknown")
    host.kill()
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 60))
    message = {"content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn"}
    path.write_text(json.dumps({"type": "assistant", "timestamp": stamp, "message": message}))
    with path.open("a") as file:
        file.write("\n")
    again = start("again")
    eventually(lambda: again.shown == {"s": "completed"}, "the end, from the transcript")
    assert [] == again.live


def test_a_session_that_died_unwatched_disappears_silently(
    home: Home, start: Start, process: subprocess.Popen[bytes]
) -> None:
    """Its process id may now belong to another process."""
    assert process.stdout is not None
    process.stdout.readline()  # it listens now
    spool = made(home.bellboard)
    emit_before(spool, process.pid, "UserPromptSubmit", 300, prompt="go")
    host = start()
    eventually(lambda: host.sessions.get("s", {}).get("ports"), "it is known to run")
    host.kill()
    process.kill()
    process.wait()
    again = start("again")
    eventually(lambda: again.shown == {}, "it is gone")
    assert [] == again.live


def test_a_sessions_listening_ports_are_found(
    home: Home, start: Start, process: subprocess.Popen[bytes]
) -> None:
    """Ports of its child processes count as well."""
    assert process.stdout is not None
    port = int(process.stdout.readline())
    emit_before(made(home.bellboard), process.pid, "SessionStart", 5, source="startup")
    host = start()
    eventually(lambda: host.sessions.get("s", {}).get("ports") == [port], "its port")


@pytest.mark.parametrize("runs", [True, False], ids=["it runs", "it waits"])
def test_a_slow_tool_with_a_child_process_waits_for_no_approval(
    home: Home, start: Start, runs: bool
) -> None:
    """The child must be as young as the tool; older children prove nothing."""
    outer = "import subprocess, sys, time; subprocess.Popen(['sleep', '300']); print(flush=True); "
    outer += "sys.stdin.readline(); subprocess.Popen(['sleep', '300']); time.sleep(300)"
    how: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", outer], start_new_session=True, **how) as agent:
        try:
            assert agent.stdin and agent.stdout
            agent.stdout.readline()
            eventually(lambda: time.time() > (began_at(agent.pid) or 0) + 3, "older children")
            host = start(options={"approval": {"slow": 6.0}})
            if runs:
                agent.stdin.write(b"\n")
                agent.stdin.flush()
            count = 1 + runs
            eventually(lambda: len(children_of(agent.pid)) == count, "its children")
            spool = made(home.bellboard)
            ago = time.time() - max(began_at(pid) or 0 for pid in children_of(agent.pid)[1:] or [0])
            tool = {"tool_name": "Bash", "tool_input": {"command": "make"}, "tool_use_id": "t"}
            emit_before(spool, agent.pid, "UserPromptSubmit", ago if runs else 0, prompt="go")
            emit_before(spool, agent.pid, "PreToolUse", ago if runs else 0, **tool)
            eventually(lambda: host.shown, "the session")
            rule = ("suspect", not runs)
            eventually(lambda: rule in rules(home), f"it comes to {rule}")
            expected = {"s": "working" if runs else "blocked"}
            eventually(lambda: host.shown == expected, "the result")
        finally:
            os.killpg(agent.pid, signal.SIGKILL)


def rules(home: Home) -> set[tuple[str, bool]]:
    """Return the rules that were tried, and whether they applied."""
    with opened(home.bellboard) as shared:
        return {(row.rule, row.taken) for row in shared.store.log()}
