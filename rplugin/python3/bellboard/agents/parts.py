"""Make the parts of a request from what a CLI says: whole, with what is hidden shown as marks.

This file does no I/O, knows no clock, and raises on no input.
"""

from __future__ import annotations

import msgspec

from ..core.lenient import Facts
from ..core.request import Part
from ..core.visible import marked, warnings


def part(kind: str, text: str, label: str = "", **more: str) -> Part:
    """Return a part with hidden characters shown as marks."""
    texts = {"text": text, **more}
    found = dict.fromkeys(w for given in texts.values() for w in warnings(given))
    shown = {name: marked(given) for name, given in texts.items()}
    return Part(kind, label, **shown, warnings=tuple(found))


class Input:
    """The members of a tool's input, each taken once, so that none is left out."""

    def __init__(self, given: Facts) -> None:
        self.left: Facts = dict(given)

    def text(self, name: str) -> str:
        """Take a text; leave what is none."""
        return self.left.pop(name) if isinstance(self.left.get(name), str) else ""

    def rest(self, label: str = "Also") -> tuple[Part, ...]:
        return (as_json(self.left, label),) if self.left else ()


def as_json(value: object, label: str = "") -> Part:
    try:
        encoded = msgspec.json.encode(value)
    except (ValueError, RecursionError):  # lone surrogates, of a request that is not complete
        return part("json", repr(value), label)
    return part("json", msgspec.json.format(encoded, indent=2).decode(), label)
