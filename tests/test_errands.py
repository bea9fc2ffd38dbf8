"""What a host does to one session on request: to the right process and the right question."""

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
from msgspec import Raw

from bellboard.agents.claude_code.dialect.dialog import dialog_of
from bellboard.core.asked import asked_of
from bellboard.core.session import Block, Process, Session
from bellboard.hosting.errands import Errands
from bellboard.system.processes import program_of, started_of
from bellboard.witnesses.proof import is_agent
from rig.home import Home
from rig.hung_mount import HungMount
from rig.waiting import eventually

pytestmark = pytest.mark.files

SLEEP = shutil.which("sleep") or "/bin/sleep"
Run = Callable[..., subprocess.Popen[bytes]]
SCREEN = """\
────────────────────────────────────────
 Bash command
   {}

 Do you want to proceed?
 ❯ 1. Yes
   2. No
"""


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
    errands = Errands(lambda sid: s if sid == s.session_id else None, home.env)
    return asyncio.run(errands.do(what, {"session_id": s.session_id, **told}))


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


CAPTURES = Path(__file__).with_name("captures")
SHOWN: dict[str, dict[str, str]] = {
    "bash": {"command": "touch made.txt", "description": "touch made.txt"},
    "danger": dict.fromkeys(("command", "description"), "curl -s http://127.0.0.1:1/x | sh"),
    "bash_narrow": dict.fromkeys(("command", "description"), "curl -s http://127.0.0.1:1/x | sh"),
    "write": {"file_path": "/home/me/project/w.txt", "content": "x\n"},
}


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
    """It is recognized by its program."""
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
    """It is an agent with the recorded start time, but its file names another session."""
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


def test_a_folder_that_hangs_is_not_waited_for(home: Home, run: Run) -> None:
    """The session file is on a mount that does not answer: this is reported quickly."""
    mount = HungMount(home.project, home.root / "hung")
    try:
        process = run("claude", env=home.env | {"CLAUDE_CONFIG_DIR": str(mount.place)})
        mount.hang()
        begun = time.monotonic()
        reply = errand(home, session(process.pid), "stop", pid=process.pid)
        assert reply == {"ok": False, "why": "a folder that this needs does not answer"}
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


# ---------------------------------------------------------------- answer


def asks(home: Home, detail: str, screen: str, **more: Any) -> dict[str, Any]:
    """Answer yes while the terminal shows this; return the reply."""
    block = Block("permission", 1.0, tool="Bash", detail=detail, shown=True, **more)
    s = Session("s", turn="working", blocks={":": block}, tty="/dev/pts/9", cwd="/srv")
    told = {"asked_at": 1.0, "detail": detail, "yes": True}
    return errand(home, s, "answer", screen=SCREEN.format(screen).splitlines(), **told)


def test_a_question_fully_on_screen_is_answered(home: Home) -> None:
    """With the key of its plain yes, if all its rows are still there when it is pressed."""
    reply = asks(home, "touch made.txt", "touch made.txt")
    assert reply["key"] == "1"
    assert list(reply["rows"]) == SCREEN.format("touch made.txt").splitlines()


SAME = "touch " + "a" * 60
WHY = "its terminal shows a different request"
IN_PART = "the request is not shown in full here; jump there to answer"


@pytest.mark.parametrize(
    ("detail", "screen", "why"),
    [
        (SAME, SAME + " && rm -rf /", WHY),
        (SAME, SAME[:-1], WHY),
        (SAME, SAME[:50] + "b" + SAME[51:], WHY),
        ("x" * 199 + "…", "x" * 199 + "…", IN_PART),
        ("x" * 199 + "…", "x" * 300, IN_PART),
        ("curl -u ***", "curl -u ***", IN_PART),
        ("curl -u *** x", "curl -u a:b x", IN_PART),
        ("", "touch made.txt", IN_PART),
    ],
)
def test_a_request_cut_hidden_or_different_gets_no_key(
    home: Home, detail: str, screen: str, why: str
) -> None:
    """However much of it is the same."""
    assert asks(home, detail, screen) == {"ok": False, "why": why}


def test_invisible_characters_count_too(home: Home) -> None:
    """A line hides zero-width characters, but the digest covers the whole request."""
    assert asks(home, "touch x", "touch x", digest="0123456789abcdef") == {"ok": False, "why": WHY}


@pytest.mark.parametrize("version", ["2.1.76", "2.1.119", "2.1.328", "2.1.330"])
@pytest.mark.parametrize("name", SHOWN)
def test_real_dialogs_are_read_in_full(name: str, version: str) -> None:
    """Of each version, wide and narrow."""
    dialog = dialog_of((CAPTURES / version / f"{name}.txt").read_text().splitlines())
    assert dialog is not None
    given = SHOWN[name]
    detail = given.get("command") or given["file_path"]
    assert dialog.is_about(detail, asked_of(Raw(json.dumps(given).encode())), ["/home/me/project"])
    other = {**given, **{key: f"{value}x" for key, value in given.items() if key != "content"}}
    asked = asked_of(Raw(json.dumps(other).encode()))
    assert not dialog.is_about(detail, asked, ["/home/me/project"])
