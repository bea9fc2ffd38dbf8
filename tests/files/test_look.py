"""Commands without a host: the state as processes, session files and transcripts show it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import datetime, timezone
from typing import Any

import msgspec
import pytest

from bellboard.agents import agent as base
from bellboard.agents.registry import WITNESSED, all_agents
from bellboard.storage.store import LOOKED, Store
from bellboard.system.processes import started_of
from core.test_far import row
from rig.fixtures import Agents
from rig.host.ringing import Desktop
from rig.host.session_files import write_session_file
from rig.machines.hung_mount import HungMount
from rig.machines.mounts import unshared
from rig.shell import Shell
from rig.waiting import eventually, leniency

SID = "0f8fad5b-d9cb-469f-a165-70867728950e"


class Agent:
    """A process that stands for an agent at work, with hooks, a session file and a transcript."""

    def __init__(self, shell: Shell, sid: str = SID, ago: float = 100) -> None:
        self.shell, self.sid = shell, sid
        self.process = subprocess.Popen(["sleep", "600"])
        self.started = started_of(self.process.pid)  # hooks say that if they see no host
        self.transcript = shell.home.root / f"{sid}.jsonl"
        self.ago = ago

    def says(self, status: str, ago: float = 1) -> None:
        """Write its session file."""
        write_session_file(self.shell.home, status, self.sid, self.process.pid)
        path = self.shell.home.claude / f"sessions/{self.process.pid}.json"
        at = int((time.time() - ago) * 1000)
        record = json.loads(path.read_bytes()) | {"statusUpdatedAt": at, "updatedAt": at}
        path.write_bytes(msgspec.json.encode(record))

    def hook(self, event: str, ago: float = 0.0, **payload: Any) -> None:
        """Report an event as a hook does."""
        known = {"session_id": self.sid, "hook_event_name": event}
        known["cwd"] = str(self.shell.home.project)
        told = {**known, "transcript_path": str(self.transcript), **payload}
        origin = {"pid": self.process.pid, "agent": "claude", "started": self.started}
        self.shell.spool.write({"t": time.time() - ago, "hook": told, "origin": origin})

    def works(self) -> None:
        """Begin a turn."""
        self.hook("UserPromptSubmit", self.ago, prompt="go")
        self.says("busy", self.ago)

    def writes(self, content: list[dict[str, Any]], **more: Any) -> None:
        """Append an entry of the user to its transcript."""
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        made = {"type": "user", "uuid": f"{time.time_ns()}", "isSidechain": False, **more}
        message = {"role": "user", "content": content}
        made |= {"timestamp": now.replace("+00:00", "Z"), "message": message}
        with self.transcript.open("ab") as file:
            file.write(msgspec.json.encode(made) + b"\n")

    def has_no_file(self) -> None:
        """Remove its session file."""
        (self.shell.home.claude / f"sessions/{self.process.pid}.json").unlink()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


Start = Callable[..., Agent]


@pytest.fixture
def agents(shell: Shell) -> Iterator[Callable[..., Agent]]:
    made: list[Agent] = []

    def start(*given: Any, **how: Any) -> Agent:
        made.append(Agent(shell, *given, **how))
        return made[-1]

    yield start
    for agent in made:
        agent.end()


def statuses(shell: Shell) -> dict[str, str]:
    return {sid: p["status"] for sid, p in shell.sessions().items()}


def moves(shell: Shell) -> list[tuple[str, str]]:
    """Return the changes of status so far."""
    told = shell.bellboard("history", "--json").stdout.splitlines()
    return [(c["from"], c["to"]) for c in map(json.loads, told)]


# ---------------------------------------------------------------- what happened meanwhile


def killed(agent: Agent) -> None:
    agent.end()


def esc(agent: Agent) -> None:
    agent.says("idle")


def denied(agent: Agent) -> None:
    """Only the transcript says so, and no session file."""
    agent.has_no_file()
    refused = {"type": "tool_result", "tool_use_id": "t1", "is_error": True}
    refused["content"] = "The user doesn't want to proceed with this tool use."
    agent.writes([refused], toolDenialKind="user-rejected")
    agent.writes([{"type": "text", "text": "[Request interrupted by user for tool use]"}])


def replaced(agent: Agent) -> None:
    """Another process has the pid of the agent."""
    agent.has_no_file()
    process = {"pid": agent.process.pid, "alive": True, "started": "1"}
    agent.shell.spool.write({"t": time.time() - 50, "process": process})


def finished(agent: Agent) -> None:
    agent.says("idle", 2)
    agent.hook("Stop", 2, last_assistant_message="done")


def asks(agent: Agent) -> None:
    agent.says("waiting")


SCENES: dict[Callable[[Agent], None], str | None] = {
    killed: None,
    esc: "idle",
    denied: "idle",
    replaced: None,
    finished: "completed",
    asks: "blocked",
}


def test_an_agent_that_no_host_and_no_command_ever_saw_is_known_to_be_dead(
    shell: Shell, agents: Start
) -> None:
    """Hooks report the agent's start, if they see no host."""
    agent = agents()
    shell.emit("UserPromptSubmit", agent.process.pid, prompt="go", cwd="/w/api")
    agent.end()
    assert shell.bellboard("status").stdout == ""
    assert moves(shell) == [(None, "working"), ("working", None)]


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_what_happened_without_a_host_is_seen(
    scene: Callable[[Agent], None], shell: Shell, agents: Start
) -> None:
    """By the first command after it."""
    agent, wanted = agents(), SCENES[scene]
    agent.works()
    if scene is denied:
        ask = {"tool_name": "Bash", "tool_input": {"command": "make"}}
        agent.hook("PermissionRequest", 60, **ask)
        agent.says("waiting", 60)
    before = "blocked" if scene is denied else "working"
    assert statuses(shell) == {SID: before}
    scene(agent)
    assert statuses(shell) == ({SID: wanted} if wanted else {})


def test_a_session_that_started_before_the_hooks_is_found(shell: Shell, agents: Start) -> None:
    agents().says("busy", 50)
    assert shell.bellboard("status").stdout == "*1\n"
    told = shell.sessions()[SID]
    assert told["status"] == "working" and told["verified"] > time.time() - 30


def test_work_that_nothing_proves_is_unknown_and_says_for_how_long(
    shell: Shell, agents: Start
) -> None:
    """So it is after the start of a host; proven work has no detour in its history."""
    proven, alone = agents(), agents("other")
    proven.works()
    alone.hook("UserPromptSubmit", 400, prompt="go")
    assert statuses(shell) == {SID: "working", "other": "unknown"}
    told = shell.sessions()["other"]
    assert told["verified"] == told["stale_since"] == told["updated"] < time.time() - 300
    assert "stale" in told["markers"] and "stale 6m" in shell.bellboard("list").stdout
    assert shell.bellboard("status").stdout == "~1 *1  stale 6m\n"
    here = ("status", "--dir", str(shell.home.project))
    assert shell.bellboard(*here).stdout == "unknown  stale 6m\n"
    history = shell.bellboard("history", SID, "--json").stdout
    assert "unknown" not in history and "working" in history


def test_a_second_look_folds_nothing_again(shell: Shell, agents: Start) -> None:
    """However often a status bar asks, the log of a session does not grow."""
    agents().works()
    story = (shell.bellboard("list"), shell.bellboard("explain", SID).stdout)[1]
    for command in ("list", "status", "list"):
        shell.bellboard(command)
    assert shell.bellboard("explain", SID).stdout == story


def test_commands_at_once_share_a_look_and_fold_once(shell: Shell, agents: Start) -> None:
    """Several status lines poll each second; each of them must be right."""
    agent = agents()
    agent.works()
    shell.bellboard("list")
    agent.says("idle", 3)
    argv = [*shell.argv, "status"]
    bars = [
        subprocess.Popen(argv, env=shell.env, stdout=subprocess.PIPE, text=True) for _ in range(8)
    ]
    shown = [bar.communicate(timeout=60)[0] for bar in bars]
    assert set(shown) <= {"*1\n", ".1\n"}  # the look of `list` may be shared
    eventually(lambda: shell.bellboard("status").stdout == ".1\n")
    assert moves(shell) == [(None, "working"), ("working", "idle")]
    assert shell.bellboard("explain", SID).stdout.count("registry idle") <= 2


def test_a_host_that_starts_meanwhile_is_not_disturbed(shell: Shell, agents: Start) -> None:
    """Later changes are announced once, and earlier changes are not."""
    desktop = Desktop(shell.home)
    asks, later = agents("asks"), agents("later")
    asks.works()
    later.works()
    shell.bellboard("list")
    asks.says("waiting", 2)
    listing = subprocess.Popen([*shell.argv, "list"], env=shell.env, stdout=subprocess.DEVNULL)
    ladder = {"notify": False, "desktop": 0.01, "command": False}
    settings = {"desktop": "notify-send", "blocked": ladder, "min_turn": 0}
    shell.start("serve", "--notices", json.dumps(settings))
    assert listing.wait(60) == 0
    eventually(lambda: statuses(shell) == {"asks": "blocked", "later": "working"})
    assert desktop.titles == []
    later.hook("PermissionRequest", tool_name="Bash", tool_input={"command": "make"})
    later.says("waiting", 0)
    eventually(lambda: desktop.titles, "a notification")
    shell.bellboard("list")
    assert desktop.titles == ["project needs you"]


def test_while_a_host_runs_no_command_looks(shell: Shell, agents: Start) -> None:
    """Not while it is suspended with its editor: then it knows nothing."""
    agent = agents()
    agent.works()
    host = shell.start("serve")
    eventually(lambda: statuses(shell) == {SID: "working"})
    shell.bellboard("list")
    with closing(Store(shell.home.bellboard)) as store:
        assert store.option(LOOKED) is None
    host.send_signal(signal.SIGSTOP)
    agent.end()
    assert statuses(shell) == {}


def test_the_first_picture_of_watch_is_true(shell: Shell, agents: Start) -> None:
    """A session without a process is not shown as working for a moment."""
    gone, works = agents("gone"), agents()
    gone.works()
    works.works()
    shell.bellboard("status")
    gone.end()
    ours, theirs = os.openpty()
    env = shell.env | {"TERM": "xterm", "COLUMNS": "", "LINES": ""}
    argv = [*shell.argv, "watch"]
    watch = subprocess.Popen(argv, env=env, stdin=theirs, stdout=theirs, start_new_session=True)
    os.close(theirs)
    shown = b""
    while b"1 session" not in shown and b"2 sessions" not in shown:
        shown += os.read(ours, 1 << 16)
    os.write(ours, b"q")
    assert b"1 session" in shown and b"*1" in shown
    with suppress(OSError):  # it has closed its end
        while os.read(ours, 1 << 16):
            pass
    assert watch.wait(60) == 0
    os.close(ours)


def test_a_command_in_a_sandbox_takes_nobody_for_dead(shell: Shell, agents: Start) -> None:
    """In the statusline of an agent in a sandbox, pids of other agents mean nothing."""
    agents().works()
    shell.bellboard("list")
    with closing(Store(shell.home.bellboard)) as store, store.transaction() as tx:
        tx.set_option(LOOKED, {}, 0, 0.0)  # long ago
    argv = [*unshared("--pid"), "--fork", "--kill-child", "--mount-proc", *shell.argv, "status"]
    inside = subprocess.run(argv, env=shell.env, capture_output=True, text=True, timeout=60)
    assert inside.stdout.startswith("*1  stale "), inside
    assert statuses(shell) == {SID: "working"}


def test_sessions_of_other_machines_are_old_without_a_host(shell: Shell) -> None:
    """Nobody follows their machines."""
    shell.spool.write({"t": time.time() - 400, "far": {"machine": "dev", "row": row()}})
    (told,) = shell.sessions().values()
    assert "stale" in told["markers"] and told["verified"] == told["updated"]


def test_a_transcript_that_hangs_costs_a_moment_and_is_marked(shell: Shell, agents: Start) -> None:
    hangs, works = agents("hangs"), agents()
    mount = HungMount(shell.home.project, shell.home.root / "hung")
    try:
        hangs.transcript = mount.place / "hangs.jsonl"
        for agent in (hangs, works):
            agent.works()
        mount.hang()
        began = time.monotonic()
        told = shell.sessions()
        assert time.monotonic() < began + 3 * leniency()
        assert {sid: "stale" in p["markers"] for sid, p in told.items()} == {
            "hangs": True,
            SID: False,
        }
    finally:
        mount.close()


def test_what_keeps_a_command_from_looking_is_no_failure(shell: Shell, agents: Start) -> None:
    """No descriptors are left: the known state is shown, and marked."""
    agents().works()
    shell.bellboard("list")
    argv = ["sh", "-c", 'ulimit -n 12; exec "$@"', "sh", *shell.argv, "list"]
    done = subprocess.run(argv, env=shell.env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "working  stale" in done.stdout


def test_fifty_sessions_take_a_moment(shell: Shell, agents: Start) -> None:
    """Most of it is the start of Python."""
    for n in range(50):
        agents(f"s{n}").works()
    shell.bellboard("status")

    def took(*command: str) -> float:
        began = time.monotonic()
        shell.bellboard(*command)
        return time.monotonic() - began

    looks, without = zip(*((took("list"), took("history")) for _ in range(5)), strict=True)
    assert min(looks) < min(without) + 0.15 * leniency(1.0)


@pytest.mark.live
def test_the_real_cli_is_seen_by_commands_alone(shell: Shell, claude: Agents) -> None:
    """The CLI works, asks, is denied, works again and is killed, and no hook says so."""
    agent = claude()
    now = lambda: [*statuses(shell).values()]  # noqa: E731
    eventually(lambda: now() == ["idle"])
    agent.submit("play:perm please")
    agent.becomes("waiting")
    assert now() == ["blocked"]
    agent.press("Escape")
    agent.becomes("idle")
    eventually(lambda: now() == ["idle"])
    agent.submit("play:slow please")
    agent.becomes("busy")
    assert eventually(lambda: now() == ["working"])
    os.kill(agent.pid, signal.SIGKILL)
    assert eventually(lambda: now() == [], within=5 * leniency())
    assert "unknown" not in {after for _, after in moves(shell)}


def test_only_clis_that_show_more_than_hooks_are_looked_at() -> None:
    """The others are not even loaded."""
    assert {cli.key for cli in all_agents() if type(cli).observing is not base.Agent.observing} == {
        *WITNESSED
    }
