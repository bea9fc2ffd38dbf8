"""Find or fetch Neovims by version, and real plugins to test with."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from rig.fetched import debian
from rig.fetched.cache import Missing

# Release series → the Debian suites to search, in this order.
LINES: dict[str, tuple[str, ...]] = {
    "0.10": ("trixie",),
    "0.12": ("sid", "forky"),
}
FLOOR = (0, 10)
NEWEST = "0.12"
PEERS = ("neovim-lualine", "neovim-plenary", "neovim-telescope")


def wanted() -> list[str]:
    """Return the Neovims that the tests run on: the newest, or BELLBOARD_NVIMS="0.10 0.12"."""
    return os.environ.get("BELLBOARD_NVIMS", NEWEST).split()


def release(path: str | Path) -> tuple[int, ...]:
    """Return (0, 10, 4) for `NVIM v0.10.4`; empty if the program does not run."""
    try:
        said = subprocess.run(
            [path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True
        ).stdout
    except OSError:
        return ()
    number = said.partition("NVIM v")[2].split("\n")[0].partition("-")[0].partition("+")[0]
    return tuple(int(part) for part in number.split(".") if part.isdigit())


def installed(wanted: str) -> Path | None:
    """Return the nvim on PATH if it is of that series (`stable`, `nightly`: any from 0.10 on)."""
    found = shutil.which("nvim")
    if found is None:
        return None
    has = release(found)
    fits = has >= FLOOR if wanted not in LINES else ".".join(map(str, has[:2])) == wanted
    return Path(found) if fits else None


def executable(wanted: str) -> Path:
    """Return a program that needs no wrapper and no environment."""
    if wanted not in (*LINES, "stable", "nightly"):
        raise Missing(f"no Neovim line {wanted!r} here; one of {', '.join(LINES)}, stable, nightly")
    if found := installed(wanted):
        return found
    if wanted == "nightly":
        raise Missing("Neovim nightly is not packaged; put its nvim on PATH")
    return _fetched(wanted if wanted in LINES else NEWEST)


def _fetched(line: str) -> Path:
    """Return Debian's Neovim of that series."""
    package = f"neovim={line}.*"
    try:
        root = debian.tree(f"nvim-{line}", LINES[line], (package,), programs=("nvim",))
    except Missing as missing:
        raise Missing(f"{missing} (or put an nvim {line} on PATH)") from None
    return root / "usr/bin/nvim"


def peer(name: str) -> Path:
    """Return the runtimepath folder of a plugin in Debian, with its dependencies."""
    package = name if name.startswith("neovim-") else f"neovim-{name}"
    if package not in PEERS:
        raise Missing(f"no peer {name!r}; one of {', '.join(PEERS)}")
    root = debian.tree("peers", ("sid",), PEERS)
    return _runtime(root, package.removeprefix("neovim-"))


def _runtime(root: Path, plugin: str) -> Path:
    """Return the folder under `root` whose lua/ has the plugin."""
    for lua in root.glob(f"usr/share/**/lua/{plugin}"):
        return lua.parents[1]
    raise Missing(f"the package neovim-{plugin} holds no lua/{plugin}; remove {root}")
