"""The rig's agent: the real Claude Code CLI on a fake API, without a network."""

from __future__ import annotations

from typing import Any

import psutil
import pytest

from bellboard.agents.claude.hooks import KINDS
from live.seen import hook_names
from rig import claude_code
from rig.agent import elicitation
from rig.api import Api
from rig.fixtures import Agents
from rig.home import Home
from rig.loopback import Watch

pytestmark = pytest.mark.live


@pytest.mark.parametrize("version", claude_code.VERSIONS)
def test_each_version_is_the_one_that_was_pinned(version: str, home: Home) -> None:
    """The checksums match, and a different one would be noticed."""
    folder = next(
        path for path in claude_code.executable(version).parents if path.name == "node_modules"
    ).parent
    assert claude_code.PINNED[version] == claude_code.digest(folder)
    lock = (folder / "package-lock.json").read_text()
    (home.project / "package-lock.json").write_text(lock.replace("sha512-", "sha512-A"))
    assert claude_code.PINNED[version] != claude_code.digest(home.project)


def test_every_hook_that_the_newest_cli_names_has_a_kind() -> None:
    """A new event is found when its version is pinned, and not as an unknown hook of a user."""
    named = hook_names(claude_code.VERSION)
    assert len(named) > 30
    assert set(named) - KINDS.keys() == set()


def test_a_session_answers_asks_is_held_and_is_interrupted(
    claude: Agents,
    api: Api,
    watch: Watch,
    home: Home,
    eventually: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An answer, a permission, an answer that the API holds, and a form, in one session.

    No variable of ours leaks, nobody else is contacted. Dialogs are on the screen, in the hooks and
    in the session file; Enter says yes, Esc ends them.
    """
    monkeypatch.setenv("BELLBOARD_CANARY", "of the test run")
    agent = claude(*elicitation(home))
    environ = psutil.Process(agent.pid).environ()
    assert set(environ) <= {*agent.launch.env, "TMUX", "TMUX_PANE", "PWD", "SHLVL", "_"}
    assert str(home.root) == environ["HOME"]
    api.hold()
    agent.submit("play:text please")
    eventually(lambda: watch.sockets, "the connection to the API, as proof that the watch sees")
    api.release()
    agent.shows("Hello from the fake model")
    agent.happens("Stop")
    agent.becomes("idle")
    assert len(api.played("text")) == 1

    agent.submit("play:perm please")
    asked = agent.happens("PermissionRequest")
    assert asked["tool_input"]["command"] == "touch made.txt"
    agent.shows("Do you want to proceed")
    assert agent.becomes("waiting")["waitingFor"] == "permission prompt"
    agent.answer("Enter")
    agent.shows("Touched")
    agent.happens("Stop", 2)
    assert (home.project / "made.txt").exists()

    agent.becomes("idle")
    api.hold()
    agent.submit("play:text please")
    eventually(lambda: len(api.played("text")) == 2, "the request")
    agent.becomes("busy")  # as long as a test needs
    agent.press("Escape")
    agent.becomes("idle")
    assert len(agent.events("Stop")) == 2
    api.release()

    agent.press("C-u")  # the prompt is back in the input
    agent.shows(r"(?m)^[❯>][\s\xa0]*$")
    agent.submit("play:elicit please")
    agent.happens("Elicitation")
    agent.shows("What name")
    agent.becomes("waiting")
    agent.press("Escape")
    agent.happens("Stop", 3)
    agent.becomes("idle")
    agent.exit()
    assert agent.happens("SessionEnd")["reason"] == "prompt_input_exit"
    assert [request.path for request in api.requests if request.kind == "unknown"] == []
