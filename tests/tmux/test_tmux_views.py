"""Views of clients of a real tmux, and the status that it shows."""

from __future__ import annotations

import contextlib
import os
import signal
import time

import pytest

from bellboard.cli.wiring import FIRST
from bellboard.hosting.tmux_status import OPTION
from bellboard.storage.store import ICONS
from rig.home import Home
from rig.host.hosting import opened
from rig.tmux import Pane, Server
from rig.waiting import eventually
from tmux.room import PREFIX, Room


def test_each_client_looks_at_the_pane_that_it_shows(tmux: Server, room: Room) -> None:
    """Changes of window, pane and session are reported with the client; so is its end."""
    first, second = tmux.open(["sh"], session="one"), tmux.open(["sh"], session="one")
    third = tmux.open(["sh"], session="two")
    tmux.run("select-window", "-t", first.id)
    room.host()
    a = room.attach("one")
    room.bellboard("tmux", "--apply")
    name = f"{room.socket} {a.tty}"
    eventually(lambda: room.views() == {name: first.id}, "the first view")
    tmux.run("select-window", "-t", second.id)
    eventually(lambda: room.views() == {name: second.id}, "another window")
    split = tmux.run("split-window", "-d", "-P", "-F", "#{pane_id}", "-t", second.id).strip()
    tmux.run("select-pane", "-t", split)
    eventually(lambda: room.views() == {name: split}, "another pane")
    b = room.attach("two")
    both = {name: split, f"{room.socket} {b.tty}": third.id}
    eventually(lambda: room.views() == both, "another client")
    tmux.run("switch-client", "-c", a.tty, "-t", "=two")
    eventually(lambda: room.views() == dict.fromkeys(both, third.id), "another session")
    tmux.run("detach-client", "-t", b.tty)
    eventually(lambda: room.views() == {name: third.id}, "the one that is left")


def test_a_terminal_without_the_focus_looks_at_nothing(tmux: Server, room: Room) -> None:
    """Switching does not matter; with the focus again, the terminal looks at its pane."""
    first, second = tmux.open(["sh"], session="one"), tmux.open(["sh"], session="one")
    tmux.run("select-window", "-t", first.id)
    tmux.run("set-option", "-g", "focus-events", "on")
    if not tmux.run("show-hooks", "-g", "client-focus-in"):
        pytest.skip("this tmux has no hook for the focus")
    room.host()
    a = room.attach("one")
    room.bellboard("tmux", "--apply")
    name = f"{room.socket} {a.tty}"
    eventually(lambda: room.views() == {name: first.id})
    a.type("\x1b[O")
    eventually(lambda: room.views() == {name: ""}, "it looks away")
    tmux.run("select-window", "-t", second.id)
    a.type("\x1b[I")
    eventually(lambda: room.views() == {name: second.id}, "it looks again")


def test_what_you_look_at_long_enough_is_seen(tmux: Server, room: Room) -> None:
    """A session completes in a hidden pane; then a client comes to that window and stays."""
    here, there = tmux.open(["sh"], session="one"), tmux.open(["sh"], session="one")
    tmux.run("select-window", "-t", here.id)
    room.host()
    room.attach("one")
    room.bellboard("tmux", "--apply")
    room.done(there, "s")
    eventually(lambda: room.status("s") == "completed")
    tmux.run("select-window", "-t", there.id)
    eventually(lambda: room.status("s") == "idle", "it was seen")


def test_without_a_host_a_view_replaces_the_previous_one(tmux: Server, room: Room) -> None:
    """One file is left, however often windows are switched; none without a viewer."""
    first, second = tmux.open(["sh"], session="one"), tmux.open(["sh"], session="one")
    room.bellboard("tmux", "--apply")
    (room.home.bellboard / "emit").chmod(0o600)  # as after a restored backup
    waiting = lambda: [*room.spool.new.iterdir(), *room.spool.slot.iterdir()]  # noqa: E731
    tmux.run("select-window", "-t", first.id, ";", "select-window", "-t", second.id)
    room.attach("one")
    eventually(lambda: len(waiting()) == 1, "the view of the client that came")

    def says(pane: Pane) -> bool:
        with contextlib.suppress(FileNotFoundError):  # it is just being replaced
            return [f" {pane.id} ".encode() in path.read_bytes() for path in waiting()] == [True]
        return False

    for pane in (first, second) * 3:
        tmux.run("select-window", "-t", pane.id)
        eventually(lambda pane=pane: says(pane), "the last view, and no other")


def test_names_from_programs_are_not_executed(tmux: Server, room: Room, home: Home) -> None:
    """Titles and names that would be commands in a format or in a shell command."""
    pwned = home.project / "pwned"
    evil = f"#(touch {pwned})$(touch {pwned})`touch {pwned}`';touch {pwned};\"#{{q:pane_title}}%n"
    first = tmux.open(["sh"], session="one")
    room.host()
    a = room.attach("one")
    room.bellboard("tmux", "--apply")
    title = home.file("title", f"\x1b]2;{evil}\x07")
    second = tmux.open(["sh", "-c", f"cat {title}; exec sleep 1000"], session="one")
    eventually(lambda: second.ask("#{pane_title}") == evil)
    for command in ("rename-window", "rename-session"):  # these expand formats
        tmux.run(command, "-t", second.id, evil.replace("#", "##"))
    assert second.ask("#{window_name}") == evil
    tmux.run("select-window", "-t", second.id)
    eventually(lambda: room.views() == {f"{room.socket} {a.tty}": second.id})
    room.agent(second, "s", "SessionStart", session_title=evil)
    room.agent(second, "s", "UserPromptSubmit", prompt=evil)
    ask = {"tool_name": "Bash", "tool_input": {"command": evil}}
    room.agent(second, "s", "PermissionRequest", **ask)
    tmux.run("set-option", "-g", "status-right", f" #{{{OPTION}}}#{{E:{OPTION}}}#{{T:{OPTION}}}")
    tmux.run("select-window", "-t", first.id)
    eventually(lambda: "touch" in tmux.run("show-options", "-gqv", OPTION))
    a.type(f"{PREFIX}B")
    eventually(lambda: room.shown() == {a.tty: second.id}, "the jump")
    assert not pwned.exists()


def test_a_moved_installation_is_silent(tmux: Server, room: Room, home: Home) -> None:
    """tmux shows the output of a failing hook over the pane; ours does nothing."""
    first, second = tmux.open(["sh"], session="one"), tmux.open(["sh"], session="one")
    tmux.run("select-window", "-t", first.id)
    room.bellboard("tmux", "--apply")
    name = f"session-window-changed[{FIRST}]"
    command = tmux.run("show-hooks", "-g", "session-window-changed").split("] ", 1)[1].strip()
    emit = str(home.bellboard / "emit")
    assert emit in command
    tmux.run("set-option", "-g", name, command.replace(emit, "/nowhere/hooks/emit"))
    room.attach("one")
    tmux.run("select-window", "-t", second.id)
    done = home.project / "done"
    tmux.run("run-shell", f"sleep 0.3; touch {done}")  # so that earlier commands have ended
    eventually(done.exists)
    assert second.ask("#{pane_in_mode}") == "0"


def test_the_status_is_shown_while_it_is_true(tmux: Server, room: Room) -> None:
    """A host updates it in each server that asked; after --remove it is gone."""
    pane = tmux.open(["sh"], session="one")
    room.host()
    a = room.attach("one")
    room.bellboard("tmux", "--apply")
    tmux.run("set-option", "-g", "status-right", f" [#{{{OPTION}}}]")
    room.agent(pane, "api", "SessionStart")
    room.agent(pane, "api", "UserPromptSubmit", prompt="x")
    a.shows(r"\[\*1\]")
    room.agent(pane, "api", "PermissionRequest", tool_name="Bash", tool_input={"command": "make"})
    a.shows(r"\[!1 api: make\]")
    with opened(room.home.bellboard) as shared, shared.store.transaction() as tx:  # as a Neovim
        tx.set_option(ICONS, {"blocked": "▲"}, 0, time.time())
    a.shows(r"\[▲1 api: make\]")
    assert room.bellboard("status") == "▲1 api: make\n"
    room.agent(pane, "api", "SessionEnd", reason="exit")
    a.shows(r"\[\]")
    room.bellboard("tmux", "--remove")
    assert tmux.run("show-options", "-gqv", OPTION) == ""


def test_a_hanging_server_delays_nobody(tmux: Server, room: Room, home: Home) -> None:
    """The others are updated, and the host continues."""
    tmux.open(["sh"], session="one")
    room.host()
    room.bellboard("tmux", "--apply")
    pid = tmux.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        told = {"session_id": "s", "hook_event_name": "UserPromptSubmit", "cwd": "/w/s"}
        room.spool.write({"t": time.time(), "hook": told})
        eventually(lambda: room.status("s") == "working")
    finally:
        os.kill(pid, signal.SIGCONT)
    eventually(lambda: tmux.run("show-options", "-gqv", OPTION).strip() == "*1")
