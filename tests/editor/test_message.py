"""Messages: they fit, they wait for prompts, and those of one moment are one."""

from __future__ import annotations

from typing import Any

import pytest

from editor.test_notices import line
from rig.fixtures import Editors
from rig.host.sample import QUIET, Host, blocked, session
from rig.waiting import eventually


def test_a_vim_notify_that_is_a_table_gets_messages_whole(nvim: Editors, version: str) -> None:
    """The table of nvim-notify has room for them; a vim.ui.select may be a table, too."""
    editor = nvim(version, QUIET, columns=50)
    host = Host(editor)
    editor.lua("""
      _G.said = {}
      local function callable(act) return setmetatable({}, { __call = act }) end
      vim.notify = callable(function(_, text) table.insert(said, text) end)
      vim.ui.select = callable(function(_, _, opts) table.insert(said, opts.prompt) end)
    """)
    host.push(blocked("api"), notices=[line(text="x" * 300)])
    editor.command("ClaudeSessions goto nobody")
    editor.command("ClaudeSessions pick")
    expected = ["api needs you: " + "x" * 300, "Agent sessions"]
    expected += ['bellboard: no session "nobody"; :ClaudeSessions lists all']
    eventually(lambda: sorted(editor.lua("return said")) == sorted(expected), "the messages")


@pytest.mark.parametrize("ignored", ["", "ModeChanged"])
@pytest.mark.parametrize("prompt", [":edit foo", ":call input('> ')<CR>"])
def test_a_message_waits_for_the_end_of_a_prompt(
    nvim: Editors, version: str, prompt: str, ignored: str
) -> None:
    """Neovim would not show it at all, neither then nor later; its end may cause no event."""
    editor = nvim(version, QUIET, columns=60, lines=8)
    editor.command(f"set eventignore={ignored}")
    editor.press(prompt)
    eventually(lambda: editor.nvim.api.get_mode()["mode"] == "c", "the prompt")
    editor.lua("require('bellboard.message').info('api: answered') vim.wait(50)")
    editor.press("<Esc>")
    editor.shows("bellboard: api: answered")


def test_a_notification_fits_the_command_line_and_waits_for_a_prompt(
    nvim: Editors, version: str
) -> None:
    """No hit-enter prompt; text being typed in the command line stays."""
    editor = nvim(version, QUIET, columns=50)
    host = Host(editor)
    editor.press(":let x = 1")
    editor.shows(":let x = 1")
    host.push(blocked("api"), notices=[line(text="x" * 300)])
    editor.shows("!1 api")
    assert editor.nvim.api.get_mode()["mode"] == "c"
    assert ":let x = 1" in editor.screen.text
    editor.press("<CR>")
    editor.shows("api needs you: xx")
    assert editor.nvim.api.get_mode()["blocking"] is False


#: What goes wrong for many sessions at one moment: notices, or what a user has written.
FAILS = """
local function fails(event)
  error('mine ' .. (event.session_id or event.data.session_id))
end
require('bellboard').setup({ on_transition = fails })
vim.api.nvim_create_autocmd('User', { pattern = 'BellboardTransition', callback = fails })
"""


def outage(count: int) -> dict[str, Any]:
    """Return the other fields of a push when all its sessions fail."""
    told = {"t": 1.0, "from": "working", "to": "error", "live": True}
    failed = {"status": "error", "title": "has an error", "text": "529 overloaded, try again later"}
    return {
        "notices": [{**line(sid=f"p{n}"), **failed, "title": f"p{n} failed"} for n in range(count)],
        "transitions": [{**told, "session_id": f"p{n}"} for n in range(count)],
    }


@pytest.mark.parametrize(
    ("keys", "mode", "height", "columns", "count"),
    [
        *(("", "n", 1, 60, 30), ("", "n", 0, 200, 30), ("", "n", 1, 200, 2), ("", "n", 1, 80, 1)),
        *(("i", "i", 1, 200, 30), ("i", "i", 0, 80, 2), (":let x = 1", "c", 1, 120, 30)),
        (":terminal<CR>i", "t", 1, 200, 2),
    ],
)
def test_many_messages_at_one_moment_are_one_that_fits(
    nvim: Editors, version: str, keys: str, mode: str, height: int, columns: int, count: int
) -> None:
    """An outage fails every session at once: two errors would wait for ENTER."""
    editor = nvim(version, QUIET, columns=columns, lines=12)
    host = Host(editor)
    editor.lua(FAILS)
    editor.command(f"set cmdheight={height} noshowmode")
    editor.press(keys)
    eventually(lambda: editor.nvim.api.get_mode()["mode"] == mode, mode)
    failed = [session("error", f"p{n}") for n in range(count)]
    host.push(*failed, **outage(count))
    editor.shows(f"x{count}" if height else "p0 failed: ")  # which covers the statusline
    assert editor.nvim.api.get_mode() == {"mode": mode, "blocking": False}
    if mode == "c":
        assert ":let x = 1" in editor.screen.text
        editor.press("<CR>")
    editor.shows("p0 failed: ")
    host.push(*failed, **outage(count))  # before anything was typed
    host.push(*failed, **outage(count))
    editor.lua("vim.wait(20)")
    assert editor.nvim.api.get_mode()["blocking"] is False
    if height:  # all of it
        assert "p0 failed: 529 overloaded, try again later" in editor.messages()
        assert "callback: " in (said := editor.messages())
        assert f"mine p{count - 1}" in said


#: A vim.notify of a plugin, and one of a user that filters what Neovim's own shows.
OTHERS = """
_G.said = {}
local own = vim.notify
local function plugin(_, text) table.insert(said, text) end
local function filter(text, ...) table.insert(said, text) return own(text, ...) end
vim.notify = ... and setmetatable({}, { __call = plugin }) or filter
"""


@pytest.mark.parametrize("is_plugin", [True, False])
def test_a_vim_notify_of_somebody_gets_many_messages_as_one(
    nvim: Editors, version: str, is_plugin: bool
) -> None:
    """In lines if it is a plugin's; one that passes them on to Neovim's gets a line that fits."""
    editor = nvim(version, QUIET, columns=70)
    editor.lua(OTHERS, is_plugin)
    host, many = Host(editor), [session("error", f"p{n}") for n in range(30)]
    for _ in range(2):
        host.push(*many, notices=outage(30)["notices"])
    text, again = editor.lua("return said")
    assert text == again
    if is_plugin:
        lines = text.split("\n")
        assert lines[0] == "p0 failed: 529 overloaded, try again later"
        assert lines[10:] == ["and 20 more"]
    else:
        assert text == "p0 failed: 529 overloaded, try again later; p1 failed: 52…"
