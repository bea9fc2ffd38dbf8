"""Real CLIs without hooks or session file are read from their screens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rig.agents import agent
from rig.agents.agent import Agent
from rig.agents.api import Api
from rig.fetched import claude_code
from rig.fixtures import Agents, Editors
from rig.home import Home
from rig.host.hosting import RecordedHost
from rig.machines.loopback import Watch
from rig.terminal import Terminal
from rig.tmux import Server
from rig.waiting import eventually

SESSIONS = "return require('bellboard').sessions()"
OLD = "2.1.76"  # its session file has no status


@pytest.fixture
def host(home: Home) -> Iterator[RecordedHost]:
    """Start a host that reads screens."""
    telling = RecordedHost(home)
    yield telling
    telling.kill()


def row(host: RecordedHost, pid: int) -> dict[str, Any]:
    """Return the published session of that process."""
    rows = [p for p in host.sessions.values() if p.get("pid") == pid]
    assert len(rows) == 1, rows
    return rows[0]


def becomes(host: RecordedHost, pid: int, **expected: Any) -> dict[str, Any]:
    """Wait until it has these values."""

    def look() -> dict[str, Any]:
        found = row(host, pid)
        assert expected.items() <= found.items(), found
        return found

    return eventually(look)  # type: ignore[no-any-return]


@pytest.mark.parametrize("version", [OLD, claude_code.VERSION])
def test_a_cli_at_its_trust_dialog_is_blocked(
    home: Home, api: Api, watch: Watch, tmux: Server, host: RecordedHost, version: str
) -> None:
    """The CLI has no hook and no session file yet; once answered, its session has its own id."""
    watch.old = True
    launch = agent.prepare(home, api, watch, version=version, trusted=False)
    pane = tmux.open(launch.command, session="trust", cwd=launch.cwd)
    pane.shows("trust")
    asked = becomes(host, pane.pid, status="blocked", kind="choice", pane=pane.id, tty=pane.tty)
    assert f"trust this folder? {launch.cwd}" == asked["detail"]
    assert "inferred" in asked["markers"]
    Agent(launch, pane).answer(*(["Enter"] if version == OLD else ["Down", "Enter"]))
    becomes(host, pane.pid, status="idle")


@pytest.mark.parametrize("version", [OLD, claude_code.VERSION])
def test_a_cli_without_hooks_is_read_from_its_screen(
    claude: Agents, host: RecordedHost, version: str
) -> None:
    """Busy, asking, interrupted by Esc, done: each soon after it is on screen.

    A newer one is known from its files; its screen only adds what they do not show yet, and soon
    nothing is inferred.
    """
    cli = claude(version=version)
    becomes(host, cli.pid, status="idle")
    cli.submit("play:perm please")
    markers = ["inferred"] if version == OLD else []
    asked = {"kind": "permission", "tool": "Bash", "detail": "touch made.txt", "markers": markers}
    becomes(host, cli.pid, status="blocked", **asked)
    cli.press("Escape")
    becomes(host, cli.pid, status="idle")
    cli.submit("play:pause please")
    becomes(host, cli.pid, status="working")
    becomes(host, cli.pid, status="completed")


def test_a_cli_without_a_readable_screen_is_known_by_its_transcript(
    home: Home, api: Api, watch: Watch
) -> None:
    """No hook, no session file, no readable terminal; the host starts in the middle of a turn."""
    watch.old = True
    (home.root / "open").mkdir()
    (home.root / "open").chmod(0o777)  # so anyone could have put that socket there
    (home.claude / "sessions").write_text("a file where the CLI wants a folder")
    server = Server(home, "open/tmux.sock")
    launch = agent.prepare(home, api, watch)
    try:
        cli = Agent(launch, server.open(launch.command, cwd=launch.cwd))
        cli.ready()
        cli.submit("play:sleep please")
        written = home.claude / "projects"
        eventually(lambda: any('"tool_use"' in f.read_text() for f in written.rglob("*.jsonl")))
        host = RecordedHost(home)
        try:
            shown = becomes(host, cli.pid, status="working")
            assert not shown.get("pane"), shown  # it cannot be looked at
            cli.press("Escape")
            becomes(host, cli.pid, status="idle")
            cli.submit("play:pause please")
            becomes(host, cli.pid, status="working")
            becomes(host, cli.pid, status="completed")
        finally:
            host.kill()
    finally:
        server.close()


@pytest.mark.live
@pytest.mark.editor
def test_a_neovim_reads_its_own_terminals(
    nvim: Editors, version: str, home: Home, api: Api, watch: Watch
) -> None:
    """A CLI asks in a terminal buffer: the board of that Neovim shows what."""
    watch.old = True
    editor = nvim(version, {}, columns=110, lines=50)
    launch = agent.prepare(
        home, api, watch, version=OLD if version == "0.10" else claude_code.VERSION
    )
    cli = Agent(launch, Terminal(editor, launch.command, launch.cwd))
    cli.ready()
    cli.submit("play:perm please")
    cli.shows("Do you want")

    def asks() -> bool:
        found = [s for s in editor.lua(SESSIONS) if s.get("pid") == cli.pid]
        wanted = {"status": "blocked", "tool": "Bash", "detail": "touch made.txt"}
        assert found and wanted.items() <= found[0].items(), found
        return True

    eventually(asks)
    cli.press("Escape")
    eventually(lambda: editor.lua(SESSIONS)[0]["status"] == "idle", "the end of the question")
