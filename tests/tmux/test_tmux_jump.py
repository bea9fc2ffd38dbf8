"""Jumps and the picker in a real tmux, for the client that asked."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from rig.tmux import Pane, Server
from rig.waiting import eventually
from tmux.room import PREFIX, Room


@pytest.fixture
def three(tmux: Server, room: Room) -> dict[str, Pane]:
    """Make a shell that is shown, and two agents elsewhere: one asks, one is done."""
    panes = {name: tmux.open(["sh"], session=name) for name in ("home", "asks", "done")}
    room.done(panes["done"], "done")
    room.agent(panes["asks"], "asks", "SessionStart", session_title="rate limits")
    ask = {"tool_name": "Bash", "tool_input": {"command": "make all"}}
    room.agent(panes["asks"], "asks", "PermissionRequest", **ask)
    eventually(lambda: '"blocked"' in room.bellboard("list", "--json"), "a question that has stood")
    return panes


def test_goto_shows_a_session_to_whoever_asks(
    tmux: Server, room: Room, three: dict[str, Pane]
) -> None:
    """The client whose pane has the command shows it; hosts learn that it was seen."""
    a, b = room.attach("home"), room.attach("asks")
    room.bellboard("goto", "done", TMUX_PANE=three["home"].id)
    assert room.shown() == {a.tty: three["done"].id, b.tty: three["asks"].id}
    assert room.status("done") == "idle"
    said = room.bellboard("goto", "nobody", code=1)
    assert "no session matches nobody" in said
    room.bellboard("goto", "asks", "--client", a.tty)
    assert room.shown()[a.tty] == three["asks"].id
    said = room.bellboard("goto", code=1)
    assert "--next" in said


def test_the_key_cycles_through_sessions_that_need_you(
    tmux: Server, room: Room, three: dict[str, Pane]
) -> None:
    """Blocked before done; a message in the status line if there is none."""
    room.host()
    a = room.attach("home")
    room.bellboard("tmux", "--apply")
    a.type(f"{PREFIX}B")
    eventually(lambda: room.shown() == {a.tty: three["asks"].id}, "what asks")
    a.type(f"{PREFIX}B")
    eventually(lambda: room.shown() == {a.tty: three["done"].id}, "what is done")
    room.agent(three["asks"], "asks", "PostToolUse", tool_name="Bash")
    eventually(lambda: room.status("done") == "idle" and room.status("asks") == "working")
    tmux.run("set-option", "-g", "display-time", "20000")
    a.type(f"{PREFIX}B")
    a.shows("bellboard: no session needs you")
    a.type(f"{PREFIX}\x1bb")
    eventually(lambda: room.shown() == {a.tty: three["home"].id}, "where the first jump began")
    a.type(f"{PREFIX}\x1bb")
    a.shows("bellboard: no jump to go back from")


def test_each_terminal_goes_back_to_where_its_own_jumps_began(
    tmux: Server, room: Room, three: dict[str, Pane]
) -> None:
    """Two led to the same pane, and one has opened a shell beside the agent since."""
    asks, done, home = (three[name] for name in ("asks", "done", "home"))
    a, b = room.attach("home"), room.attach("done")
    room.bellboard("tmux", "--apply")
    for client in (a, b):
        room.bellboard("goto", "asks", "--client", client.tty)
    assert room.shown() == {a.tty: asks.id, b.tty: asks.id}
    tmux.run("split-window", "-t", asks.id, "sleep 600")
    assert asks.id not in room.shown().values()
    room.bellboard("goto", "asks", "--client", a.tty)
    a.type(f"{PREFIX}\x1bb")
    eventually(lambda: room.shown()[a.tty] == home.id, "where its jumps began")
    b.type(f"{PREFIX}\x1bb")
    eventually(lambda: room.shown()[b.tty] == done.id, "where that of the other began")
    b.type(f"{PREFIX}\x1bb")
    b.shows("bellboard: no jump to go back from")


def test_the_popup_picks_for_the_client_that_asked(
    tmux: Server, room: Room, three: dict[str, Pane]
) -> None:
    """Typing filters, Enter jumps there, the other client does not move; Esc to cancel."""
    a, b = room.attach("home"), room.attach("done")
    room.bellboard("tmux", "--apply")
    for client in (a, b):
        client.type(f"{PREFIX}b")
        client.shows(r"Esc to cancel")
        client.shows(r"! +asks +.*make all")
        client.press("Escape")
        eventually(
            lambda client=client: "Esc to cancel" not in client.text(), "the end of the popup"
        )
    a.type(f"{PREFIX}b")
    a.shows(r"2/2")
    a.type("RATE")
    a.shows(r"> RATE +1/2")
    a.press("Enter")
    eventually(lambda: room.shown() == {a.tty: three["asks"].id, b.tty: three["done"].id})


def test_the_picker_in_a_terminal_follows_its_size(
    tmux: Server, room: Room, three: dict[str, Pane]
) -> None:
    """Arrows move, a filter without matches says so, and the screen is restored afterwards."""
    pane = three["home"]
    pane.shows(r"[$#]")
    command = f"{sys.executable} -m bellboard pick --print"
    pane.type(f"echo before; {command}; echo code $?\n")
    pane.shows(r"! +asks")
    tmux.run("resize-window", "-t", pane.id, "-x", "50", "-y", "8")
    eventually(lambda: max(map(len, pane.text().splitlines())) <= 50 and "asks" in pane.text())
    pane.type("zzz")
    pane.shows("No session matches")
    pane.press("C-u")
    pane.shows(r"2/2")
    pane.press("Down")
    pane.press("Enter")
    assert "asks" not in pane.shows(r"done\ncode 0").split("before")[-1]
    pane.type(f"{command}; echo code $?\n")
    pane.shows(r"2/2")
    pane.press("Escape")
    pane.shows(r"code 1")
    assert "needs a terminal" in room.bellboard("pick", code=1)


def test_a_session_in_a_neovim_is_shown_by_that_neovim(
    tmux: Server, room: Room, nvim: Callable[..., Any]
) -> None:
    """The pane of that Neovim is shown as well, if it is in one."""
    editor = nvim(config={"auto_start": False}, ui=False)
    pane = tmux.open(["sh"], session="one")
    shows = """require('bellboard')._arrive = function(_, _, id)
      vim.g.jumped = id
      return vim.tbl_extend('error', { shown = true }, id == 'near' and near or {})
    end"""
    editor.lua(f"_G.near = ... {shows}", {"tmux": room.socket, "pane": pane.id})
    other = tmux.open(["sh"], session="two")
    a = room.attach("two")
    for socket, session in ((None, "far"), (room.socket, "near")):
        told = {"session_id": session, "hook_event_name": "SessionStart", "cwd": "/w"}
        origin = {"nvim": str(editor.socket), "tmux": socket, "pane": socket and pane.id}
        room.spool.write({"t": time.time(), "hook": told, "origin": origin})
    assert str(editor.socket) in room.bellboard("goto", "far")
    assert editor.lua("return vim.g.jumped") == "far"
    assert room.shown() == {a.tty: other.id}
    room.bellboard("goto", "near")
    assert editor.lua("return vim.g.jumped") == "near"
    assert room.shown() == {a.tty: pane.id}
    editor.close()
    assert "its Neovim has exited" in room.bellboard("goto", "far", code=1)
