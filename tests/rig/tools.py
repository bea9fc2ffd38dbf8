"""Linters for Lua, shells and strace, fetched if the system has none.

Looked up 2026-11: stylua is in npm only as WebAssembly (tests/lint runs it), and
lua-language-server is in none of Debian, PyPI and npm.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from rig import debian, node, npm
from rig.cache import CHECKOUT, Missing, folder

SUITES = ("trixie",)
STYLUA = "2.5.2"
#: Program → the package that has it and where; what is static runs as it is.
PACKAGED = {
    "bash": ("bash", "usr/bin/bash"),
    "busybox": ("busybox-static", "usr/bin/busybox"),
    "dash": ("dash", "usr/bin/dash"),
    "strace": ("strace", "usr/bin/strace"),
    "zsh": ("zsh-static", "usr/bin/zsh-static"),
}
STATIC = ("busybox", "zsh")
#: What the tests run, and `make test` fetches.
TESTED = ("bash", "busybox", "dash", "strace", "zsh")


def executable(name: str) -> Path:
    """The tool on PATH, else a private one; stylua is always the one of the pinned version."""
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
    """Debian's luacheck behind a line of shell that says where its Lua modules are."""
    root = debian.tree("luacheck", SUITES, ("lua-check",), programs=("lua5.1",))
    lua = root / "usr/share/lua/5.1"
    native = next((root / "usr/lib").glob("*/lua/5.1"))
    return _start(
        root / "luacheck",
        f"LUA_PATH='{lua}/?.lua;{lua}/?/init.lua' LUA_CPATH='{native}/?.so' "
        f'exec {root}/usr/bin/lua5.1 {root}/usr/bin/luacheck "$@"',
    )


def stylua() -> Path:
    """stylua behind a line of shell that runs its WebAssembly."""
    root = npm.package("@johnnymorganz/stylua", STYLUA).parents[2]
    run = CHECKOUT / "tests/lint/stylua.mjs"
    return _start(root / "stylua", f"exec '{node.node()}' '{run}' '{root}' \"$@\"")


def _start(path: Path, line: str) -> Path:
    """A program of one line, written when it is not there or was moved."""
    if not path.exists() or line not in path.read_text():
        draft = folder() / f".{path.name}.draft"
        draft.write_text(f"#!/bin/sh\n{line}\n")
        draft.chmod(0o755)
        draft.rename(path)
    return path
