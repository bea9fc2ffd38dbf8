"""The Program Status Protocol (OSC 7501, revision 0.4): what a program says about itself.

A program writes reports to its terminal.  Each replaces one record of that terminal: the root, or
one that an id names.  A pair that is no pair, or whose value has other characters than values may
have, is skipped; unknown keys are ignored, and the last value of a key counts.  But a broken limit,
an id that is none, text that is not base64 of plain text: then nothing of the report counts, even
where a later pair repeats the key.

`title` and `msg` are kept as they were sent, and anything may have sent them: they are shown only
through `detail.line`.

This file does no I/O, knows no clock, and tolerates any input.
"""

from __future__ import annotations

import re
from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

#: What a program may report of a part of its work, most urgent first.
REPORTED: Final = ("blocked", "error", "done", "working", "background", "dialog", "idle")
MOST_BYTES: Final = 4096  # of a sequence
MOST_RECORDS: Final = 256  # of a terminal; the least recently updated goes first

_STATES: Final = frozenset({"idle", "working", "done", "blocked", "error"})
_KINDS: Final = frozenset({"permission", "question", "auth"})
_CLEAR: Final = "clear"
_LASTING: Final = frozenset({"done", "error"})  # stay until the user has seen them
_PROGRESSING: Final = frozenset({"working", "blocked"})

_FRAME: Final = len("\x1b]7501;\x07")  # around a body, with the shorter of the two ends
_LONGEST_KEY: Final = 16
_LONGEST: Final = {"id": 128, "app": 32, "title": 256, "msg": 2732}  # bytes as sent
_LONGEST_TEXT: Final = {"title": 192, "msg": 2048}  # bytes of UTF-8

_KEY: Final = re.compile("[a-z]+")
_VALUE: Final = re.compile("[A-Za-z0-9_.,+/=-]*")
_APP: Final = re.compile("[A-Za-z0-9_.+-]+")
_ID: Final = re.compile("[A-Za-z0-9_.+-]{1,32}(?:/[A-Za-z0-9_.+-]{1,32}){0,7}")
_PERCENT: Final = re.compile("[0-9]{1,3}")
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f]")


class Discarded(ValueError):
    """The reason why a report counts for nothing."""


class Report(Struct, frozen=True, omit_defaults=True, gc=False):
    """A valid report; it replaces its record whole."""

    state: str
    id: str = ""  # the root
    kind: str = ""
    app: str = ""
    progress: int = -1
    title: str = ""
    msg: str = ""


class Record(Struct, frozen=True, omit_defaults=True, gc=False):
    """The last report about the program, or about one part of its work."""

    state: str
    since: float  # when its state began
    kind: str = ""
    app: str = ""
    progress: int = -1
    title: str = ""
    msg: str = ""


def parsed(body: str) -> Report:
    """Return the report that follows `7501;` in a sequence; raise Discarded if it is none."""
    if len(body.encode(errors="replace")) > MOST_BYTES - _FRAME:
        raise Discarded("the sequence is too long")
    if body.startswith("?"):
        raise Discarded("it is a query")
    values: dict[str, str] = {}
    for pair in body.split(":"):
        key, equals, value = (part.strip(" \t") for part in pair.partition("="))
        if not equals or not _KEY.fullmatch(key):
            continue
        if len(key) > _LONGEST_KEY:
            raise Discarded("a key is too long")
        if len(value) > _LONGEST.get(key, MOST_BYTES):
            raise Discarded(f"{key} is too long")
        # Without its id, a report about a part would be one about the whole program.
        if key == "id" and not _ID.fullmatch(value):
            raise Discarded("id is no path of names")
        if _VALUE.fullmatch(value):
            values[key] = _text(key, value) if key in _LONGEST_TEXT else value
    return _report(values)


def _text(key: str, value: str) -> str:
    """Return the text; its base64 may lack the padding, and is exact otherwise."""
    try:
        decoded = a2b_base64(value + "=" * (-len(value) % 4))
    except ValueError:
        decoded = b""
    # Python's decoder ignores what does not belong; encoded again, it would be another value.
    encoded = b2a_base64(decoded, newline=False).decode()
    if value not in (encoded, encoded.rstrip("=")):
        raise Discarded(f"{key} is not base64")
    if len(decoded) > _LONGEST_TEXT[key]:
        raise Discarded(f"{key} is too long")
    try:
        text = decoded.decode()
    except UnicodeDecodeError:
        raise Discarded(f"{key} is not UTF-8") from None
    if _CONTROL.search(text):
        raise Discarded(f"{key} has control characters")
    return text


def body_of(report: Report) -> str:
    """Return what follows `7501;` in the sequence of a report; raise Discarded if none can.

    Longer texts are cut.
    """
    texts = {key: _cut(getattr(report, key), most) for key, most in _LONGEST_TEXT.items()}
    report = replace(report, **texts)
    values = {
        "state": report.state,
        "id": report.id,
        "kind": report.kind,
        "app": report.app,
        "progress": str(report.progress) if report.progress >= 0 else "",
        "title": _encoded(report.title),
        "msg": _encoded(report.msg),
    }
    body = ":".join(f"{key}={value}" for key, value in values.items() if value)
    read = parsed(body)
    for key in values:
        if getattr(read, key) != (value := getattr(report, key)):
            raise Discarded(f"{key} {value} is not valid with {report.state}")
    return body


def is_app(name: str) -> bool:
    """Return whether a report may give a program that name."""
    return len(name) <= _LONGEST["app"] and bool(_APP.fullmatch(name))


def sequence(body: str) -> str:
    """Return the sequence that a program writes to its terminal."""
    return f"\x1b]7501;{body}\x1b\\"


def _cut(text: str, most: int) -> str:
    return text.encode("utf-8", "replace")[:most].decode("utf-8", "ignore")


def _encoded(text: str) -> str:
    return b2a_base64(text.encode(), newline=False).decode()


def _report(values: Mapping[str, str]) -> Report:
    """Return the report of pairs whose limits hold; a value without meaning is as good as none."""
    state = values.get("state", "")
    if state == _CLEAR:
        return Report(state, values.get("id", ""))
    if state not in _STATES:
        raise Discarded("its state is unknown" if state else "it has no state")
    kind, app = values.get("kind", ""), values.get("app", "")
    percent = values.get("progress", "")
    progress = int(percent) if _PERCENT.fullmatch(percent) else -1
    return Report(
        state,
        values.get("id", ""),
        kind if state == "blocked" and kind in _KINDS else "",
        app if is_app(app) else "",
        progress if state in _PROGRESSING and progress <= 100 else -1,
        values.get("title", ""),
        values.get("msg", ""),
    )


def taken(records: Mapping[str, Record], report: Report, t: float) -> dict[str, Record]:
    """Return the records of a terminal after a report, the least recently updated first."""
    named = report.id
    if report.state == _CLEAR:
        return {id: r for id, r in records.items() if named and not within(id, named)}
    after = dict(records)
    before = after.pop(named, None)
    while len(after) >= MOST_RECORDS:
        del after[next(iter(after))]
    since = before.since if before and before.state == report.state else t
    after[named] = Record(
        report.state, since, report.kind, report.app, report.progress, report.title, report.msg
    )
    return after


def within(id: str, other: str) -> bool:
    """Return whether a record is another one, or below it."""
    return id == other or id.startswith(other + "/")


def at_prompt(records: Mapping[str, Record]) -> dict[str, Record]:
    """Return the records left at the next prompt of the shell (OSC 133 A), or after the program."""
    return {id: r for id, r in records.items() if r.state in _LASTING}


def app_of(records: Mapping[str, Record], id: str) -> str:
    """Return the name of a record's program, which the nearest ancestor may have given."""
    while True:
        if (record := records.get(id)) and record.app:
            return record.app
        if not id:
            return ""
        id = id.rpartition("/")[0]


def stated(records: Mapping[str, Record]) -> str:
    """Return the status of a program from all of its records: any of them may ask."""
    states = {record.state for record in records.values()}
    if "" in records and "blocked" not in states:
        return records[""].state
    return next((x for x in REPORTED if x in states), "")


def asked(records: Mapping[str, Record]) -> Record:
    """Return the record of what a program asks: the oldest of its questions."""
    return min((r for r in records.values() if r.state == "blocked"), key=lambda r: r.since)
