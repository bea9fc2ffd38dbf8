"""The editor's gate: nothing connects to another user's socket, whatever a session names."""

from __future__ import annotations

import os
import resource
import socket as sockets
import sys
from pathlib import Path
from typing import Any

import pytest

from rig.editor import Editor
from rig.fixtures import Editors
from rig.home import Home
from rig.stranger import Stranger
from rig.waiting import eventually
from sample import QUIET, TERMINAL, Host, blocked

pytestmark = pytest.mark.editor

SAID = "_G.said = {} vim.notify = function(text) table.insert(_G.said, text) end"
#: Asks the gate about an address: `connect` for a Neovim, or for a tmux server.
ASK = """
local how, address = ...
_G.verdict = nil
local gate = require('bellboard.jump.gate')
if how == 'connect' then
  gate.connect(address, function(pipe, why)
    _G.verdict = { pipe ~= nil, why }
    if pipe then pipe:close() end
  end)
else
  gate.tmux(address, { 'list-panes' }, function(argv, why) _G.verdict = { argv or false, why } end)
end
"""


@pytest.fixture
def editor(nvim: Editors, version: str) -> Editor:
    made = nvim(version, QUIET, lua=SAID, ui=False)
    made.lua("require('bellboard')._attach()")
    return made


def verdict(editor: Editor, how: str, address: object) -> list[Any]:
    """Return the result, and the reason if it is denied."""
    editor.lua(ASK, how, address)
    told = eventually(lambda: editor.lua("return _G.verdict"), "a verdict")
    return list(told)


def refusal(editor: Editor, address: object) -> str:
    """Return why the gate denies it, which is the same for both."""
    by_tmux, by_neovim = (verdict(editor, how, address) for how in ("tmux", "connect"))
    assert by_tmux == by_neovim
    assert by_tmux[0] is False
    return str(by_tmux[1])


def said(editor: Editor) -> str:
    """Return our next message."""
    [text] = eventually(lambda: editor.lua("return _G.said"), "a message")
    editor.lua(SAID)
    return str(text)


def test_sockets_of_our_own_pass(editor: Editor, home: Home) -> None:
    """Through links of ours too, which are resolved."""
    real = editor.lua("return vim.v.servername")
    (home.root / "link").symlink_to("project/..")
    (home.project / "short").symlink_to(real)
    for address in (real, f"{home.root}/link/./project/short"):
        assert verdict(editor, "connect", address) == [True, ""]
        argv = ["tmux", "-u", "-S", real, "list-panes"]
        assert verdict(editor, "tmux", address) == [argv, ""]
    gone = f"{home.root}/nothing"
    assert verdict(editor, "connect", gone) == [False, "it has exited"]
    assert verdict(editor, "tmux", gone) == [False, f"no server running on {gone}"]


def test_anything_but_our_own_sockets_is_refused(
    editor: Editor, home: Home, stranger: Stranger
) -> None:
    """Same as system/gate.py: addresses, folders, links, files."""
    for address in ("127.0.0.1:6666", "localhost:1", "relative", "", 7):
        assert refusal(editor, address) == "not a local path"
    theirs = f"{stranger.folder} belongs to another user"
    assert refusal(editor, str(stranger.trap(stranger.folder / "s").path)) == theirs
    with sockets.socket(sockets.AF_UNIX) as ours:
        path = home.project / "a" / "s"
        path.parent.mkdir()
        ours.bind(str(path))
        ours.listen()
        for mode in (0o777, 0o757, 0o770):
            path.parent.chmod(mode)
            assert refusal(editor, str(path)) == f"others may write to {path.parent}"
        path.parent.chmod(0o1777)
        assert verdict(editor, "connect", str(path)) == [True, ""]
        link, circle = path.parent / "link", path.parent / "circle"
        link.symlink_to(path)
        stranger.own(link)
        assert refusal(editor, str(link)) == f"{link} belongs to another user"
        circle.symlink_to(circle)
        assert refusal(editor, str(circle)) == "too many links"
        stranger.own(path)
        assert refusal(editor, str(path)) == f"{path} belongs to another user"
    file = home.file("file", "")
    for path in (file, file / "x", home.project, Path("/")):
        assert refusal(editor, str(path)) == "not a socket"
    long = home.project / ("x" * 100)
    long.mkdir()
    here = os.open(long, os.O_DIRECTORY)
    try:
        with sockets.socket(sockets.AF_UNIX) as ours:
            ours.bind(f"/proc/self/fd/{here}/s")
            assert refusal(editor, str(long / "s")) == "path too long for a socket"
    finally:
        os.close(here)
    assert stranger.caught == ""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has that table")
def test_without_the_mount_table_nothing_is_admitted(editor: Editor, home: Home) -> None:
    """It is read with a file descriptor, of which none may be left."""
    real = editor.lua("return vim.v.servername")
    most = resource.prlimit(editor.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(editor.pid, resource.RLIMIT_NOFILE, (3, most[1]))
    try:
        assert "the mounts cannot be read: " in refusal(editor, real)
    finally:
        resource.prlimit(editor.pid, resource.RLIMIT_NOFILE, most)


def test_another_users_listener_is_hung_up_on(
    editor: Editor, home: Home, stranger: Stranger
) -> None:
    """Who listens is known after connecting, and nothing has been sent by then."""
    home.project.chmod(0o1777)
    trap = stranger.trap(home.project / "s")
    os.chown(trap.path, os.geteuid(), -1)
    assert verdict(editor, "connect", str(trap.path)) == [False, "another user listens there"]


def test_no_session_leads_to_a_stranger(editor: Editor, home: Home, stranger: Stranger) -> None:
    """A jump, a preview, pane names on the board: by tmux, by Neovim, by host and port."""
    trap = str(stranger.trap(stranger.folder / "sock").path)
    with sockets.create_server(("127.0.0.1", 0)) as tcp:
        tcp.setblocking(False)
        port = f"127.0.0.1:{tcp.getsockname()[1]}"
        host = Host(editor)
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
    Host(editor).push(blocked("api", nvim=address, tty="/dev/pts/9999"))
    editor.lua("require('bellboard').jump('api')")
    assert "belongs to another user" in said(editor)
    _, tty = editor.lua(TERMINAL)
    editor.lua("require('bellboard.jump').arrive(...)", tty, {"tmux": trap, "pane": "%0"})
    editor.lua("require('bellboard').back()")
    assert "belongs to another user" in said(editor)
    assert stranger.caught == ""


def test_a_neovim_in_a_strangers_tmux_does_not_ask_it(
    nvim: Editors, home: Home, stranger: Stranger
) -> None:
    """As after `su` in another user's tmux: $TMUX and $TMUX_PANE are inherited."""
    trap = stranger.trap(stranger.folder / "sock")
    inside = {"TMUX": f"{trap.path},1,0", "TMUX_PANE": "%0"}
    editor = nvim(config={}, lua=SAID, ui=False, env=inside)
    up = "return require('bellboard').health().version"
    eventually(lambda: editor.lua(up), "the host")
    assert stranger.caught == ""
    # Asked after the question about the focus, and so judged after it.
    assert "belongs to another user" in refusal(editor, str(trap.path))
    assert stranger.caught == ""
