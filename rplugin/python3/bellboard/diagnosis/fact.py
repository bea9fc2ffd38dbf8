"""One finding of a diagnosis."""

from __future__ import annotations

from typing import Literal, NamedTuple


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
