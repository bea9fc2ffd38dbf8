"""The colors of a preview: what the text of a terminal says of them, and nothing else of it."""

from __future__ import annotations

import time

import pytest

from bellboard.core.colors import MOST, painted

#: A color, a link, and sequences that have no place in a preview.
HOSTILE = (
    "a \x1b[1;38;5;208mred\x1b[0m \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\"
    " \x1b[2J\x1b(Band\x1b]52;c;QQ==\x07 \x1b[48;5;999mend\x1b[m"
)
ORANGE = {"bold": True, "fg": "#ff8700", "ctermfg": 208}


def test_only_colors_are_left_of_what_a_terminal_shows() -> None:
    shown = painted([HOSTILE])
    assert shown.rows == ["a red link and end"]
    assert shown.spans == [(0, 2, 5, 0)]
    assert shown.looks == [ORANGE]


@pytest.mark.parametrize(
    ("codes", "look"),
    [
        ("31", {"fg": "#cd3131", "ctermfg": 1}),
        ("97;44", {"fg": "#ffffff", "ctermfg": 15, "bg": "#2472c8", "ctermbg": 4}),
        ("38;2;255;135;0", {"fg": "#ff8700", "ctermfg": 208}),
        ("38;5;250", {"fg": "#bcbcbc", "ctermfg": 250}),
        ("1;3;4:3;7", {"bold": True, "italic": True, "underline": True, "reverse": True}),
        ("1;2;22;4", {"underline": True}),
        ("31;39;1", {"bold": True}),
        ("38;2;256;0;0;1", {"bold": True}),
        ("38;5", {"fg": "#000000", "ctermfg": 0}),
        ("99999999999999999999", None),
        ("", None),
    ],
)
def test_a_sequence_says_how_text_looks(codes: str, look: object) -> None:
    shown = painted([f"\x1b[{codes}mx"])
    assert shown.looks == ([look] if look else [])
    assert shown.spans == ([(0, 0, 1, 0)] if look else [])


def test_a_look_goes_on_in_the_next_row_and_counts_bytes() -> None:
    shown = painted(["ä\x1b[31mö", "x\x1b[0my"])
    assert shown.spans == [(0, 2, 4, 0), (1, 0, 1, 0)]


def test_a_screen_of_colors_is_read_quickly_and_not_all_of_it() -> None:
    begun = time.process_time()
    rows = ["".join(f"\x1b[38;2;{n % 256};{r};7mx" for n in range(200)) for r in range(200)]
    shown = painted(rows)
    assert len(shown.looks) == MOST
    assert time.process_time() - begun < 1.0
