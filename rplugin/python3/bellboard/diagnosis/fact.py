"""One finding of a diagnosis."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from ..system import shipped


class Fact(NamedTuple):
    """A finding in words; `advice` says what to do about it."""

    level: Literal["ok", "info", "warn", "error"]
    text: str
    advice: str = ""
    section: str = ""


def ok(text: str) -> Fact:
    return Fact("ok", text)


def info(text: str, advice: str = "") -> Fact:
    return Fact("info", text, advice)


def warn(text: str, advice: str) -> Fact:
    """Return a finding that needs attention."""
    return Fact("warn", text, advice)


def error(text: str, advice: str) -> Fact:
    """Return a finding that stops something from working."""
    return Fact("error", text, advice)


def program(environ: Mapping[str, str]) -> str:
    """Return how to run `bellboard` in this user's shell: advice must work as it stands."""
    if shutil.which("bellboard", path=environ.get("PATH", "")):
        return "bellboard"
    own = Path(sys.executable).with_name("bellboard")
    if own.is_file():
        return shlex.quote(str(own))
    return shlex.join(shipped.program())
