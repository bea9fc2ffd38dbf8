"""Edit JSON as text: find the position of each value, so that one can change and the rest stays.

This file does no I/O.  Anything that is not strict JSON (trailing commas, NaN, duplicate keys, and
comments where the CLI takes none) is refused with its line, because other programs may read it
differently.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final, NamedTuple

from .comments import Source

DEEPEST: Final = 200  # levels; anything deeper is hostile
MARK: Final = "\ufeff"  # byte order mark: some editors write it

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_LINE: Final = re.compile(r"\r\n|\n|\r")
_PLAIN: Final = r'[^"\\\x00-\x1f]*'
_STRING: Final = re.compile(rf'"{_PLAIN}(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{{4}}){_PLAIN})*"')
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?(?![\w.+-])")
_WORD: Final = re.compile(r"(?:true|false|null)(?!\w)")
_SCALARS: Final = (("string", _STRING), ("number", _NUMBER), ("word", _WORD))
_CLOSING: Final = {"object": "}", "array": "]"}


class Broken(ValueError):
    """The text is not JSON; the message names the line."""


@dataclass(slots=True)
class Node:
    """A value with its position in the text, and its key if it is in an object."""

    kind: str  # object | array | string | number | word | unread
    start: int
    end: int = 0
    key: str = ""
    begin: int = 0  # of the key, if there is one
    children: list[Node] = field(default_factory=list)

    def member(self, key: str) -> Node | None:
        """Return the value of a key, or None if it is missing or this is not an object."""
        if self.kind != "object":
            return None
        return next((child for child in self.children if child.key == key), None)


class Edit(NamedTuple):
    """Replace the characters from start to end with this text."""

    start: int
    end: int
    text: str


def applied(text: str, edits: Iterable[Edit]) -> str:
    """Apply edits that do not overlap."""
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def value(text: str, node: Node) -> Any:
    """Return the value of a node; raise `Broken` if Python cannot, as for a very long number."""
    try:
        return json.loads(text[node.start : node.end])
    except (ValueError, RecursionError):
        raise Broken(f"{_place(text, node.start)}: a value that is too long to read") from None


def parse(text: str, read: str) -> Node | None:
    """Parse a text; return None if it is blank.

    Of the top-level members, only the one named `read` is parsed in full.
    """
    reader = _Reader(text, read)
    reader.skip()
    if reader.at == len(text):
        return None
    root = reader.value(0)
    reader.skip()
    if reader.at < len(text):
        raise reader.broken("unexpected text after the end")
    return root


def _place(text: str, at: int) -> str:
    return f"line {len(_LINE.findall(text, 0, at)) + 1}"


def _once(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("duplicate key")


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_UNREAD: Final = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_no_number)


class _Reader:
    def __init__(self, text: str, read: str) -> None:
        self.text, self.read = text, read
        self.at = len(MARK) if text.startswith(MARK) else 0

    def broken(self, why: str, at: int | None = None) -> Broken:
        at = self.at if at is None else at
        return Broken(f"{_place(self.text, at)}: {why}")

    def skip(self) -> None:
        found = _SPACE.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def value(self, depth: int) -> Node:
        opening = self.text[self.at : self.at + 1]
        if opening in ("{", "["):
            if depth == DEEPEST:
                raise self.broken(f"more than {DEEPEST} levels deep")
            return self._container("object" if opening == "{" else "array", depth)
        for kind, pattern in _SCALARS:
            if found := pattern.match(self.text, self.at):
                self.at = found.end()
                return Node(kind, found.start(), found.end(), begin=found.start())
        raise self.broken(self._oddity())

    def _container(self, kind: str, depth: int) -> Node:
        node = Node(kind, self.at, begin=self.at)
        self.at += 1
        self.skip()
        keys: set[str] = set()
        while not self.text.startswith(_CLOSING[kind], self.at):
            if node.children:
                self._comma(_CLOSING[kind])
            begin = self.at
            key = self._key(keys) if kind == "object" else ""
            child = (self._unread() if not depth and key != self.read else None) or self.value(
                depth + 1
            )
            child.begin, child.key = begin, key
            node.children.append(child)
            self.skip()
        self.at += 1
        node.end = self.at
        return node

    def _unread(self) -> Node | None:
        """Skip a value 20 times faster than parsing it; return None if it is not plain JSON."""
        start = self.at
        with suppress(ValueError, RecursionError):
            _, self.at = _UNREAD.raw_decode(self.text, start)
            return Node("unread", start, self.at)
        return None

    def _comma(self, closing: str) -> None:
        if not self.text.startswith(",", self.at):
            raise self.broken(self._oddity(f"expected a comma or {closing}"))
        comma = self.at
        self.at += 1
        self.skip()
        if self.text.startswith(("}", "]"), self.at):
            raise self.broken("trailing comma", comma)

    def _key(self, keys: set[str]) -> str:
        found = _STRING.match(self.text, self.at)
        if found is None:
            raise self.broken(self._oddity("expected a key in double quotes"))
        key: str = json.loads(found.group()) if "\\" in found.group() else found.group()[1:-1]
        if key in keys:
            raise self.broken(f"duplicate key {found.group()[:60]}")
        keys.add(key)
        self.at = found.end()
        self.skip()
        if not self.text.startswith(":", self.at):
            raise self.broken(self._oddity("expected a colon"))
        self.at += 1
        self.skip()
        return key

    def _oddity(self, expected: str = "expected a value") -> str:
        """Describe what is wrong at this position."""
        rest = self.text[self.at : self.at + 12]
        if not rest:
            return "unexpected end of file"
        if rest.startswith(("//", "/*", "#")):
            return "JSON does not allow comments"
        if rest.startswith('"') and expected == "expected a value":
            return "unterminated string, or an invalid character or escape in it"
        found = re.match(r"[\w.+-]+|.", rest)
        return f"{expected}, not {found.group()}" if found else expected


class Layout:
    """The formatting of a text, so that additions match it."""

    def __init__(self, source: Source, root: Node | None) -> None:
        self.source, self.text = source, source.plain
        text = self.text
        first = root.children[0] if root and root.children else None
        before = text[root.start + 1 : first.begin] if root and first else ""
        self.in_lines = first is None or bool(_LINE.search(before))
        line = _LINE.search(text)
        self.line = line.group() if line else "\n"
        self.indent = _LINE.split(before)[-1] if first and self.in_lines else "  "
        tight = first is not None and '":' in text and '": ' not in text
        self.colon, self.comma = (":", ",") if tight else (": ", ", ")

    def render(self, value: Any, margin: str | None) -> str:
        """Format a value: over several lines indented by the margin, or (None) on one line."""
        if margin is None:
            return json.dumps(value, ensure_ascii=False, separators=(self.comma, self.colon))
        lines = json.dumps(value, ensure_ascii=False, indent=self.indent, separators=(",", ": "))
        return lines.replace("\n", self.line + margin)

    def add(self, to: Node, items: list[tuple[str, Any]]) -> list[Edit]:
        """Return the edits that append items; their keys matter only in an object."""
        return self._behind(to, items) if to.children else [self._first(to, items)]

    def _behind(self, to: Node, items: list[tuple[str, Any]]) -> list[Edit]:
        last = to.children[-1]
        begin = to.children[-2].end if len(to.children) > 1 else to.start + 1
        gap = self.text[begin : last.begin]
        if len(to.children) > 1:
            gap = gap.lstrip(" \t\r\n").removeprefix(",")
        margin = _LINE.split(gap)[-1] if _LINE.search(gap) else None
        at = last.end if margin is None else self.source.after_remark(last.end)
        if margin is not None and (at != last.end or self.source.between(begin, last.begin)):
            gap = self.line + margin
        if margin is None and not gap and self.comma == ", ":
            gap = " "
        added = ",".join(f"{gap}{self._item(to, key, item, margin)}" for key, item in items)
        if at == last.end:
            return [Edit(at, at, f",{added}")]
        return [Edit(last.end, last.end, ","), Edit(at, at, added)]

    def _first(self, to: Node, items: list[tuple[str, Any]]) -> Edit:
        noted = self.source.between(to.start, to.end)
        if not self.in_lines and not noted:
            parts = [self._item(to, key, item, None) for key, item in items]
            return Edit(to.start + 1, to.end - 1, self.comma.join(parts))
        outer = self._margin_at(to.start)
        inner = outer + self.indent
        parts = [self.line + inner + self._item(to, key, item, inner) for key, item in items]
        begin = noted[-1][1] if noted else to.start + 1
        return Edit(begin, to.end - 1, ",".join(parts) + self.line + outer)

    def _item(self, to: Node, key: str, item: Any, margin: str | None) -> str:
        text = self.render(item, margin)
        colon = self.colon if margin is None else ": "
        return (
            f"{json.dumps(key, ensure_ascii=False)}{colon}{text}" if to.kind == "object" else text
        )

    def _margin_at(self, at: int) -> str:
        """Return the indentation of the line at this position."""
        line = _LINE.split(self.text[:at])[-1].removeprefix(MARK)
        return line[: len(line) - len(line.lstrip(" \t"))]


def cut(source: Source, container: Node, children: list[Node]) -> list[Edit]:
    """Return the edits that remove some, but not all, children of a container."""
    gone = {id(child) for child in children}
    edits: list[Edit] = []
    before: Node | None = None
    for is_gone, run in groupby(container.children, lambda child: id(child) in gone):
        nodes = list(run)
        if not is_gone:
            before = nodes[-1]
            continue
        after = next((c for c in container.children if c.start > nodes[-1].start), None)
        noted = before is None or bool(source.between(before.end, nodes[0].begin))
        if after is not None and noted:
            edits += _cut_before(source, nodes, after.begin)
        elif before is not None:
            edits += _cut_behind(source, before.end, nodes)
        else:
            edits.append(Edit(nodes[0].begin, nodes[-1].end, ""))
    return edits


def _cut_behind(source: Source, end: int, nodes: list[Node]) -> Iterator[Edit]:
    """Yield the edits that remove nodes and the comma before them, but no comment there."""
    comments = source.between(end, nodes[0].begin)
    comma = source.plain.index(",", end)
    begin = comments[-1][1] if comments else end
    if comma < begin:
        yield Edit(comma, comma + 1, "")
    yield Edit(begin, nodes[-1].end, "")


def _cut_before(source: Source, nodes: list[Node], begin: int) -> Iterator[Edit]:
    """Yield the edits that remove nodes and the comma behind them, but no comment there."""
    start, end = nodes[0].begin, nodes[-1].end
    if not source.between(end, begin):
        yield Edit(start, begin, "")
        return
    comma = source.plain.index(",", end)
    yield Edit(start, end, "")
    yield Edit(comma, comma + 1, "")
