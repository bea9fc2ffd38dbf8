"""Our settings and our plugin, read by the real CLI, new and old."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from rig import ROOT, warm
from rig.agents.agent import Agent
from rig.fetched import claude_code
from rig.fixtures import Agents
from rig.home import Home
from rig.host.hosting import from_files, opened
from rig.waiting import PATIENCE, eventually

TURN = ["idle", "working", "blocked", "working", "completed", None]
COMPLAINT = re.compile(
    r"(?i)hook (error|failed)|bellboard|settings error|invalid|not found|no such file"
)


def bellboard(home: Home, *args: str, checkout: Path = ROOT) -> str:
    """Run `bellboard` from that checkout."""
    env = home.env | {"PYTHONPATH": str(checkout / "rplugin/python3")}
    done = subprocess.run(
        [sys.executable, "-m", "bellboard", *args],
        env=env,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.fixture
def host(home: Home) -> Iterator[None]:
    """Start a host of this home."""
    running = warm.Program(["-m", "bellboard", "serve"], env=home.env)
    try:
        eventually(lambda: any((home.bellboard / "hosts").glob("*")), "a host")
        yield
    finally:
        running.terminate()
        running.wait(PATIENCE)


def turn(agent: Agent, home: Home) -> None:
    """Play a turn whose permission is given once the board shows it."""
    agent.submit("play:perm please")
    agent.happens("PermissionRequest")
    eventually(lambda: statuses(home, agent)[-1:] == ["blocked"], "the question on the board")
    (shown,) = json.loads(bellboard(home, "list", "--json"))["sessions"]
    assert shown["detail"] == "touch made.txt"
    agent.answer("Enter")
    agent.happens("Stop")
    agent.exit()
    agent.happens("SessionEnd")


def counted(home: Home) -> Counter[str]:
    """Return the hook events that a host has folded."""
    with opened(home.bellboard) as shared:
        log = from_files(shared.store.log())
        return Counter(x.event.name for x in log if x.event.from_hook and "twice" not in x.why)


def statuses(home: Home, agent: Agent) -> list[str | None]:
    """Return the agent's statuses; its process may have been found before its hooks."""
    sid = agent.happens("SessionStart")["session_id"]
    with opened(home.bellboard) as shared:
        return [c.after for c in shared.store.history() if c.session_id == sid]


def expected(agent: Agent, home: Home) -> Counter[str]:
    """Return the events that another tool's hooks received, of those that ours are for."""
    hooks = json.loads((home.claude / "settings.json").read_text())["hooks"]
    ours = {event for event, groups in hooks.items() if "/board/emit" in json.dumps(groups)}
    return Counter(name for p in agent.events() if (name := p["hook_event_name"]) in ours)


@pytest.fixture
def plugged(claude: Agents, home: Home, host: None) -> Agent:
    """Start the CLI with this repository as its plugin."""
    env = {"BELLBOARD_HOME": str(home.bellboard)}
    return claude("--plugin-dir", str(ROOT), env=env, cwd=home.project)


@pytest.mark.smoke
def test_a_permission_is_seen_with_the_plugin(home: Home, plugged: Agent) -> None:
    turn(plugged, home)
    eventually(lambda: statuses(home, plugged)[-1] is None, "the end")
    assert statuses(home, plugged) == TURN


def test_esc_is_seen_without_a_hook(home: Home, plugged: Agent) -> None:
    """The session file shows it."""
    plugged.submit("play:slow please")
    plugged.becomes("busy")
    eventually(lambda: statuses(home, plugged)[-1:] == ["working"], "working")
    plugged.shows("word3")
    plugged.press("Escape")
    eventually(lambda: statuses(home, plugged)[-1] == "idle", "idle")
    plugged.exit()


@pytest.mark.parametrize("version", ["2.1.76", "2.1.119", claude_code.VERSION])
def test_installed_hooks_work_on_every_version(
    claude: Agents, home: Home, host: None, version: str
) -> None:
    """Each event that the version knows arrives once, without complaints."""
    claude.prepare(version=version)
    settings = home.claude / "settings.json"
    before = settings.read_bytes()
    bellboard(home, "hooks", "install", "--yes", "--cli", str(claude_code.executable(version)))
    registered = json.loads(settings.read_text())["hooks"]
    assert ("PostToolBatch" in bellboard(home, "hooks", "print", "--cli", version)) == (
        claude_code.numbers(version) >= (2, 1, 119)
    )
    agent = claude(version=version)
    assert not COMPLAINT.search(agent.text()), agent.text()
    turn(agent, home)
    assert set(registered) >= {"SessionStart", "Stop", "PermissionRequest"}
    eventually(lambda: counted(home) == expected(agent, home) != {}, "each event once")
    eventually(lambda: statuses(home, agent)[-1] is None, "the end")
    assert statuses(home, agent) == TURN
    bellboard(home, "hooks", "uninstall", "--yes")
    assert settings.read_bytes() == before


def test_nothing_is_left_after_removal(claude: Agents, home: Home) -> None:
    """Uninstalled, its files are as before; just deleted with the checkout, the CLI works."""
    checkout = home.root / "checkout"
    for part in ("rplugin", "hooks"):
        shutil.copytree(ROOT / part, checkout / part)
    claude.prepare()
    settings = home.claude / "settings.json"
    before = files(home)
    bellboard(home, "hooks", "install", "--yes", checkout=checkout)
    left = settings.read_bytes()
    assert left != before[settings]
    bellboard(home, "uninstall", "--purge", "--yes", checkout=checkout)
    assert files(home) == before
    assert not home.bellboard.exists()
    shutil.rmtree(checkout)
    settings.write_bytes(left)
    agent = claude()
    agent.submit("play:text please")
    agent.shows("Hello from the fake model")
    agent.becomes("idle")
    assert not COMPLAINT.search(agent.text()), agent.text()
    agent.exit()
    assert not home.bellboard.exists()


def files(home: Home) -> dict[Path, bytes]:
    """Return the files of the CLI."""
    return {path: path.read_bytes() for path in home.claude.rglob("*") if path.is_file()}
