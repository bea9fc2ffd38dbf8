"""Every way to install the hooks, on old and new CLIs: each event counts once."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bellboard.storage.spool import Spool
from rig import ROOT, warm
from rig.agents import codex
from rig.agents.agent import QUIET
from rig.fetched import claude_code
from rig.fixtures import Agents
from rig.home import Home
from rig.host.hosting import opened
from rig.machines.loopback import Watch
from rig.waiting import PATIENCE, eventually

VERSIONS = ("2.1.76", claude_code.VERSION)  # one between is in test_settings_claude.py
#: An agent of the CLI itself may end beside the session; then not every hook runs to its end.
CORE = {*json.loads((ROOT / "hooks/hooks.json").read_text())["hooks"]} - {"SubagentStop"}
#: Settings alone are in test_settings_claude.py. Plugin and settings report each event twice.
WAYS = ("the plugin and the settings", "--settings", "the settings and --settings")
#: Why the second report of an event is refused.
AGAIN = ("duplicate event", "the session has ended", "older than the end of the session")


def bellboard(home: Home, *args: str) -> str:
    """Run a command in this home; return its output."""
    done = warm.run(["-m", "bellboard", *args], env=home.env)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(autouse=True)
def host(home: Home) -> Iterator[None]:
    """Start a host without an editor, so that hooks keep every event."""
    Spool(home.bellboard).prepare()
    serve = warm.Program(["-m", "bellboard", "serve"], env=home.env)
    try:
        eventually(lambda: any((home.bellboard / "hosts").iterdir()), "a host")
        yield
    finally:
        serve.terminate()
        serve.wait(PATIENCE)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("version", VERSIONS)
def test_each_event_counts_once(claude: Agents, home: Home, version: str, way: str) -> None:
    """The rig's recorder gets each event once, and we get it from each set of hooks.

    The plugin also offers its skill to the model.
    """
    args: list[str] = []
    claude.prepare(version=version)  # writes the settings that ours are added to
    if "the plugin" in way:
        args += ["--plugin-dir", str(ROOT)]
    if "the settings" in way:
        bellboard(home, "hooks", "install", "--yes", "--cli", version)
    if "--settings" in way:
        args += ["--settings", bellboard(home, "hooks", "print", "--cli", version)]
    agent = claude(*args, version=version, env={"BELLBOARD_HOME": str(home.bellboard)})
    agent.submit("play:bash please")
    agent.happens("Stop")
    offered = any("- bellboard:bellboard: " in request.said for request in claude.api.requests)
    assert offered == ("the plugin" in way)
    agent.exit()
    agent.happens("SessionEnd")

    def counted() -> bool:
        told = Counter(e["hook_event_name"] for e in agent.events() if e["hook_event_name"] in CORE)
        assert {"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"} <= {*told}
        with opened(home.bellboard) as shared:
            rows = [row for row in shared.store.log() if row.event.name in CORE]
        names = Counter(row.event.name for row in rows if row.why not in AGAIN)
        assert told == names, f"{way}: {[(r.event.name, r.why) for r in rows]}, {set_aside(home)}"
        twice = Counter(row.event.name for row in rows)
        return twice == (told + told if "the plugin" in way else told)

    eventually(counted)


def set_aside(home: Home) -> str:
    """Return why files were set aside, if any."""
    return "\n".join(why.read_text() for why in (home.bellboard / "spool/bad").glob("*.why"))


def test_the_repository_is_a_plugin_and_its_own_marketplace(home: Home, watch: Watch) -> None:
    """The CLI validates it, installs it from here, and uninstalls it."""
    program = claude_code.executable()

    def claude(*args: str) -> str:
        done = subprocess.run(
            [program, "plugin", *args],
            env={**home.env, **QUIET, **watch.env},
            cwd=home.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert "Validation passed" in claude("validate", str(ROOT), "--strict")
    marketplace = Path(ROOT, ".claude-plugin/marketplace.json")
    assert "Validation passed" in claude("validate", str(marketplace), "--strict")
    clone = home.root / "bellboard.nvim"  # what users have: without what tests download
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    claude("marketplace", "add", str(clone))
    claude("install", "bellboard@bellboard")
    assert "enabled" in claude("list")
    settings = json.loads((home.claude / "settings.json").read_text())
    assert settings["enabledPlugins"] == {"bellboard@bellboard": True}
    assert "plugin enabled" in bellboard(home, "hooks", "check")
    assert "also enables the plugin" in bellboard(home, "hooks", "install", "--yes")
    bellboard(home, "hooks", "uninstall", "--yes")
    claude("uninstall", "bellboard@bellboard")
    assert "bellboard@bellboard" not in claude("list")


def test_codex_takes_the_skill_of_the_plugin_and_runs_no_hook_of_it(
    home: Home, watch: Watch
) -> None:
    """Codex takes hooks of Claude Code as well: its threads would be sessions of Claude Code."""
    watch.old = True  # what the trap caught has reached nobody
    program = str(codex.executable())
    clone = home.root / "bellboard.nvim"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    env = {**home.env, **watch.env}
    for words in (["marketplace", "add", str(clone)], ["add", "bellboard@bellboard"]):
        done = subprocess.run([program, "plugin", *words], env=env, capture_output=True, check=True)
        assert b"Added" in done.stdout
    asked = [
        {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "x", "version": "1"}}},
        {"method": "initialized"},
        {"id": 2, "method": "hooks/list", "params": {"cwds": [str(home.project)]}},
        {"id": 3, "method": "skills/list", "params": {"cwds": [str(home.project)]}},
    ]
    with subprocess.Popen(
        [program, "app-server"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin and server.stdout
        server.stdin.write("".join(json.dumps(each) + "\n" for each in asked))
        server.stdin.flush()
        said: dict[int, dict[str, Any]] = {}
        while not {2, 3} <= said.keys():
            line = json.loads(server.stdout.readline())
            said[line.get("id")] = line
        server.kill()
    [found] = said[2]["result"]["data"]
    assert (found["hooks"], found["errors"]) == ([], [])
    [skills] = said[3]["result"]["data"]
    assert skills["errors"] == []
    assert "bellboard:bellboard" in [skill["name"] for skill in skills["skills"]]
