"""The machine of a new user: a home, a display, the plugin in a git repository, the real CLI."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from live.xterm import XServer
from rig import ROOT
from rig import home as homes
from rig.agents import agent
from rig.agents.api import Api
from rig.fetched import neovim
from rig.fetched.cache import Missing
from rig.machines.loopback import Watch
from rig.waiting import eventually

PROGRAMS = ("xterm", "xdotool", "git")
#: Variables and files that tell pip and uv about a mirror.
INDEX = ("PIP_", "UV_", "SSL_CERT", "REQUESTS_CA", "CURL_CA")
COLUMNS, LINES = 100, 30
LAZY = """
vim.opt.rtp:prepend('{lazy}')
require('lazy').setup({{
  spec = {{ {{ 'OWNER/bellboard.nvim', opts = {{}} }} }},
  git = {{ url_format = 'file://{served}/%s.git', filter = false }},
  rocks = {{ enabled = false }},
  checker = {{ enabled = false }},
}})
"""
PACK = "vim.pack.add({{ 'file://{served}/OWNER/bellboard.nvim.git' }})\n"


class Lacking(Exception):
    """Something needed is not installed."""


class Way(NamedTuple):
    manager: str
    version: str
    uv: bool


WAYS = {
    f"{manager}-{version}{'-uv' if uv else ''}": Way(manager, version, uv)
    for manager, versions in {"lazy": ("0.10", "0.12"), "pack": ("0.12",)}.items()
    for version in versions
    for uv in (False, True)
}


class Setting:
    """The state before the user starts Neovim for the first time."""

    def __init__(self, way: Way, lazy: Path | None, uv: str | None) -> None:
        lacks = [program for program in PROGRAMS if shutil.which(program) is None]
        if lacks:
            raise Lacking(f"no {', '.join(lacks)} on PATH")
        if way.manager == "lazy" and not (lazy and (lazy / "lua/lazy/init.lua").is_file()):
            raise Lacking("no lazy.nvim; git clone https://github.com/folke/lazy.nvim and --lazy")
        if way.uv and not uv:
            raise Lacking("no uv; pip install uv and --uv")
        self.way, self.lazy, self.uv = way, lazy, uv
        self._open = contextlib.ExitStack()

    def __enter__(self) -> Setting:
        try:
            self._prepare()
        except Missing as missing:
            self._open.close()
            raise Lacking(str(missing)) from None
        except BaseException:
            self._open.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _prepare(self) -> None:
        self.home = homes.build()
        self._open.callback(homes.remove, self.home)
        shutil.rmtree(self.home.root / "state/nvim/bellboard")
        bare = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
        for name in ("python3", "python"):  # without the packages of the tests
            (self.home.bin / name).write_text(f'#!/bin/sh\nexec "{bare}" "$@"\n')
        if self.way.uv and self.uv:
            (self.home.bin / "uv").symlink_to(Path(self.uv).resolve())
        self._serve()
        self._claude()
        self.display = XServer("1000x640")
        self._open.callback(self.display.close)
        self.nvim = neovim.executable(self.way.version)
        self.socket = self.home.root / "nvim.sock"
        self.env = {
            **self.home.env,
            **{key: value for key, value in os.environ.items() if key.startswith(INDEX)},
            "DISPLAY": self.display.name,
            "SHELL": "/bin/sh",
        }
        self._configure()

    def _serve(self) -> None:
        """Serve the committed plugin for a package manager to clone."""
        served = self.home.root / "served"
        target = served / "OWNER/bellboard.nvim.git"
        target.parent.mkdir(parents=True)
        clone = ("git", "clone", "--quiet", "--bare", "--single-branch", ROOT, target)
        subprocess.run(clone, check=True)
        self.served = served

    def _claude(self) -> None:
        """Put the real `claude` on PATH, with the fake API and without settings."""
        api = self._open.enter_context(Api())
        watch = self._open.enter_context(Watch())
        launch = agent.prepare(self.home, api, watch, settings={})
        (self.home.claude / "settings.json").unlink()
        words = " ".join(f"'{word}'" for word in launch.argv)
        given = "\n".join(f"export {k}='{v}'" for k, v in launch.env.items() if k not in ("PATH",))
        program = self.home.bin / "claude"
        program.write_text(f'#!/bin/sh\n{given}\nexec {words} "$@"\n')
        program.chmod(0o755)

    def _configure(self) -> None:
        text = LAZY if self.way.manager == "lazy" else PACK
        init = self.home.root / "config/nvim/init.lua"
        init.parent.mkdir(parents=True)
        init.write_text(text.format(lazy=self.lazy, served=self.served))

    def start(self) -> Typist:
        """Start Neovim as the user does."""
        argv = ["xterm", "-fa", "DejaVu Sans Mono", "-fs", "10", "-bg", "black", "-fg", "white"]
        argv += ["-geometry", f"{COLUMNS}x{LINES}+0+0", "-e", str(self.nvim)]
        argv += ["--listen", str(self.socket)]
        process = subprocess.Popen(argv, env=self.env, cwd=self.home.project)
        self._open.callback(_end, process)
        return Typist(self.display, self.env)


class Typist:
    """The user's terminal, which counts each key."""

    def __init__(self, display: XServer, env: Mapping[str, str]) -> None:
        self.display, self.env = display, env
        self.keys = 0

    def type(self, text: str) -> None:
        self.keys += len(text)
        self._do("xdotool", "type", "--delay", "15", text)

    def press(self, key: str) -> None:
        self.keys += 1
        self._do("xdotool", "key", key)

    def _do(self, *argv: str) -> None:
        subprocess.run(argv, env=dict(self.env), check=True, capture_output=True)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    eventually(lambda: process.poll() is not None, f"the end of {process.args}")
