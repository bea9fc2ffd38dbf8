"""Evidence of other CLIs beside their hooks: logs, locks, lists, titles and a server."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any, Final

from faults.fault import Fault, Kind
from faults.files import THINGS, put, remove
from faults.junk import TEXTS, brief, changed, encoded, text, value
from faults.target import MAGIC, Target
from rig import tmux

SERVER: Final = Path(__file__).with_name("codex_server.py")
STAMP: Final = "2027-01-15T08:00:00.000Z"
THREADS: Final = tuple(f"01a1ffe9-c4e6-77a2-8c34-fc5ddbb8d97{n}" for n in range(4))
#: Lines of their logs.
LOGS: Final[Mapping[str, tuple[dict[str, Any], ...]]] = {
    "codex": (
        {"type": "session_meta", "payload": {"source": "cli"}},
        {"type": "turn_context", "payload": {"approvals_reviewer": "user", "model": "m"}},
        {"type": "event_msg", "payload": {"type": "task_started"}},
        {"type": "event_msg", "payload": {"type": "task_complete", "error": {"message": "x"}}},
        {"type": "event_msg", "payload": {"type": "turn_aborted"}},
    ),
    "gemini": (
        {"type": "error", "content": "[API Error: x]"},
        {"type": "info", "content": "Request cancelled."},
    ),
    "copilot": (
        {"type": "user.message", "data": {"content": "x"}},
        {"type": "tool.execution_start", "data": {"toolName": "bash", "toolCallId": "t1"}},
        {"type": "permission.requested", "data": {"permissionRequest": {"toolCallId": "t1"}}},
        {"type": "permission.completed", "data": {"toolCallId": "t1"}},
        {"type": "abort", "data": {}, "agentId": ""},
        {"type": "session.error", "data": {"errorType": "query", "message": "x"}},
    ),
}
#: The hook that says where a log is, by agent.
PROMPTS: Final = {"codex": "UserPromptSubmit", "gemini": "BeforeAgent", "copilot": "agentStop"}
OPENED: Final = {"schemaVersion": 1, "openedAt": STAMP, "refreshedAt": STAMP, "working": True}
TITLES: Final = (
    *("⠋ proj", "proj", "[ ! ] Action Required | proj", "[ . ] Action Required | proj"),
    *("✦  Working… (proj)", "✋  Action Required (proj)", "◇  Ready (proj)"),
    *("◐︎ Qwen - proj", "✳︎ Qwen - proj", "Qwen - proj"),
)
ASKED: Final = {"type": "active", "activeFlags": ["waitingOnApproval"]}
CHANGED: Final = {
    "method": "thread/status/changed",
    "params": {"threadId": THREADS[0], "status": ASKED},
    "emittedAtMs": 1.8e12,
}
#: What the server does instead of answering: see `codex_server.py`.
FAULTS: Final = (
    *("mute", "drip", "half a frame", "a long frame", "pings", "parts", "a long head", "no proof"),
    *("hangs up", "flood", "noise"),
)


def hook(target: Target, agent: str, event: str, pid: int, origin: str = "", **fields: Any) -> None:
    """Write a valid event of an agent."""
    payload = {"hook_event_name": event, "cwd": "/srv", **fields}
    head = f"agent={agent}\0event={event}\0pid={pid}\0{origin}\0".encode()
    target.put(MAGIC + head + json.dumps(payload).encode())


def log(random: Random) -> Fault:
    """Break lines of a log, or replace, truncate or tear the file."""
    agent = random.choice(list(LOGS))
    lines = ({**random.choice(LOGS[agent]), "timestamp": STAMP} for _ in range(5))
    raw = b"\n".join(encoded(random, changed(random, line)) for line in lines) + b"\n"
    what = random.choice([*([""] * 8), *THINGS])
    cut, session = random.random() < 0.2, f"l{random.randrange(4)}"

    def do(target: Target) -> None:
        path = target.home.root / f"{agent}-{session}.jsonl"
        if agent == "copilot":
            path = target.home.root / f".copilot/session-state/{session}/events.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
        put(path, what, raw, cut)
        told = {"session_id": session, "sessionId": session, "transcript_path": str(path)}
        hook(target, agent, PROMPTS[agent], target.sleeper(), **told)

    return Fault(f"{agent} {session}: {what or brief(raw)}{' (cut)' if cut else ''}", do)


def locks(random: Random) -> Fault:
    """Put anything among the locks of Codex's threads, and hold some; or replace their folder."""
    what = random.choice([*([""] * 4), *THINGS])
    whole = bool(what) and random.random() < 0.2
    names = [f"{random.choice([*THREADS, text(random)[:80]])}.lock" for _ in range(3)]
    many, held = random.random() < 0.1, random.random() < 0.7

    def do(target: Target) -> None:
        folder = target.home.root / ".codex/thread-writer-locks"
        with contextlib.suppress(OSError, ValueError, UnicodeError):
            if whole or folder.is_symlink() or not folder.is_dir():
                remove(folder)
            if whole:
                folder.parent.mkdir(exist_ok=True)
                THINGS[what](folder)
                return
            folder.mkdir(parents=True, exist_ok=True)
            for name in [f"{n:08}-x.lock" for n in range(1500)] if many else []:
                (folder / name).touch()
            for name in names:
                path = folder / name.replace("/", "_").replace("\0", "_")
                remove(path)
                if what:
                    THINGS[what](path)
                else:
                    _hold(target, path, held)

    return Fault(f"{what or 'locks'}{' as their folder' if whole else ''}: {names}", do)


def _hold(target: Target, path: Path, held: bool) -> None:
    """Make a lock; this process has the thread then."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    target.undone.callback(os.close, descriptor)
    if held:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def listed(random: Random) -> Fault:
    """Break the list of the sessions that Copilot has open, or replace a file of it."""
    ids = [random.choice([*THREADS, text(random)[:80]]) for _ in range(3)]
    raw = encoded(random, changed(random, dict.fromkeys(ids, OPENED)))
    what = random.choice([*([""] * 8), *THINGS])
    place = random.choice(["open-sessions-state.json", "session-state", "lock", "session"])
    number = random.choice(["PID", "PID", "PID", "0", "1", "99999999999", "-1", "²"])

    def do(target: Target) -> None:
        root = target.home.root / ".copilot"
        pid = str(target.sleeper())
        with contextlib.suppress(OSError, ValueError, UnicodeError):
            for sid in ids:
                folder = root / "session-state" / sid.replace("/", "_").replace("\0", "_")
                folder.mkdir(parents=True, exist_ok=True)
                (folder / f"inuse.{number.replace('PID', pid)}.lock").touch()
            path = root / "open-sessions-state.json"
            remove(path)
            path.write_bytes(raw)
            if what:
                at = {"lock": folder / f"inuse.{pid}.lock", "session": folder}.get(place)
                remove(at := at or root / place)
                THINGS[what](at)

    def undo(target: Target) -> None:
        with contextlib.suppress(OSError):
            remove(target.home.root / ".copilot")

    return Fault(f"{f'{what} as {place}' if what else brief(raw)}, {number}", do, undo)


def title(random: Random) -> Fault:
    """Give the terminal of a session any titles, quickly, slowly or without end."""
    agent = random.choice(["codex", "gemini", "qwen"])
    said = [random.choice(TITLES) for _ in range(3)]
    said += [random.choice([*TEXTS, text(random), random.choice(TITLES) + text(random)])[:5000]]
    random.shuffle(said)
    raw = "".join(f"\033]2;{each}\007" for each in said).encode("utf-8", "surrogatepass")
    ending = random.choice(["", "", "while :; do cat titles; sleep 0.05; done", "cat /dev/urandom"])

    def do(target: Target) -> None:
        server = tmux.Server(target.home, f"{target.unique()}.sock")
        target.undone.callback(server.close)
        (target.home.project / "titles").write_bytes(raw)
        pane = server.open(["sh", "-c", f"cat titles; {ending}; exec sleep 1000"])
        where = f"TMUX={server.socket},{server.pid},0\0TMUX_PANE={pane.id}\0"
        session = target.unique()
        hook(target, agent, "SessionStart", pane.pid, where, session_id=session)
        prompt = "BeforeAgent" if agent == "gemini" else "UserPromptSubmit"
        hook(target, agent, prompt, pane.pid, where, session_id=session, prompt="x")
        servers.append(server)

    def undo(target: Target) -> None:
        while servers:
            servers.pop().close()

    servers: list[tmux.Server] = []
    return Fault(f"{agent}: {brief(raw)} {ending}", do, undo)


def server(random: Random) -> Fault:
    """A shared server of Codex that says anything, slowly, never, or without end."""
    fault = random.choice([*FAULTS, *([""] * len(FAULTS))])
    messages = [changed(random, CHANGED) for _ in range(4)]
    result = changed(random, {"thread": {"status": ASKED}}) if random.random() < 0.5 else {}
    said = [encoded(random, random.choice([x, value(random)])) for x in messages]
    plan = {"fault": fault, "result": result, "says": [x.decode("latin-1") for x in said]}
    plan |= {"thread": THREADS[0]}

    def do(target: Target) -> None:
        folder = target.home.root / ".codex/app-server-control"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "app-server-control.sock"
        path.unlink(missing_ok=True)
        (target.home.root / "plan").write_text(json.dumps(plan))
        process = subprocess.Popen(
            ["codex", str(SERVER), str(path), str(target.home.root / "plan"), "app-server"],
            executable=sys.executable,
            env={"HOME": str(target.home.root), "PATH": os.environ["PATH"]},
            stdout=subprocess.PIPE,
        )
        running.append(process)
        target.undone.callback(process.kill)
        assert process.stdout
        assert process.stdout.readline() == b"up\n"
        for thread in THREADS[:2]:
            hook(target, "codex", "UserPromptSubmit", process.pid, session_id=thread, prompt="x")

    def undo(target: Target) -> None:
        while running:
            process = running.pop()
            process.kill()
            process.communicate()

    running: list[subprocess.Popen[bytes]] = []
    return Fault(f"{fault or 'odd'}: {brief(json.dumps(plan))}", do, undo)


KINDS = (
    Kind("log", make=log, batch=20, is_caught=True),
    Kind("locks", make=locks, batch=10, settle=2.5, is_caught=True),
    Kind("listed", make=listed, batch=10, settle=2.5, is_caught=True),
    Kind("title", make=title, batch=4, settle=2.0, is_caught=True),
    Kind("server", make=server, settle=3.0, is_caught=True),
)
