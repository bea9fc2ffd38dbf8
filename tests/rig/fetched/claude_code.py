"""The real Claude Code CLI, in pinned versions."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Final

from rig.fetched import node, npm
from rig.fetched.cache import Missing

NAME: Final = "@anthropic-ai/claude-code"
VERSION: Final = "2.1.332"
NEWEST: Final = "newest"  # in place of a version: what the registry calls `latest`
#: Versions, each with a digest of its packages' checksums in the registry when it was pinned.
PINNED: Final = {
    "2.1.76": "1187a3058500bfb909bb953ee27d6deee03a261eef9294dd81b6b8acc115044a",
    "2.1.119": "7ba012ca8a3241bb40583f33df9c913a01ab5d154e2310609418d0fe30925e2a",
    "2.1.200": "3295dc349bc968b81f88168313bbf3926de4807cf09c96ed8127996765a1e78f",
    "2.1.330": "3e9848d119bfdb9aca35e7951d2b91cc9b79663471e848078ed44c7162fc9851",
    VERSION: "5bfe9c031b44dbabb66bef52550c56f4c59283191379f931c9320d3b0fb09f11",
}
#: Those that no test runs, only a program that is started by hand.
BY_HAND: Final = frozenset({"2.1.200", "2.1.330"})
#: The versions that tests run, fetched before the first test.
VERSIONS: Final = tuple(version for version in PINNED if version not in BY_HAND)
#: Those that a short run of the tests on real CLIs leaves out.
OLD: Final = ("2.1.76", "2.1.119")


def executable(version: str = VERSION) -> Path:
    """Return the program of a version: a native binary, or a script for node (older)."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise Missing(f"{version!r} is not a full version, such as {VERSION}")

    def verify(folder: Path) -> None:
        if version in PINNED and (found := digest(folder)) != PINNED[version]:
            raise Missing(
                f"{NAME} {version} is not what was pinned: the registry's checksums give {found}"
            )

    package = npm.package(NAME, version, verify)
    native = sorted(package.parent.glob("claude-code-*-*/claude"))
    if native:
        return native[0]
    script = package / "cli.js"
    if not script.exists():
        raise Missing(f"Claude Code {version} has no program for this machine; remove {package}")
    node.node()  # its first line needs it; a home links it
    script.chmod(0o755)
    return script


def digest(folder: Path) -> str:
    """Return one digest of all checksums that npm verified in this folder, for every platform."""
    packages = json.loads((folder / "package-lock.json").read_text())["packages"]
    rows = (
        f"{path.removeprefix('node_modules/')} {package.get('integrity')}\n"
        for path, package in packages.items()
        if NAME in path
    )
    return hashlib.sha256("".join(sorted(rows)).encode()).hexdigest()


def resolved(wanted: str) -> str:
    """Return a version number; ask the registry for the newest one."""
    return npm.latest(NAME) if wanted == NEWEST else wanted


def numbers(version: str) -> tuple[int, ...]:
    """Return a version such as (2, 1, 332), to compare it."""
    return tuple(int(part) for part in version.split("."))
