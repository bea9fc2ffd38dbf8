"""Lines of text in the styles of a terminal: bold, dim, reversed, in one of its own colors."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from ..core.text import head, width

ATTRIBUTES: Final = {"bold": "1", "dim": "2", "reverse": "7"}
COLORS: Final = {
    "red": "31",
    "green": "32",
    "yellow": "33",
    "magenta": "35",
    "cyan": "36",
    "bright_blue": "94",
}


class Span(NamedTuple):
    """A part of a text with a style of its own."""

    start: int
    end: int
    style: str


class StyledText:
    """A line; a style is words of the tables above, and parts add theirs to the line's."""

    def __init__(self, plain: str = "", style: str = "") -> None:
        self.plain, self.style = plain, style
        self.spans: list[Span] = []

    def append(self, text: str, style: str = "") -> StyledText:
        """Append a part, and return the line."""
        if style:
            self.spans.append(Span(len(self.plain), len(self.plain) + len(text), style))
        self.plain += text
        return self

    def truncate(self, columns: int, pad: bool = False) -> None:
        """Cut the line where a terminal of that width ends; `pad` makes it that wide."""
        self.plain = head(self.plain, columns)
        if pad:
            self.plain += " " * (columns - width(self.plain))

    def rstrip(self) -> None:
        """Remove the blanks at the end."""
        self.plain = self.plain.rstrip()

    def drawn(self) -> str:
        """Return the line with the escape sequences of its styles."""
        return "".join(self._pieces())

    def _pieces(self) -> Iterator[str]:
        edges = {0, len(self.plain), *(edge for span in self.spans for edge in span[:2])}
        for start, end in pairwise(sorted(edges)):
            styles = [span.style for span in self.spans if span.start <= start < span.end]
            codes = _codes(" ".join([self.style, *styles]).split())
            piece = self.plain[start:end]
            yield f"\x1b[{codes}m{piece}\x1b[0m" if codes and piece else piece


def _codes(style: list[str]) -> str:
    """Return the codes of all attributes, and of the last color."""
    attributes = [code for name, code in ATTRIBUTES.items() if name in style]
    return ";".join([*attributes, *[COLORS[name] for name in style if name in COLORS][-1:]])
