"""The version of an installed program, as its place and the package around it show it."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Final

from .files import decoded, read, real

Version = tuple[int, ...]

LARGEST: Final = 1 << 20  # bytes of package.json
NUMBERS: Final = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9})")


def version_in(text: str) -> Version | None:
    """Return (2, 1, 332) for `2.1.332`, and None for anything else."""
    return numbers(NUMBERS.fullmatch(text))


def dotted(version: Version) -> str:
    """Return `2.1.332` for (2, 1, 332)."""
    return ".".join(map(str, version))


def numbers(found: re.Match[str] | None) -> Version | None:
    """Return the version that was found, if one was."""
    return tuple(map(int, found.groups())) if found else None


def version_at(program: str, name: str) -> Version | None:
    """Read the version from versions/2.1.332 (native installer) or package.json (npm).

    Only a package that installs a program of that `name` counts: a script of the user may be in
    one as well.
    """
    there = Path(real(program))
    if there.parent.name == "versions" and (named := version_in(there.name)):
        return named
    for folder in list(there.parents)[:3]:
        with contextlib.suppress(OSError):
            package = decoded(read(folder / "package.json", LARGEST, ours=False)[0]) or {}
            installs = package.get("bin")
            if isinstance(installs, dict) and name in installs:
                return numbers(NUMBERS.match(str(package.get("version"))))
    return None
