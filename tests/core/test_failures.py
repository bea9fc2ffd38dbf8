"""Words for failures, where users read them."""

from __future__ import annotations

import ast
import sqlite3
from pathlib import Path

import msgspec
import pytest

from bellboard import system
from bellboard.fleet.nats_wire import Down
from bellboard.system.failures import Declined, described

PACKAGE = Path(str(system.__file__)).parents[1]
#: Files whose text is for whoever develops this: it is in a file to attach to a report.
FOR_REPORTS = {"failures.py"}


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (sqlite3.OperationalError("database or disk is full"), "no space left on the disk"),
        (sqlite3.OperationalError("disk I/O error"), "the disk reports an error"),
        (sqlite3.OperationalError("attempt to write a readonly database"), "it is read-only"),
        (sqlite3.OperationalError("no such table: sessions"), "no such table: sessions"),
        (sqlite3.DatabaseError("database disk image is malformed"), "its file is damaged"),
        (PermissionError(13, "Permission denied", "/a\x1b[31m/b"), "Permission denied: /a/b"),
        (OSError("no answer within 3 s"), "no answer within 3 s"),
        (TimeoutError(), "no answer in time"),
        (MemoryError(), "not enough memory"),
        (RecursionError("maximum recursion depth exceeded"), "it is nested too deeply"),
        (UnicodeDecodeError("utf-8", b"x", 0, 1, "bad"), "its text is not valid UTF-8"),
        (msgspec.ValidationError("Expected `str`"), "it cannot be read: Expected `str`"),
        (Declined("it no longer asks"), "it no longer asks"),
        (Down("the server went away"), "the server went away"),
        (KeyError("x"), "internal error: 'x'"),
    ],
)
def test_it_is_named_in_words(error: Exception, said: str) -> None:
    assert said == described(error)


def test_an_unexpected_one_says_where_it_was_raised() -> None:
    try:
        raise ValueError("odd")
    except ValueError as error:
        assert described(error).startswith("internal error: odd (test_failures.py:")


def test_no_other_place_names_a_class_of_an_exception() -> None:
    """`type(e).__name__` reads as OperationalError to users."""
    named = []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            of = getattr(node, "value", None)
            is_class = isinstance(of, ast.Call) and getattr(of.func, "id", "") == "type"
            if is_class and getattr(node, "attr", "") == "__name__":
                named.append(path.name)
    assert set(named) <= FOR_REPORTS, named
