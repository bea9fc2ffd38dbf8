"""One thing that was found, and how well it is."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Fact(NamedTuple):
    """In the words for people; `advice` says what to do about it."""

    level: Literal["ok", "info", "warn", "error"]
    text: str
    advice: str = ""
    section: str = ""


def ok(text: str) -> Fact:
    return Fact("ok", text)


def info(text: str, advice: str = "") -> Fact:
    return Fact("info", text, advice)


def warn(text: str, advice: str) -> Fact:
    """It works, but not as it should."""
    return Fact("warn", text, advice)


def error(text: str, advice: str) -> Fact:
    """It does not work."""
    return Fact("error", text, advice)
