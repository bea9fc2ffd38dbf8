"""The colors of the text of a terminal, from its SGR sequences; all other sequences are dropped.

Such text is untrusted: what is shown of it is visible, and no number in it is believed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from .text import visible

Look = dict[str, str | int | bool]  # attributes of a highlight group of Neovim
MOST: Final = 500  # looks of one text; what has another one stays plain
_SGR: Final = re.compile(r"\x1b\[([\d;:]*)m", re.ASCII)
_FLAGS: Final = {1: "bold", 2: "faint", 3: "italic", 4: "underline", 7: "reverse"}
_SUB: Final = re.compile(r"(\d+):[\d:]*", re.ASCII)
_ANSI: Final = (
    *("#000000", "#cd3131", "#0dbc79", "#c5a60f", "#2472c8", "#bc3fbc", "#11a8cd", "#cccccc"),
    *("#767676", "#f14c4c", "#23d18b", "#e5c33b", "#3b8eea", "#d670d6", "#29b8db", "#ffffff"),
)
_STEPS: Final = (0, 95, 135, 175, 215, 255)  # of a color cube


class Painted(NamedTuple):
    """Rows of text, and where they have which look: row, first byte, byte after the last, look."""

    rows: list[str]
    spans: list[tuple[int, int, int, int]]
    looks: list[Look]


def painted(rows: Iterable[str]) -> Painted:
    """Separate the text of a terminal from its colors."""
    plain: list[str] = []
    spans: list[tuple[int, int, int, int]] = []
    looks: dict[tuple[tuple[str, str | int | bool], ...], int] = {}
    look: Look = {}
    for n, row in enumerate(rows):
        text, at = "", 0
        for piece, codes in _pieces(row):
            shown = visible(piece).replace("\n", " ")
            end = at + len(shown.encode())
            key = tuple(sorted(look.items()))
            if shown and key and (key in looks or len(looks) < MOST):
                spans.append((n, at, end, looks.setdefault(key, len(looks))))
            text, at = text + shown, end
            if codes is not None:
                look = _after(look, codes)
        plain.append(text)
    return Painted(plain, spans, [dict(key) for key in looks])


def _pieces(row: str) -> Iterator[tuple[str, str | None]]:
    """Yield each piece of text, and the codes that follow it; None at the end."""
    at = 0
    for found in _SGR.finditer(row):
        yield row[at : found.start()], found[1]
        at = found.end()
    yield row[at:], None


def _after(look: Look, sequence: str) -> Look:
    """Return the look of the text after a sequence."""
    look = dict(look)
    codes = iter([int(x[:4] or 0) for x in _SUB.sub(r"\1", sequence).split(";")])
    for code in codes:
        if code == 0:
            look = {}
        elif code in _FLAGS:
            look[_FLAGS[code]] = True
        elif code == 22:
            look = {k: v for k, v in look.items() if k not in ("bold", "faint")}
        elif code - 20 in _FLAGS:
            look.pop(_FLAGS[code - 20], None)
        elif code in (38, 48):
            _set(look, code == 48, _extended(codes))
        elif code in (39, 49):
            _set(look, code == 49, None)
        elif 30 <= code <= 47:
            _set(look, code >= 40, code % 10)
        elif 90 <= code <= 107:
            _set(look, code >= 100, code % 10 + 8)
    return look


def _extended(codes: Iterator[int]) -> int | str | None:
    """Return the color that the numbers after 38 or 48 mean."""
    kind = next(codes, None)
    if kind == 5:
        number = next(codes, 0)
        return number if number <= 255 else None
    if kind == 2:
        rgb = [next(codes, 0) for _ in range(3)]
        return "#{:02x}{:02x}{:02x}".format(*rgb) if max(rgb) <= 255 else None
    return None


def _set(look: Look, is_ground: bool, color: int | str | None) -> None:
    """Set a color for screens with true colors, and the nearest of 256 for others."""
    side = "bg" if is_ground else "fg"
    for key in (side, f"cterm{side}"):
        look.pop(key, None)
    if isinstance(color, int):
        look[side], look[f"cterm{side}"] = _rgb(color), color
    elif color:
        look[side], look[f"cterm{side}"] = color, _nearest(color)


def _rgb(number: int) -> str:
    if number < 16:
        return _ANSI[number]
    if number >= 232:
        return "#" + f"{8 + 10 * (number - 232):02x}" * 3
    cube = number - 16
    red, green, blue = (_STEPS[cube // n % 6] for n in (36, 6, 1))
    return f"#{red:02x}{green:02x}{blue:02x}"


def _nearest(rgb: str) -> int:
    """Return the number of the nearest color of the cube."""
    number = 16
    for at, unit in ((1, 36), (3, 6), (5, 1)):
        level = int(rgb[at : at + 2], 16)
        far = [abs(step - level) for step in _STEPS]
        number += unit * far.index(min(far))
    return number
