"""Lines of text in the styles of a terminal: bold, dim, reversed, in one of its own colors."""

from __future__ import annotations

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
    """A line of parts; the style of each is words of the tables above."""

    def __init__(self, plain: str = "", style: str = "") -> None:
        self.plain = ""
        self.spans: list[Span] = []
        self.append(plain, style)

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
        pieces, at = [], 0
        for start, end, style in self.spans:
            if piece := self.plain[start:end]:
                pieces += [self.plain[at:start], f"\x1b[{_codes(style.split())}m{piece}\x1b[0m"]
                at = end
        return "".join([*pieces, self.plain[at:]])


def _codes(style: list[str]) -> str:
    """Return the codes of all attributes, and of the color."""
    attributes = [code for name, code in ATTRIBUTES.items() if name in style]
    return ";".join([*attributes, *[COLORS[name] for name in style if name in COLORS]])
