"""Hostile text: nothing is left that a terminal acts on, reverses or hides."""

from __future__ import annotations

import json
import sys
import unicodedata

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellboard.core import words
from bellboard.core.text import as_json, line, plain, visible

#: Visible format characters: signs before numbers.
SEEN = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u0890\u0891\u08e2\U000110bd\U000110cd")


def test_no_invisible_character_is_left() -> None:
    """Of all there are: controls, format characters, line separators, surrogates."""
    unseen = {"Cc", "Cf", "Zl", "Zp", "Cs"}
    every = map(chr, range(sys.maxunicode + 1))
    hostile = [c for c in every if unicodedata.category(c) in unseen and c not in SEEN]
    left = [c for c in hostile if c != "\n" and c in visible(f"a{c}b")]
    assert [] == left
    assert [] == [c for c in hostile if c in plain(f"a{c}b") or c in line(f"a{c}b")]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("sa\u200bfe", "safe"),
        ("a\u2060b\u180ec\U000e0041d", "abcd"),
        ("invoice\u202egpj.exe", "invoice gpj.exe"),
        ("a\u2066b\u2069", "a b"),
        ("\u3164\u115fname", "name"),
        ("warn \u26a0\ufe0f\ufe0f\ufe0f it", "warn \u26a0\ufe0f it"),
        ("Z" + "\u0301" * 50 + "algo", "Z" + "\u0301" * 4 + "algo"),
        ("\x1b]0;title\x07\x9b31mred", "red"),
        ("über naïve 日本語 ✓ \U0001f600", "über naïve 日本語 ✓ \U0001f600"),
    ],
)
def test_deceptive_marks_are_removed_and_languages_stay(text: str, shown: str) -> None:
    assert shown == words.plain(text) == line(text)


@given(st.text())
def test_json_shows_only_visible_characters(text: str) -> None:
    """Programs decode the same value."""
    told = as_json(msgspec.json.encode({"text": text}))
    assert {"text": text} == json.loads(told)
    assert [c for c in told if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")] == [
        c for c in told if c in SEEN
    ]


@given(st.text())
def test_cleaning_twice_changes_nothing(text: str) -> None:
    """For any text."""
    assert plain(plain(text)) == plain(text)
    assert line(line(text)) == line(text)


@pytest.mark.parametrize(
    ("cwd", "detail", "shown"),
    [
        ("/srv/api", "/srv/api/src/a.py", "src/a.py"),
        ("/srv/api", "/srv/apis/a.py", "/srv/apis/a.py"),
        ("/srv/api", "/srv/api", "/srv/api"),
        ("", "/a.py", "/a.py"),
    ],
)
def test_a_file_below_the_folder_of_a_session_begins_there(
    cwd: str, detail: str, shown: str
) -> None:
    asks = {"session_id": "s", "status": "working", "tool": "Edit", "cwd": cwd, "detail": detail}
    assert words.doing(asks) == ("Edit", shown)
