"""Find the files of `hooks/` in this installation: in a checkout or in the installed package."""

from __future__ import annotations

from pathlib import Path


def shipped(name: str) -> Path:
    """Return the path of one of them."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "hooks" / name
    return inside if inside.is_file() else package.parents[2] / "hooks" / name
