"""Plugins that keep terminals: what runs in theirs is found, and a jump shows it as they do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from rig.editor import Editor
from rig.fetched.cache import Missing
from rig.host.sample import Host, blocked
from rig.waiting import eventually


@dataclass(frozen=True)
class Keeper:
    """Lua that opens a terminal which runs `agent`, and Lua that hides it."""

    opens: str
    hides: str
    needs: list[str] = field(default_factory=list)
    since: str = "0.10"  # the Neovim that it needs


AGENT = "echo what it asks; exec sleep 600"
KEEPERS = {
    "toggleterm": Keeper(
        "require('toggleterm').setup() "
        "_G.t = require('toggleterm.terminal').Terminal:new({ cmd = agent }) t:open()",
        "t:close()",
        ["toggleterm.nvim"],
    ),
    "snacks": Keeper(
        "require('snacks').setup({}) _G.t = Snacks.terminal.open({ 'sh', '-c', agent })",
        "t:hide()",
        ["snacks.nvim"],
    ),
    "claudecode": Keeper(
        "require('claudecode').setup({ terminal_cmd = agent, auto_start = false, "
        "terminal = { provider = 'native' } }) require('claudecode.terminal').open()",
        "require('claudecode.terminal').simple_toggle()",
        ["claudecode.nvim"],
    ),
    "sidekick": Keeper(
        "require('sidekick').setup({ nes = { enabled = false }, cli = { tools = { "
        "agent = { cmd = { agent } } } } }) "
        "require('sidekick.cli').show({ name = 'agent', focus = true })",
        "require('sidekick.cli').hide({ name = 'agent' })",
        ["sidekick.nvim"],
        since="0.11.2",
    ),
}
FOUND = """
for _, buf in ipairs(vim.api.nvim_list_bufs()) do
  if vim.bo[buf].buftype == 'terminal' then
    _G.terminal = buf
    local text = table.concat(vim.api.nvim_buf_get_lines(buf, 0, -1, false))
    local pty = vim.api.nvim_get_chan_info(vim.bo[buf].channel).pty
    return text:find('what it asks', 1, true) and pty or nil
  end
end
"""
WINDOWS = "return #vim.fn.win_findbuf(terminal)"


def kept(name: str, editor: Editor) -> Iterator[str]:
    """The session in it is found by its terminal; a jump shows the window that they show."""
    keeper = KEEPERS[name]
    if not editor.lua("return vim.fn.has('nvim-' .. ...) == 1", keeper.since):
        raise Missing(f"it needs Neovim {keeper.since}")
    host = Host(editor)
    agent = editor.home.file("bin/agent", f"#!/bin/sh\n{AGENT}\n")
    agent.chmod(0o755)
    editor.command("file here")
    before = editor.lua("return vim.api.nvim_get_current_win()")
    editor.lua(f"local agent = ... {keeper.opens}", str(agent))
    tty = eventually(lambda: editor.lua(FOUND))
    width = editor.lua("return vim.api.nvim_win_get_width(vim.fn.bufwinid(terminal))")
    editor.command("stopinsert")
    editor.lua(keeper.hides)
    eventually(lambda: editor.lua(WINDOWS) == 0)
    host.push(blocked("api", tty=tty))
    editor.lua("require('bellboard').jump('api')")
    eventually(lambda: editor.lua("return vim.fn.bufnr() == terminal"))
    yield "jump"
    assert editor.lua("return vim.fn.bufname(vim.api.nvim_win_get_buf(...))", before) == "here"
    assert editor.lua("return vim.api.nvim_win_get_width(0)") == width
    yield "in their window"
    editor.command("stopinsert")
    editor.lua(keeper.hides)
    eventually(lambda: editor.lua(WINDOWS) == 0)
    yield "which they can hide again"
    assert "bellboard" not in editor.messages(), editor.messages()
