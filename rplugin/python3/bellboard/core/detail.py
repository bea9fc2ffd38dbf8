"""Short lines for display, without secrets: what a tool does, what a question asks."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Final

import msgspec
from msgspec import Raw, Struct

from .secrets import hide
from .visible import visible

LONGEST_LINE: Final = 200  # characters of a command, question or prompt to show
LONGEST_PATH: Final = 4096  # bytes on Linux, with the null character
ODD: Final = (msgspec.DecodeError, ValueError, RecursionError)  # errors of decoding

_LONE = re.compile("[\ud800-\udfff]")  # lone surrogates, left by a cut in the middle of a character


def whole(text: str) -> str:
    """Return text that can be encoded: lone surrogates are replaced."""
    return text if text.isascii() else _LONE.sub("\N{REPLACEMENT CHARACTER}", text)


class _Question(Struct):
    question: str = ""


class _Input(Struct):
    """The fields of a tool's input that describe what it does."""

    command: str | None = None
    file_path: str | None = None
    notebook_path: str | None = None
    pattern: str | None = None
    url: str | None = None
    query: str | None = None
    plan: str | None = None
    questions: list[_Question] | None = None
    subject: str | None = None
    description: str | None = None
    skill: str | None = None
    name: str | None = None
    script: str | None = None


_decode_input = msgspec.json.Decoder(_Input).decode
_INPUT = tuple(f for f in _Input.__struct_fields__ if f not in ("questions", "script"))
_META: Final = 4096  # characters at the start of a workflow's script, which describe it
_DESCRIBED: Final = re.compile(r"""\bdescription\s*:\s*(["'`])((?:\\.|(?!\1)[^\\])+)\1""")


def line(text: str, longest: int = LONGEST_LINE) -> str:
    """Return text as one short line: visible characters only, no secrets, truncated."""
    if not text:
        return ""
    most = longest * 4
    if len(text) > most:
        # Cut at a space: a truncated secret may not look like one.
        text = text[:most].rpartition(" ")[0] or text[:most]
    return _shown(text, longest)


@lru_cache(maxsize=256)  # a tool's hooks repeat its command, and each is decoded twice
def _shown(text: str, longest: int) -> str:
    text = hide(visible(whole(text)))
    if "\n" in text or "  " in text or text != text.strip():
        text = " ".join(text.split())
    return text if len(text) <= longest else text[: longest - 1] + "…"


def tool_detail(tool: str, raw: Raw | bytes) -> str:
    """Return what a tool is about to do, in one line: the command, the file, the question."""
    if not raw:
        return ""
    try:
        given = _decode_input(raw)
    except ODD:
        return _odd_detail(bytes(raw))
    if given.questions:
        return line(given.questions[0].question)
    if tool == "ExitPlanMode" and given.plan:
        return line(given.plan.lstrip("# \n"))
    if given.script and (described := _DESCRIBED.search(given.script[:_META])):
        return line(described[2])
    for field in _INPUT:
        if (value := getattr(given, field)) is not None:
            return line(value)
    return ""


def tool_file(raw: Raw | bytes) -> str:
    """Return the absolute path of the file that a tool works on, if it is a usable one."""
    try:
        given = _decode_input(raw)
    except ODD:
        return ""
    path = given.file_path or given.notebook_path or ""
    usable = path.startswith("/") and len(path) <= LONGEST_PATH and path.isprintable()
    return whole(path) if usable else ""


def _odd_detail(raw: bytes) -> str:
    """Do the same for an input of unexpected types (Codex gives a command as a list of words)."""
    try:
        given = json.loads(raw)
    except ODD:
        return ""
    if not isinstance(given, dict):
        return ""
    for field in _INPUT:
        value = given.get(field)
        if isinstance(value, list) and all(isinstance(x, str) for x in value):
            value = " ".join(value)
        if isinstance(value, str) and value:
            return line(whole(value))
    return ""
