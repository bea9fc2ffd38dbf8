"""A real Neovim in a home of its own, with an RPC client and a screen attached."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pynvim

from rig import neovim, reaper
from rig.cache import CHECKOUT
from rig.home import Home
from rig.screen import Display, Picture
from rig.waiting import eventually

# Without a user interface the plugin does not start by itself.
UNSEEN = """
vim.api.nvim_create_autocmd('VimEnter', { callback = vim.schedule_wrap(function()
  require('bellboard').start()
end) })
"""
PROMPT = 10.0  # how long a prompt may wait for keys that are on their way


class Editor:
    """`nvim` is the pynvim client; `screen` what a user would see now."""

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
        """It answers a call; its socket's file is there a moment before."""
        assert self.process.poll() is None, f"Neovim ended: {self.errors.read_text()}"
        with socket.socket(socket.AF_UNIX) as caller:
            return caller.connect_ex(str(self.socket)) == 0

    def _free(self) -> pynvim.Nvim:
        """The client, once no prompt holds requests back; one that stays fails with its screen."""

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
        """It has a screen."""
        return self._display is not None

    @property
    def screen(self) -> Picture:
        """What is shown, as of the last flush."""
        assert self._display, "this editor was started with ui=False"
        return self._display.picture

    @property
    def title(self) -> str:
        """What it calls its window ('titlestring')."""
        assert self._display, "this editor was started with ui=False"
        return self._display.title

    def lua(self, code: str, *args: Any) -> Any:
        """The value that Lua code returns."""
        return self._free().exec_lua(code, *args)

    def command(self, text: str) -> None:
        """An Ex command."""
        self._free().command(text)

    def press(self, keys: str) -> None:
        """Keys in Vim's notation, as typed: press("<C-\\\\><C-n>:q<CR>")."""
        self.nvim.input(keys)

    def shows(self, text: str) -> Picture:
        """Wait until that text is on the screen; the screen that has it."""

        def look() -> Picture:
            picture = self.screen
            assert text in picture.text, f"no {text!r} on this screen:\n{picture.text}"
            return picture

        return eventually(look)

    def hides(self, text: str) -> Picture:
        """Wait until that text is on the screen no more; the screen without it.

        A screen comes in frames: what one change draws may be there before what it takes away has
        gone. Ask for both, each with its own wait, and never look at `screen` in between.
        """

        def look() -> Picture:
            picture = self.screen
            assert text not in picture.text, f"still {text!r} on this screen:\n{picture.text}"
            return picture

        return eventually(look)

    def messages(self) -> str:
        """All that :messages lists; empty when nothing went wrong."""
        return str(self._free().request("nvim_exec2", "messages", {"output": True})["output"])

    def close(self) -> None:
        """End the editor and its children; idempotent, also after the editor has died."""
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
    """The command line of a clean Neovim that listens on `name`.sock; also for a tmux pane.

    `config` becomes g:bellboard and puts the checkout on the runtimepath, None leaves both out;
    `lua` runs before plugins are loaded.
    """
    setup = [f"vim.opt.rtp:append({_lua_string(neovim.peer(peer))})" for peer in peers]
    if config is not None:
        setup.append(f"vim.opt.rtp:prepend({_lua_string(CHECKOUT)})")
        setup.append(f"vim.g.bellboard = vim.json.decode({_lua_string(json.dumps(dict(config)))})")
    file = home.root / f"{name}.lua"
    file.write_text("\n".join([*setup, lua, ""]))
    start = [str(neovim.executable(version)), "--clean", "-n", "--cmd", f"luafile {file}"]
    return [*start, "--listen", str(home.root / f"{name}.sock")]


def _lua_string(value: str | Path) -> str:
    return json.dumps(str(value), ensure_ascii=False)
