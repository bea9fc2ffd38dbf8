"""Linters for Lua, shells and strace, fetched if the system lacks them.

Looked up 2026-11: stylua is in npm only as WebAssembly (tests/lint runs it), and
lua-language-server is in none of Debian, PyPI and npm.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from rig import ROOT
from rig.fetched import debian, node, npm
from rig.fetched.cache import Missing, folder

SUITES = ("trixie",)
STYLUA = "2.5.2"
#: Program → its package, and the path in it; static programs run as they are.
PACKAGED = {
    "bash": ("bash", "usr/bin/bash"),
    "busybox": ("busybox-static", "usr/bin/busybox"),
    "dash": ("dash", "usr/bin/dash"),
    "strace": ("strace", "usr/bin/strace"),
    "zsh": ("zsh-static", "usr/bin/zsh-static"),
}
STATIC = ("busybox", "zsh")
#: The programs that tests run, and that `make test` fetches.
TESTED = ("bash", "busybox", "dash", "strace", "zsh")
#: Paths of more shells in which to test the hook, such as a build of macOS' bash 3.2.
MORE_SHELLS = tuple(filter(None, os.environ.get("BELLBOARD_SHELLS", "").split(":")))


def executable(name: str) -> Path:
    """Return the tool on PATH, or a private one; stylua is always the pinned version."""
    if name == "stylua":
        return stylua()
    if found := shutil.which(name):
        return Path(found)
    if name == "luacheck":
        return luacheck()
    if name not in PACKAGED:
        raise Missing(f"{name} is missing; install it and put it on PATH")
    package, path = PACKAGED[name]
    programs = () if name in STATIC else (name,)
    try:
        return debian.tree(name, SUITES, (package,), programs) / path
    except Missing as missing:
        raise Missing(f"{name} is not here, and {missing}") from None


def luacheck() -> Path:
    """Return a shell script that runs Debian's luacheck with the path of its Lua modules."""
    root = debian.tree("luacheck", SUITES, ("lua-check",), programs=("lua5.1",))
    lua = root / "usr/share/lua/5.1"
    native = next((root / "usr/lib").glob("*/lua/5.1"))
    return _start(
        root / "luacheck",
        f"LUA_PATH='{lua}/?.lua;{lua}/?/init.lua' LUA_CPATH='{native}/?.so' "
        f'exec {root}/usr/bin/lua5.1 {root}/usr/bin/luacheck "$@"',
    )


def stylua() -> Path:
    """Return a shell script that runs the WebAssembly of stylua."""
    root = npm.package("@johnnymorganz/stylua", STYLUA).parents[2]
    run = ROOT / "tests/lint/stylua.mjs"
    return _start(root / "stylua", f"exec '{node.node()}' '{run}' '{root}' \"$@\"")


def _start(path: Path, line: str) -> Path:
    """Return a script of one line, written if it is missing or was moved."""
    if not path.exists() or line not in path.read_text():
        draft = folder() / f".{path.name}.draft"
        draft.write_text(f"#!/bin/sh\n{line}\n")
        draft.chmod(0o755)
        draft.rename(path)
    return path
