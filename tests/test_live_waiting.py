"""The real CLI takes an answer from the hook that waits, and never waits for that hook itself."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from bellboard.storage.spool import Spool
from rig import claude_code
from rig.cache import CHECKOUT
from rig.fixtures import Agents
from rig.home import Home
from rig.waiting import PATIENCE, eventually

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]

ALLOW = (
    b'{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}'
)


@pytest.fixture
def spool(home: Home) -> Iterator[Spool]:
    """Run a host with answers on."""
    bellboard = [sys.executable, "-m", "bellboard"]
    host = subprocess.Popen([*bellboard, "serve"], env=home.env)
    try:
        subprocess.run([*bellboard, "answers", "on"], env=home.env, check=True)
        made = Spool(home.bellboard)
        eventually(made.pipes.found, "a pipe")
        yield made
    finally:
        host.terminate()
        host.wait(PATIENCE)


def waiting(spool: Spool) -> list[str]:
    """Return the pipes on which hooks wait."""
    found = spool.pipes.found()
    return [name for name, taken in found.items() if taken and spool.pipes.is_read(name)]


@pytest.mark.parametrize("version", [claude_code.VERSION, "2.1.76"])
def test_a_permission_is_answered_by_the_hook_or_in_the_terminal(
    claude: Agents, home: Home, spool: Spool, version: str
) -> None:
    """The dialog shows meanwhile; the question's end releases the hook; /exit does not wait."""
    agent = claude(
        *("--plugin-dir", str(CHECKOUT)),
        version=version,
        env={"BELLBOARD_HOME": str(home.bellboard)},
        cwd=home.project,
    )

    def asks() -> str:
        agent.submit("play:perm please")
        agent.shows(r"❯ 1\. Yes")
        return eventually(lambda: waiting(spool), "a hook that waits")[0]

    def is_over() -> None:
        eventually(lambda: not waiting(spool), "the end of the hook")

    channel = asks()
    # A hook takes its pipe before its event is there.
    item = eventually(lambda: spool.questions.read(spool.pipes.owner(channel)), "its event")
    assert spool.pipes.send(channel, item.name, item.payload, ALLOW)
    agent.happens("PostToolUse")
    assert (home.project / "made.txt").exists()
    agent.happens("Stop")
    asks()
    agent.answer("Enter")
    is_over()
    agent.happens("Stop", 2)
    asks()
    agent.answer("Escape")
    is_over()
    agent.shows("Interrupted|rejected|denied")
    agent.exit()
