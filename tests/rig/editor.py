"""A real Neovim in a home of its own, with an RPC client and a screen attached."""

from __future__ import annotations

import contextlib
import functools
import json
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pynvim

from rig import ROOT, reaper
from rig.fetched import neovim
from rig.home import Home
from rig.screen import Display, Picture
from rig.waiting import PATIENCE, eventually

# Without a user interface, the plugin does not start automatically.
UNSEEN = """
vim.api.nvim_create_autocmd('VimEnter', { callback = vim.schedule_wrap(function()
  require('bellboard').start()
end) })
"""
# asyncio asks for the set of all signals four times for each answer that a client waits for, and
# making it takes longer than the rest.
signal.valid_signals = functools.cache(signal.valid_signals)
#: Leaves no window, buffer, message, autocommand, option or function from what was done before.
AFRESH = """
if not _G.before then
  _G.before = { fields = {}, options = {}, g = vim.g.bellboard }
  local tables = { _G, vim, vim.ui, vim.uv, vim.fn }
  for _, file in ipairs(vim.api.nvim_get_runtime_file('lua/bellboard/**/*.lua', true)) do
    local name = file:match('lua/(bellboard.*)%.lua'):gsub('/init$', ''):gsub('/', '.')
    local found, module = pcall(require, name) -- a picker may be missing
    tables[#tables + 1] = found and type(module) == 'table' and module or nil
  end
  for _, each in ipairs(tables) do
    before.fields[each] = vim.tbl_extend('error', {}, each)
  end
  for name, info in pairs(vim.api.nvim_get_all_options_info()) do
    local is_known, value = pcall(vim.api.nvim_get_option_value, name, { scope = 'global' })
    local scope = info.scope == 'buf' and { scope = 'global' } or {}
    before.options[name] = is_known and { value, scope } or nil
  end
end
vim.notify = function() end
for _, win in ipairs(vim.api.nvim_list_wins()) do
  if vim.api.nvim_win_get_config(win).relative ~= '' then
    pcall(vim.api.nvim_win_close, win, true)
  end
end
vim.cmd('autocmd!')
for name, was in pairs(before.options) do
  if vim.go[name] ~= was[1] then
    pcall(vim.api.nvim_set_option_value, name, was[1], was[2])
  end
end
vim.wo.winfixbuf = false
vim.cmd('silent! tabonly! | silent! only! | enew!')
for _, buf in ipairs(vim.api.nvim_list_bufs()) do
  if buf ~= vim.api.nvim_get_current_buf() then
    pcall(vim.api.nvim_buf_delete, buf, { force = true })
  end
end
vim.g.bellboard = before.g
require('bellboard').setup({})
vim.wait(20) -- what was closed may say how it ended
for each, fields in pairs(before.fields) do
  for name, value in pairs(each) do
    each[name] = value == fields[name] and value or fields[name]
  end
end
vim.cmd('nohlsearch | redraw | messages clear | echo')
vim.v.errmsg = ''
"""
PROMPT = PATIENCE  # seconds that a prompt may wait for keys that were already sent


class Editor:
    """A Neovim: `nvim` is the pynvim client, `screen` what a user would see now."""

    def __init__(self, version: str, home: Home, name: str, **options: Any) -> None:
        self.version = version
        self.home = home
        self.nvim: Any = None
        self.socket = home.root / f"{name}.sock"
        self.errors = home.root / f"{name}.stderr"
        setup = {k: options[k] for k in ("config", "lua", "peers")}
        config = setup["config"]
        if not options["ui"] and config is not None and config.get("auto_start", True):
            setup["lua"] += UNSEEN
        argv = command(version, home, name, **setup)
        columns, lines = options["columns"], options["lines"]
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [*argv, "--headless", *options["args"]],
                env={**home.env, **options["env"]},
                cwd=home.project,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )
        self._display: Display | None = None
        try:
            eventually(self._listens, f"Neovim {version} on {self.socket}")
            self.nvim = pynvim.attach("socket", path=str(self.socket))
            if options["ui"]:
                self._display = Display(self.socket, columns, lines)
        except BaseException:
            self.close()
            raise

    def _listens(self) -> bool:
        """Return whether it answers a call: the file of its socket appears a moment earlier."""
        assert self.process.poll() is None, f"Neovim ended: {self.errors.read_text()}"
        with socket.socket(socket.AF_UNIX) as caller:
            return caller.connect_ex(str(self.socket)) == 0

    def _free(self) -> pynvim.Nvim:
        """Return the client, once no prompt blocks requests; fail with the screen if one stays."""

        def free() -> bool:
            blocked = self.nvim.request("nvim_get_mode")["blocking"]
            assert not blocked, f"Neovim waits for a key:\n{self.screen.text if self.shown else ''}"
            return True

        eventually(free, within=PROMPT)
        return self.nvim

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def shown(self) -> bool:
        """Return whether it has a screen."""
        return self._display is not None

    @property
    def screen(self) -> Picture:
        """Return what is shown, as of the last flush."""
        assert self._display, "this editor was started with ui=False"
        return self._display.picture

    @property
    def title(self) -> str:
        """Return the title of its window ('titlestring')."""
        assert self._display, "this editor was started with ui=False"
        return self._display.title

    def lua(self, code: str, *args: Any) -> Any:
        """Run Lua code; return its value."""
        return self._free().exec_lua(code, *args)

    def command(self, text: str) -> None:
        """Run an Ex command."""
        self._free().command(text)

    def afresh(self) -> None:
        """Leave whatever was open, for the next test; the plugin stays loaded."""
        self.press("<C-\\><C-n>")
        eventually(lambda: self.nvim.request("nvim_get_mode")["mode"] in ("n", "nt"), "Normal mode")
        self.lua(AFRESH)

    def press(self, keys: str) -> None:
        """Type keys in Vim's notation: press("<C-\\\\><C-n>:q<CR>")."""
        self.nvim.input(keys)

    def shows(self, text: str) -> Picture:
        """Wait until that text is on the screen; return that screen."""

        def look() -> Picture:
            picture = self.screen
            assert text in picture.text, f"no {text!r} on this screen:\n{picture.text}"
            return picture

        return eventually(look)

    def hides(self, text: str) -> Picture:
        """Wait until that text is no longer on the screen; return that screen.

        A change is drawn in several frames: new text may appear before old text disappears. Wait
        for both, and do not read `screen` in between.
        """

        def look() -> Picture:
            picture = self.screen
            assert text not in picture.text, f"still {text!r} on this screen:\n{picture.text}"
            return picture

        return eventually(look)

    def messages(self) -> str:
        """Return the output of :messages; Neovim 0.10 adds an empty line after Insert mode."""
        said = self._free().request("nvim_exec2", "messages", {"output": True})["output"]
        return str(said).strip()

    def close(self) -> None:
        """Stop the editor and its children; may be called again, or after it has died."""
        reaper.end(reaper.family([self.process.pid]))
        self.process.wait()
        if self._display:
            self._display.close()
            self._display = None
        if self.nvim is None:
            return
        # One more request lets the client's loop see the end of file and close its transport.
        with contextlib.suppress(OSError, EOFError):
            self.nvim.request("nvim_get_mode")
        self.nvim.close()
        self.nvim = None


def command(
    version: str,
    home: Home,
    name: str = "nvim",
    *,
    config: Mapping[str, Any] | None = None,
    lua: str = "",
    peers: Sequence[str] = (),
) -> list[str]:
    """Return the command line of a clean Neovim that listens on `name`.sock; also for a tmux pane.

    `config` becomes g:bellboard and puts the checkout on the runtimepath, None leaves both out;
    `lua` runs before plugins are loaded.
    """
    setup = [f"vim.opt.rtp:append({_lua_string(neovim.peer(peer))})" for peer in peers]
    if config is not None:
        setup.append(f"vim.opt.rtp:prepend({_lua_string(ROOT)})")
        options = {"statusline": {}, **config}
        if isinstance(options["statusline"], dict):  # what is asked for is all that is shown
            options["statusline"] = {"auto": False, **options["statusline"]}
        setup.append(f"vim.g.bellboard = vim.json.decode({_lua_string(json.dumps(options))})")
    file = home.root / f"{name}.lua"
    file.write_text("\n".join([*setup, lua, ""]))
    start = [str(neovim.executable(version)), "--clean", "-n", "--cmd", f"luafile {file}"]
    return [*start, "--listen", str(home.root / f"{name}.sock")]


def _lua_string(value: str | Path) -> str:
    return json.dumps(str(value), ensure_ascii=False)
