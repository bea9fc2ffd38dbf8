"""The command-line window opened from one of our windows: Neovim keeps that one until it ends."""

from __future__ import annotations

import pytest

from rig.editor import Editor
from rig.fixtures import Editors
from rig.host.asked import CALM, asks, command, opened, play
from rig.host.sample import Host
from rig.waiting import eventually

WINDOWS = "return #vim.api.nvim_list_wins()"


def enters(editor: Editor, keys: str) -> None:
    """Open the command-line window, and let scheduled functions run."""
    editor.press(keys)
    eventually(lambda: editor.nvim.eval("getcmdwintype()") == ":", "the window")
    editor.lua("vim.wait(50)")


def leaves(editor: Editor) -> None:
    """Close the command-line window, and let functions run that waited for that."""
    editor.press("<Esc>:quit<CR>")
    eventually(lambda: editor.nvim.eval("getcmdwintype()") == "", "its end")
    editor.lua("vim.wait(50)")


def ends_below(editor: Editor, host: Host) -> None:
    """Let the request end while the command-line window is open."""
    enters(editor, ":<C-f>")
    editor.lua("requests.api = nil")
    host.push()
    eventually(lambda: editor.lua("return not require('bellboard.answer.keys').now()"), "gone")
    leaves(editor)


@pytest.mark.parametrize("view", ["help", "input"])
def test_a_view_stays_open_below_the_command_line_window(
    shared: Editors, version: str, view: str
) -> None:
    """The user has not left the view: its keys work again, and the typed text is still there."""
    editor = shared(version, CALM, columns=80, lines=34)
    host, api = Host(editor), asks("api")
    play(editor, command(api, "make"))
    host.push(api)
    if view == "help":
        editor.command("ClaudeSessions board")
        editor.press("g?")
    else:
        opened(editor, "api", "Run a command")
        editor.press("R")
        editor.shows("<C-s> send")
        editor.press("because")
    eventually(
        lambda: editor.lua("return vim.api.nvim_win_get_config(0).relative") == "editor", "it"
    )
    windows = editor.lua(WINDOWS)
    enters(editor, ":<C-f>" if view == "help" else "<C-o>:<C-f>")
    leaves(editor)
    assert editor.lua(WINDOWS) == windows
    if view == "input":
        editor.shows("because")
    editor.press("q" if view == "help" else "<C-c>")
    eventually(lambda: editor.lua(WINDOWS) < windows, "closed")
    assert editor.messages() == ""


def test_a_request_that_ends_below_the_command_line_window_closes_after_it(
    shared: Editors, version: str
) -> None:
    """No window is left over."""
    editor = shared(version, CALM, columns=80, lines=34)
    host, api = Host(editor), asks("api")
    play(editor, command(api, "make"))
    host.push(api)
    opened(editor, "api", "Run a command")
    ends_below(editor, host)
    assert editor.lua(WINDOWS) == 1
    assert "E11" not in editor.messages()


def test_a_copy_of_a_request_that_ends_below_the_command_line_window_is_left_to_the_user(
    shared: Editors, version: str
) -> None:
    """The copy is the last window by then, and shows another buffer."""
    editor = shared(version, CALM, columns=80, lines=34)
    host, api = Host(editor), asks("api")
    play(editor, command(api, "make"))
    host.push(api)
    text = editor.lua("return vim.api.nvim_get_current_win()")
    opened(editor, "api", "Run a command")
    editor.command("split")
    editor.lua("vim.api.nvim_win_close(...)", text, False)
    ends_below(editor, host)
    eventually(lambda: editor.lua("return vim.api.nvim_buf_get_name(0)") == "", "another buffer")
    assert editor.lua("return { #vim.api.nvim_list_wins(), vim.wo.winfixbuf }") == [1, False]
    assert "E444" not in editor.messages()


def test_a_request_closed_without_autocommands_leaves_nothing(
    shared: Editors, version: str
) -> None:
    """The request goes with the next change of sessions."""
    editor = shared(version, CALM, columns=80, lines=34)
    host, api = Host(editor), asks("api")
    play(editor, command(api, "make"))
    host.push(api)
    opened(editor, "api", "Run a command")
    editor.command("noautocmd quit")
    host.push(api)
    eventually(lambda: not editor.lua("return require('bellboard.answer.keys').now()"), "gone")
    assert editor.lua(WINDOWS) == 1
