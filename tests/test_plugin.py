"""End to end with the real CLI: this repository as its plugin, a host, what is published."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rig.cache import CHECKOUT
from rig.fixtures import Agents
from rig.home import Home
from rig.waiting import PATIENCE


@pytest.fixture
def told(home: Home, eventually: Any) -> Iterator[Callable[[], list[Any]]]:
    """Return the changes of status that a host of this home has published."""
    out = home.root / "told.jsonl"
    with out.open("wb") as file:
        host = subprocess.Popen(
            [sys.executable, "-m", "bellboard", "watch", "--json"], env=home.env, stdout=file
        )
    try:
        eventually(lambda: any((home.bellboard / "hosts").glob("*")), "a host")
        yield lambda: [json.loads(row) for row in out.read_text().split("\n")[:-1]]
    finally:
        host.terminate()
        host.wait(PATIENCE)


def listed(home: Home) -> Any:
    """Return the sessions published now."""
    list_json = [sys.executable, "-m", "bellboard", "list", "--json"]
    done = subprocess.run(list_json, env=home.env, capture_output=True, check=True)
    return json.loads(done.stdout)["sessions"]


@pytest.mark.live
@pytest.mark.smoke
def test_a_permission_through_plugin_spool_and_host(
    claude: Agents, home: Home, told: Callable[[], list[Any]], eventually: Any
) -> None:
    """Working, blocked, answered, completed, gone: each as the CLI says, and what it asks."""
    agent = claude(
        "--plugin-dir", str(CHECKOUT), env={"BELLBOARD_HOME": str(home.bellboard)}, cwd=home.project
    )
    agent.submit("play:perm please")
    agent.becomes("waiting")
    eventually(lambda: [c for c in told() if c["to"] == "blocked"], "blocked")
    eventually(
        lambda: [s.get("detail") for s in listed(home)] == ["touch made.txt"], "what it asks"
    )
    agent.answer("Enter")
    agent.happens("Stop")
    eventually(lambda: told()[-1]["to"] == "completed", "completed")
    agent.exit()
    eventually(lambda: told()[-1]["to"] is None, "gone")
    changes = [(c["from"], c["to"]) for c in told()]
    assert changes == [
        (None, "idle"),
        ("idle", "working"),
        ("working", "blocked"),
        ("blocked", "working"),
        ("working", "completed"),
        ("completed", None),
    ]


@pytest.mark.live
def test_esc_is_seen_without_a_hook(
    claude: Agents, home: Home, told: Callable[[], list[Any]], eventually: Any
) -> None:
    """The session file shows it."""
    agent = claude(
        "--plugin-dir", str(CHECKOUT), env={"BELLBOARD_HOME": str(home.bellboard)}, cwd=home.project
    )
    agent.submit("play:slow please")
    agent.becomes("busy")
    eventually(lambda: told() and told()[-1]["to"] == "working", "working")
    agent.shows("word3")
    agent.press("Escape")
    eventually(lambda: told()[-1]["to"] == "idle", "idle")
    agent.exit()
