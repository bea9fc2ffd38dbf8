"""A shell: runs `bellboard` in a home of its own, and emits events of agents."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from bellboard.storage.spool import Spool
from rig import ROOT, warm
from rig.home import Home
from rig.tmux import Pane, Server
from rig.waiting import eventually

EMIT = ROOT / "hooks/emit"
Answer = subprocess.CompletedProcess[str]


def bellboard(home: Home, *args: str, code: int = 0) -> str:
    """Run a command in a home; return what it prints."""
    env = home.env | {"PYTHONPATH": str(ROOT / "rplugin/python3")}
    done = warm.run(["-m", "bellboard", *args], env=env, input="")
    assert done.returncode == code, (args, done.stdout, done.stderr)
    return str(done.stdout or done.stderr)


def run(home: Home, *args: str, code: int = 0, **env: str) -> str:
    """Run a command in the project of a home; return its output, with its errors."""
    argv = ["-m", "bellboard", *args]
    done = warm.run(argv, env={**home.env, **env}, cwd=home.project, merged=True)
    assert done.returncode == code, done.stdout
    assert "Traceback" not in done.stdout
    return done.stdout


def simulated(tmux: Server, session: str = "agent", scene: str = "api") -> Pane:
    """Open a simulated agent in a pane, which asks in its hooks and on its screen."""
    argv = [sys.executable, ROOT / "demo/agent.py", EMIT, scene]
    return tmux.open(argv, session=session, columns=90)


class Shell:
    """A shell in a home of its own: runs `bellboard`, and emits events of agents."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.env = home.env | {"PYTHONPATH": str(ROOT / "rplugin/python3"), "TZ": "UTC"}
        self.argv = (sys.executable, "-m", "bellboard")
        self.spool = Spool(home.bellboard)
        self.now = time.time()
        self.running: list[subprocess.Popen[str]] = []

    def bellboard(self, *args: str, input: str = "", code: int = 0, **env: str) -> Answer:
        """Run a command; check its exit code, and that a success prints no error."""
        done = warm.run(["-m", "bellboard", *args], env=self.env | env, input=input)
        assert done.returncode == code, done.stderr or done.stdout
        assert "Traceback" not in done.stderr
        return done

    def fails(self, *args: str, **env: str) -> str:
        """Run a command that must fail; return its message."""
        done = self.bellboard(*args, code=1, **env)
        assert done.stdout == ""
        return done.stderr

    def start(self, *args: str, **streams: Any) -> subprocess.Popen[str]:
        """Start a command that keeps running."""
        started = subprocess.Popen(
            [*self.argv, *args], env=self.env, text=True, stdout=subprocess.PIPE, **streams
        )
        self.running.append(started)
        hosts = self.home.bellboard / "hosts"
        eventually(lambda: (hosts / str(started.pid)).exists(), "a host")
        return started

    def emit(self, event: str, pid: int = 0, **payload: Any) -> None:
        """Run the hook."""
        told = {"session_id": "s", "hook_event_name": event, **payload}
        subprocess.run(
            ["sh", str(EMIT), event, str(pid)],
            env=self.env,
            input=json.dumps(told),
            text=True,
            check=True,
        )

    def emitted(self, ago: float, session: str, event: str, /, **payload: Any) -> None:
        """Write a hook event from some time ago."""
        hook = {"session_id": session, "hook_event_name": event, **payload}
        self.spool.write({"t": self.now - ago, "hook": hook, "origin": payload.pop("origin", {})})

    def sessions(self) -> dict[str, dict[str, Any]]:
        listed = json.loads(self.bellboard("list", "--json").stdout)["sessions"]
        return {p["session_id"]: p for p in listed}


@pytest.fixture
def shell(home: Home) -> Iterator[Shell]:
    made = Shell(home)
    made.spool.prepare()
    yield made
    for process in made.running:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


def fill(shell: Shell) -> None:
    """Make a session in every status that hooks can report."""
    for n, (sid, folder) in enumerate(
        {"a1": "api", "a2": "api", "b1": "web", "c1": "docs"}.items()
    ):
        shell.emitted(400 + n, sid, "SessionStart", cwd=f"/w/{folder}", session_title=f"title {n}")
        shell.emitted(390 + n, sid, "UserPromptSubmit", prompt="do it")
    ask = {"tool_name": "Bash", "tool_input": {"command": "rm -rf build"}}
    shell.emitted(131, "a1", "PermissionRequest", **ask)
    shell.emitted(320, "b1", "Stop", last_assistant_message="All done.")
    listed = [{"id": "x", "type": "shell", "command": "mkdocs serve", "status": "running"}]
    shell.emitted(370, "c1", "Stop", background_tasks=listed)
