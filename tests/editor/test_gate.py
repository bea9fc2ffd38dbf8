"""No session leads an editor to another user's socket, whatever it names."""

from __future__ import annotations

import socket as sockets

import pytest

from rig.editor import Editor
from rig.fixtures import Editors
from rig.home import Home
from rig.host.sample import QUIET, TERMINAL, Host, blocked
from rig.machines.stranger import Stranger
from rig.waiting import eventually

SAID = "_G.said = {} vim.notify = function(text) table.insert(_G.said, text) end"


@pytest.fixture
def editor(nvim: Editors, version: str) -> Editor:
    made = nvim(version, QUIET, lua=SAID, ui=False)
    made.lua("require('bellboard.start').attach()")
    return made


def said(editor: Editor) -> str:
    """Return our next message."""
    [text] = eventually(lambda: editor.lua("return _G.said"), "a message")
    editor.lua(SAID)
    return str(text)


def test_no_session_leads_to_a_stranger(editor: Editor, home: Home, stranger: Stranger) -> None:
    """A jump, a preview, pane names on the board: by tmux, by Neovim, by host and port."""
    trap = str(stranger.trap(stranger.folder / "sock").path)
    with sockets.create_server(("127.0.0.1", 0)) as tcp:
        tcp.setblocking(False)
        port = f"127.0.0.1:{tcp.getsockname()[1]}"
        host = Host(editor, serves=True)
        host.push(
            blocked("pane", tmux=trap, pane="%0"),
            blocked("editor", nvim=trap, tty="/dev/pts/9999"),
            blocked("remote", nvim=port, tty="/dev/pts/9999"),
        )
        for sid in ("pane", "editor"):
            editor.lua("require('bellboard').jump(...)", sid)
            assert "belongs to another user" in said(editor)
        editor.lua("require('bellboard').jump('remote')")
        assert "not a local path" in said(editor)
        for sid in ("pane", "editor", "remote"):
            editor.lua(
                "_G.lines = nil local session = require('bellboard').session(...) "
                "require('bellboard.preview').lines(session, function(l) _G.lines = l end)",
                sid,
            )
            eventually(lambda: editor.lua("return _G.lines"), "a preview")
        with pytest.raises(BlockingIOError):
            tcp.accept()
    assert stranger.caught == ""


def test_a_neighbours_reply_cannot_lead_to_another_users_socket(
    editor: Editor, nvim: Editors, stranger: Stranger
) -> None:
    """Neither the address it gives for itself nor the one it came from."""
    trap = str(stranger.trap(stranger.folder / "sock").path)
    there = nvim(editor.version, QUIET, ui=False)
    there.lua(
        "local trap = ... require('bellboard.jump').arrive = function() "
        "return { shown = true, tmux = trap, pane = '%0' } end",
        trap,
    )
    address = there.lua("return vim.v.servername")
    Host(editor, serves=True).push(blocked("api", nvim=address, tty="/dev/pts/9999"))
    editor.lua("require('bellboard').jump('api')")
    assert "belongs to another user" in said(editor)
    _, tty = editor.lua(TERMINAL)
    editor.lua("require('bellboard.jump').arrive(...)", tty, {"tmux": trap, "pane": "%0"})
    editor.lua("require('bellboard').back()")
    assert "belongs to another user" in said(editor)
    assert stranger.caught == ""
