"""Short lines for people: what a tool does, what a question asks; without secrets, without bulk."""

from __future__ import annotations

import json
import re
from typing import Final

import msgspec
from msgspec import Raw, Struct

LONGEST_LINE: Final = 200  # of a command, question, prompt: what fits a line on a screen
ODD: Final = (msgspec.DecodeError, ValueError, RecursionError)  # what decoding may raise

_LONE = re.compile("[\ud800-\udfff]")  # half a character, as a cut in the middle of one leaves it


def whole(text: str) -> str:
    """Text that can be written: what a cut left of a character is marked as such."""
    return text if text.isascii() else _LONE.sub("\N{REPLACEMENT CHARACTER}", text)


class _Question(Struct):
    question: str = ""


class _Input(Struct):
    """The fields of a tool's input that say in a line what it does."""

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


_decode_input = msgspec.json.Decoder(_Input).decode
_INPUT = tuple(f for f in _Input.__struct_fields__ if f != "questions")

#: What looks like a secret in a command line, and so is not shown.
_SECRET = re.compile(
    r"""(?xi)
    \b(?: sk-[\w-]{8,} | gh[pousr]_\w{16,} | github_pat_\w{16,} | glpat-[\w-]{16,}
        | xox[abprs]-[\w-]{10,} | AKIA[0-9A-Z]{12,} | eyJ[\w-]{10,}\.[\w-]{10,}(?:\.[\w-]*)? )
    | (?<= :// ) [^\s/@:]+ : [^\s/@]+ (?= @ )
    | (?<= bearer\s ) \S+
    | (?: (?<= password[=\s:]) | (?<= passwd[=\s:]) | (?<= secret[=\s:]) | (?<= token[=\s:])
        | (?<= apikey[=\s:]) | (?<= api_key[=\s:]) | (?<= api-key[=\s:]) | (?<= _key= ) )
      \s* [^\s'"]+
    """
)
_HINT = re.compile(r"(?i)sk-|gh[pousr]_|_pat_|glpat|xox|akia|eyj|://|bearer|pass|secret|token|key")
_CONTROL = re.compile(r"[\x00-\x20\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")


def line(text: str, longest: int = LONGEST_LINE) -> str:
    """Text as one short line: no control characters, no secrets, the end cut."""
    if not text:
        return ""
    text = text[: longest * 4]
    if not text.isascii() or not text.isprintable() or "  " in text:
        text = whole(_CONTROL.sub(" ", text))
    text = text.strip()
    if _HINT.search(text):
        text = _SECRET.sub("***", text)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def tool_detail(tool: str, raw: Raw | bytes) -> str:
    """What a tool is about to do, in a line: the command, the file, the question."""
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
    for field in _INPUT:
        if (value := getattr(given, field)) is not None:
            return line(value)
    return ""


def _odd_detail(raw: bytes) -> str:
    """The same for an input of unexpected types (Codex gives a command as a list of words)."""
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
