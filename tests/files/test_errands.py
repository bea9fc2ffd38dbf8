"""The errands of a host for one session: to the right process and the right question."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from bellboard.core.session import Process, Session
from bellboard.system.processes import program_of, started_of
from bellboard.witnesses.proof import is_agent
from rig.home import Home
from rig.host.desk import errands
from rig.machines.hung_mount import HungMount
from rig.waiting import eventually

SLEEP = shutil.which("sleep") or "/bin/sleep"
Run = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def run(home: Home) -> Iterator[Run]:
    """run(name, env=…): start a process under that name, which only waits."""
    started: list[subprocess.Popen[bytes]] = []

    def one(name: str = "sleep", *args: str, **how: Any) -> subprocess.Popen[bytes]:
        how = {"executable": SLEEP, "env": home.env, **how}
        process = subprocess.Popen([name, *(args or ("600",))], **how)
        started.append(process)
        eventually(lambda: psutil.Process(process.pid).cmdline(), "the program's own arguments")
        return process

    yield one
    for process in started:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()


def errand(home: Home, s: Session, what: str, **told: Any) -> dict[str, Any]:
    """Run an errand, and return its reply."""
    return asyncio.run(errands(home, s).do(what, {"session_id": s.session_id, **told}))


def session(pid: int, started: str | None = None, **more: Any) -> Session:
    """Return a session that an event places in that process."""
    known = Process(pid, started_of(pid) if started is None else started, hooked=True)
    return Session("s", turn="working", processes={pid: known}, **more)


def file_of(folder: Path, pid: int, **more: Any) -> Path:
    """Write the session file of a process."""
    path = folder / "sessions" / f"{pid}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {"pid": pid, "sessionId": "s", "procStart": started_of(pid), **more}
    path.write_text(json.dumps(record))
    return path


# ---------------------------------------------------------------- stop


@pytest.mark.parametrize(
    "name", ["sleep", "bash", "claudette", "/srv/claude/server", "claude.md", "vim"]
)
def test_an_unrelated_process_is_not_stopped(home: Home, run: Run, name: str) -> None:
    """Even if the header of a hook event names it, and its start time matches."""
    process = run(name)
    reply = errand(home, session(process.pid), "stop", pid=process.pid)
    assert not reply["ok"]
    assert f"process {process.pid} does not run claude: {name} 600" == reply["why"]
    assert process.poll() is None


@pytest.mark.parametrize("name", ["claude", "/usr/local/bin/claude"])
def test_an_agent_without_a_session_file_is_stopped(home: Home, run: Run, name: str) -> None:
    """The agent is recognized by its program."""
    process = run(name)
    reply = errand(home, session(process.pid), "stop", pid=process.pid)
    assert reply == {"ok": True, "text": f"process {process.pid} has ended"}
    assert process.wait() == -signal.SIGTERM


@pytest.mark.parametrize("of", ["the host", "the process"])
def test_a_process_named_by_its_session_file_is_stopped(home: Home, run: Run, of: str) -> None:
    """Under any name: a wrapper, a renamed program."""
    own = home.root / "own"
    env = home.env if of == "the host" else home.env | {"CLAUDE_CONFIG_DIR": str(own)}
    process = run("wrapper", env=env)
    file_of(home.claude if of == "the host" else own, process.pid)
    assert errand(home, session(process.pid), "stop", pid=process.pid)["ok"]
    assert process.wait() == -signal.SIGTERM


def test_a_process_that_runs_another_session_is_not_stopped(home: Home, run: Run) -> None:
    """The start time is as recorded, but the session file names another session."""
    process = run("claude")
    file_of(home.claude, process.pid, sessionId="other")
    reply = errand(home, session(process.pid), "stop", pid=process.pid)
    assert reply == {"ok": False, "why": f"process {process.pid} runs another session"}
    assert process.poll() is None


@pytest.mark.parametrize("of", ["an earlier process", "another user", "another folder"])
def test_a_file_that_proves_nothing_is_ignored(home: Home, run: Run, of: str) -> None:
    """Of an earlier process with that id, of another user, in a folder an event names."""
    if of == "another user" and os.geteuid() != 0:
        pytest.skip("only root can be another user")
    process = run("sleep")
    more = {"procStart": "1"} if of == "an earlier process" else {}
    evil = home.root / "evil"
    file = file_of(evil if of == "another folder" else home.claude, process.pid, **more)
    if of == "another user":
        os.chown(file, 54321, 54321)
    s = session(process.pid, config_dir=str(evil))
    reply = errand(home, s, "stop", pid=process.pid)
    assert "does not run claude" in reply["why"]
    assert process.poll() is None


def test_a_reused_process_id_is_not_stopped(home: Home, run: Run) -> None:
    """Nor one of unknown start time, one that has ended, or one never recorded."""
    process = run("claude")
    for started, why in (("1", "is a different process now"), ("", "the start time of")):
        reply = errand(home, session(process.pid, started), "stop", pid=process.pid)
        assert why in reply["why"]
    for pid in (1, 0, -1, "7", True, None):
        reply = errand(home, session(process.pid), "stop", pid=pid)
        assert reply == {"ok": False, "why": f"it no longer runs as process {pid}"}
    assert process.poll() is None
    s = session(process.pid)
    process.kill()
    process.wait()
    reply = errand(home, s, "stop", pid=process.pid)
    assert reply == {"ok": False, "why": f"process {process.pid} has already ended"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_a_process_of_another_user_is_not_stopped(home: Home, run: Run) -> None:
    """Root could, but it is not ours."""
    process = run("claude", user=54321)
    reply = errand(home, session(process.pid), "stop", pid=process.pid)
    assert reply["why"] == f"process {process.pid} belongs to another user"
    assert process.poll() is None


def test_a_folder_that_hangs_is_not_waited_for(
    home: Home, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session file is on a mount: while that answers, it is read; then this is reported."""
    for name, value in home.env.items():
        monkeypatch.setenv(name, value)
    mount = HungMount(home.project, home.root / "hung")
    try:
        process = run("claude", env=home.env | {"CLAUDE_CONFIG_DIR": str(mount.place)})
        ours = errands(home, session(process.pid), environ=os.environ)
        assert asyncio.run(ours.do("stop", {"session_id": "s", "pid": process.pid}))["ok"]
        process = run("claude", env=home.env | {"CLAUDE_CONFIG_DIR": str(mount.place)})
        mount.hang()
        begun = time.monotonic()
        reply = errand(home, session(process.pid), "stop", pid=process.pid)
        assert reply == {
            "ok": False,
            "why": "timed out after 3 s: a program or a mount hangs;"
            " check your mounts, then try again",
        }
        assert time.monotonic() - begun < 20
        assert process.poll() is None
    finally:
        mount.close()


@pytest.mark.parametrize(
    ("agent", "argv", "program", "is_so"),
    [
        ("claude", ["claude"], "/usr/bin/sleep", True),
        ("claude", ["claude", "--resume"], "/home/u/.local/share/claude/versions/2.1.330", True),
        ("claude", ["/x/claude/versions/2.1.330"], "/x/claude/versions/2.1.330", True),
        ("claude", ["node", "--x", "/n/node_modules/@anthropic-ai/claude-code/cli.js"], "", True),
        ("claude", ["node", "/usr/local/bin/claude"], "/usr/bin/node", True),
        ("claude", ["x"], "/n/node_modules/@anthropic-ai/claude-code-linux-x64/claude", True),
        ("codex", ["node", "/n/node_modules/@openai/codex/bin/codex.js"], "/usr/bin/node", True),
        ("gemini", ["node", "/n/node_modules/@google/gemini-cli/dist/index.js"], "", True),
        ("kimi", ["/usr/bin/python3.12", "/home/u/.local/bin/kimi"], "/usr/bin/python3.12", True),
        ("claude", ["node", "/home/u/claude/server.js"], "/usr/bin/node", False),
        ("claude", ["node", "server.js", "claude"], "/usr/bin/node", False),
        ("claude", ["vim", "claude"], "/usr/bin/vim", False),
        ("claude", ["sh", "-c", "claude"], "/usr/bin/dash", False),
        ("claude", ["tail", "-f", "/var/log/claude"], "/usr/bin/tail", False),
        ("claude", ["codex"], "/usr/bin/codex", False),
        ("claude", [], "", False),
        ("", [""], "", False),
        (".*", ["vim"], "/usr/bin/vim", False),
    ],
)
def test_an_agent_is_recognized_by_its_program(
    agent: str, argv: list[str], program: str, is_so: bool
) -> None:
    """Native, run by node or Python, renamed; not by a word among its arguments."""
    assert is_agent(agent, argv, program) is is_so


def test_the_program_of_a_process_is_its_file(run: Run) -> None:
    """Even if the process renames itself; nothing for a process that is gone."""
    process = run("claude")
    assert Path(program_of(process.pid)).samefile(SLEEP)
    assert program_of(2**22 + 1) == ""
    assert Path(program_of(os.getpid())).samefile(sys.executable)
