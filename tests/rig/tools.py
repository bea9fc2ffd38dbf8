"""luacheck, from Debian, where the system has none.

Looked up 2026-11: stylua is in npm only as WebAssembly (tests/lint runs it), and
lua-language-server is in none of Debian, PyPI and npm.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from rig import debian
from rig.cache import Missing, folder


def executable(name: str) -> Path:
    """The tool on PATH, else a private one."""
    if found := shutil.which(name):
        return Path(found)
    if name == "luacheck" and shutil.which("apt-get"):
        return luacheck()
    raise Missing(f"{name} is missing; install it and put it on PATH")


def luacheck() -> Path:
    """Debian's luacheck behind a line of shell that says where its Lua modules are."""
    root = debian.tree("luacheck", "trixie", ("lua-check",), programs=("lua5.1",))
    lua = root / "usr/share/lua/5.1"
    native = next((root / "usr/lib").glob("*/lua/5.1"))
    start = root / "luacheck"
    line = (
        f"LUA_PATH='{lua}/?.lua;{lua}/?/init.lua' LUA_CPATH='{native}/?.so' "
        f'exec {root}/usr/bin/lua5.1 {root}/usr/bin/luacheck "$@"'
    )
    if not start.exists() or line not in start.read_text():
        draft = folder() / ".luacheck.draft"
        draft.write_text(f"#!/bin/sh\n{line}\n")
        draft.chmod(0o755)
        draft.rename(start)
    return start
