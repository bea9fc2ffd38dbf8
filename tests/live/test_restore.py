"""Real sessions whose tmux server and Neovim are killed are opened again, each where it was."""

from __future__ import annotations

import json
import os
import shlex
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from bellboard.agents.registry import agent_of
from bellboard.core.restore import WINDOW, held_by
from bellboard.system.processes import argv_of
from live.screens import ScreenStage, Watched
from live.stage import STANDS
from live.stands import CODEX, OPENCODE, PI, Stand
from rig import ROOT
from rig.agents.agent import Agent
from rig.editor import Editor
from rig.fixtures import VERSIONS, Agents, Editors
from rig.home import Home
from rig.host.hosting import opened
from rig.shell import bellboard
from rig.terminal import Terminal
from rig.tmux import Pane, Server
from rig.waiting import eventually, rest

WINDOWS = "#{session_name}:#{window_name}.#{pane_index} #{pane_current_path}"


def kill(*pids: int) -> None:
    """Kill processes at once."""
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def is_gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def started(home: Home, tmux: Server, editor: Editor, program: Path) -> list[Pane | Terminal]:
    """Start it in three panes, two of them in one window, and in two terminals of Neovim."""
    where = {"cwd": home.project}
    first = tmux.open([program], session="work", **where)
    tmux.run("rename-window", "-t", first.id, "edit")
    form = ("-d", "-P", "-F", "#{pane_id}", "-t", first.id, "-c", str(home.project))
    second = Pane(tmux, tmux.run("split-window", *form, f"exec {program}").strip())
    third = tmux.open([program], session="side", **where)
    return [first, second, third, *(Terminal(editor, [str(program)], **where) for _ in "ab")]


def rows(home: Home) -> dict[str, dict[str, Any]]:
    listed = json.loads(bellboard(home, "list", "--json"))["sessions"]
    return {p["session_id"]: p for p in listed}


@pytest.mark.timeout(180)
@pytest.mark.live
@pytest.mark.smoke
def test_what_went_down_is_opened_where_it_was(
    home: Home, claude: Agents, tmux: Server, nvim: Editors
) -> None:
    """Three panes come back into their windows of tmux, two terminals into a new Neovim.

    Each has its own id and conversation; a second time there is nothing to do.
    """
    launch = claude.prepare("--plugin-dir", str(ROOT))
    program = home.bin / "claude"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(launch.command)} "$@"\n')
    program.chmod(0o755)
    editor = nvim(VERSIONS[-1], {})
    agents = [Agent(launch, each) for each in started(home, tmux, editor, program)]
    for agent in agents:
        agent.ready()
        agent.submit("play:text please")
    for agent in agents:
        agent.happens("Stop")
    ids = [agent.events("SessionStart")[0]["session_id"] for agent in agents]

    def is_known() -> bool:
        with opened(home.bellboard) as shared:
            known = [shared.board.sessions[sid] for sid in ids]
        return all(map(held_by, known)) and all(s.facts.get(WINDOW) for s in known[:3])

    eventually(is_known)
    assert "Nothing to restore" in bellboard(home, "restore", "--list")
    kill(tmux.pid, editor.pid)
    eventually(lambda: all(is_gone(agent.pid) for agent in agents))
    assert "5 sessions went down" in bellboard(home, "restore", "--list")
    other = nvim(VERSIONS[-1], {"answer": {"key_delay": 0}}, columns=110)
    other.command("ClaudeSessions restore")
    other.shows("5 sessions went down")
    other.press("y")
    eventually(lambda: "restored: 2 here, 3 in tmux" in other.messages())

    def are_there() -> dict[str, dict[str, Any]]:
        found = rows(home)
        assert set(ids) == set(found), found
        assert all("pid" in p and "tty" in p for p in found.values())
        return found

    found = eventually(are_there)
    for sid in ids:
        assert ["--resume", sid] == [
            w for w in argv_of(found[sid]["pid"]) if w in ("--resume", sid)
        ]
    assert [True] * 3 == [found[sid].get("tmux") == str(tmux.socket) for sid in ids[:3]]
    assert [True] * 2 == [found[sid].get("nvim") == str(other.socket) for sid in ids[3:]]
    windows = tmux.run("list-panes", "-a", "-F", WINDOWS).splitlines()
    assert [
        f"{w} {home.project}" for w in ("side:claude.0", "work:edit.0", "work:edit.1")
    ] == windows
    assert "Nothing to restore" in bellboard(home, "restore", "--yes")
    other.command("ClaudeSessions restore")
    eventually(lambda: "nothing to restore" in other.messages())


@pytest.mark.timeout(180)
@pytest.mark.live
@pytest.mark.parametrize("stand", [CODEX, OPENCODE, PI], ids=lambda stand: stand.key)
def test_a_session_of_another_agent_goes_on_with_its_own_id(stand: Stand) -> None:
    """Its conversation is on the screen again, and its next turn is that session's."""
    command = stand.fetch()
    with ScreenStage(stand) as stage:
        stage.start()
        stage.prompt("say First")
        stage.stands("completed")
        [row] = stage.published.rows()
        server = stage.server
        assert server is not None
        given = [f"{name}={value}" for name, value in {**stage.watch.env, **stage.env}.items()]
        program = stage.home.bin / agent_of(stand.key).program
        words = shlex.join(["env", *given, *command, *stand.args])
        program.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        program.chmod(0o755)

        def is_known() -> bool:
            with opened(stage.home.bellboard) as shared:
                s = shared.board.sessions[row["session_id"]]
            return bool(held_by(s) and s.facts.get(WINDOW))

        eventually(is_known)
        stage.clis.clear()
        stage.started.clear()
        rest(STANDS)  # nobody looks at its screen any more
        kill(server.pid)
        eventually(lambda: not stage.published.rows())
        assert "1 session restored" in bellboard(stage.home, "restore", "--yes")
        resumed = stage.add(Watched(Pane(server, "%0"), "%0"))
        resumed.shows("First")
        eventually(lambda: resumed.is_resumed, "the end of its last turn is seen")
        stage.prompt("slow 3")  # a shorter one could be over before its screen is looked at
        stage.stands("completed")
        eventually(lambda: [row["session_id"]] == [p["session_id"] for p in stage.published.rows()])
        assert "Nothing to restore" in bellboard(stage.home, "restore")
        stage.type(stand.leave)
        stage.press("Enter")
        resumed.shows(r"(?m)^[#$] *$")  # the shell stays
