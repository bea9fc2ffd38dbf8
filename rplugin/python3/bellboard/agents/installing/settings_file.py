"""Our hooks in the text of a file: found, put in and taken out, while everything else stays."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final, NamedTuple

# Comments in JSON: where they are, and the text without them, with every position unchanged.
#
# This file does no I/O.


_PIECE: Final = re.compile(
    r'"(?:[^"\\]|\\.)*"?|(?P<comment>//[^\n]*?(?=\r?(?:\n|\Z))|/\*.*?\*/)|/\*.*', re.S
)
_INK: Final = re.compile(r"[^\r\n]")
_LINE_END: Final = re.compile(r"[ \t]*(?=[\r\n]|\Z)")


class Source(NamedTuple):
    """A text, and the same with blanks instead of its comments."""

    raw: str
    plain: str
    spans: tuple[tuple[int, int], ...] = ()  # of the comments

    @property
    def comments(self) -> list[str]:
        """Return the comments, in order."""
        return [self.raw[start:end] for start, end in self.spans]

    def outside(self, start: int, end: int, inner: Collection[tuple[int, int]]) -> list[str]:
        """Return the comments that begin between two positions, and in none of the inner spans."""
        return [
            self.raw[at:to]
            for at, to in self.between(start, end)
            if not any(first <= at < last for first, last in inner)
        ]

    def between(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return the comments that begin between two positions."""
        return [span for span in self.spans if start <= span[0] < end]

    def after_remark(self, at: int) -> int:
        """Return the end of the comment that closes the line at a position, or the position."""
        for start, end in self.spans:
            if start >= at:
                is_next = not self.plain[at:start].strip(" \t") and "\n" not in self.raw[start:end]
                return end if is_next and _LINE_END.match(self.plain, end) else at
        return at


def source_of(text: str, allowed: bool) -> Source:
    """Return a text with its comments set apart, if they are allowed in it."""
    if not allowed:
        return Source(text, text)
    spans = tuple(found.span() for found in _PIECE.finditer(text) if found["comment"])
    return Source(text, _PIECE.sub(_blanked, text), spans)


def _blanked(piece: re.Match[str]) -> str:
    return _INK.sub(" ", piece[0]) if piece["comment"] else piece[0]


# Edit JSON as text: find the position of each value, so that one can change and the rest stays.
#
# This file does no I/O. Anything that is not strict JSON (trailing commas, NaN, duplicate keys,
# and comments where the CLI takes none) is refused with its line, because other programs may
# read it differently.


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


# Our hooks among others in the text of a JSON file: add, find and remove them.
#
# The file lists them as `{"hooks": {EVENT: [{"hooks": [HANDLER]}]}}`, a form that most CLIs
# copied from Claude Code. This file does no I/O. Texts are edited in place, so everything else
# keeps its bytes, and `Before` records what was there, so that removing restores it. A text
# that is not fully understood is refused, with the place.


Ours = Callable[[str], bool]  # whether a command is ours
#: What was at a place that was empty or missing: None if it did not exist, else the text inside the
#: empty object or list.  Places are "hooks", "hooks.EVENT", "" for the top object, and "file" for
#: the whole text if there was no top object.  If a place is not noted, it was not empty, or
#: nothing is known about it: if nothing but ours is there now, it goes with ours.
Before = dict[str, "str | None"]

#: The members of a handler that runs one of our commands, as the CLI wants them.
Handler = Mapping[str, Any]

NAMES: Final = {
    "object": "an object",
    "array": "a list",
    "string": "a string",
    "number": "a number",
}
ANY: Final = ("", "*")  # matchers that match everything


class Malformed(ValueError):
    """The settings do not have the expected form; the message names the place."""


class Entry(NamedTuple):
    """A handler that runs one of our commands."""

    event: str
    members: dict[str, Any]
    whole: bool  # runs for the whole event, not restricted by a matcher
    handler: Node

    @property
    def command(self) -> str:
        return str(self.members["command"])


def ours_in(text: str, ours: Ours, comments: bool = False) -> list[Entry]:
    """Return our entries, in the order of the text."""
    return _all(source_of(text, comments), ours)


def put_in(
    text: str | None,
    handlers: Mapping[str, Handler],
    ours: Ours,
    before: Before,
    comments: bool = False,
) -> tuple[str, Before]:
    """Return the text with exactly these handlers, by event, and what was there before.

    With `comments`, the CLI allows them in this file.
    """
    text, before = _without_surplus(text, handlers, ours, before, comments)
    source = source_of(text or "", comments)
    root = _checked(source.plain)
    if text is None or root is None:
        made: Before = {"file": text, **_made(handlers)}
        top = Layout(source_of("", comments), None).render({"hooks": _groups(handlers)}, "")
        end = "\n" if source.spans and not source.raw.endswith("\n") else ""
        return (text or "") + end + top + "\n", made
    layout = Layout(source, root)
    hooks = root.member("hooks")
    if hooks is None:
        edits = layout.add(root, [("hooks", _groups(handlers))])
        return applied(text, edits), {**_emptiness(text, root, ""), **_made(handlers)}
    there = {entry.event: entry for entry in _entries(source.plain, hooks, ours)}
    before = dict(before) if there else {}
    edits = []
    missing: dict[str, Handler] = {}
    for event, handler in handlers.items():
        if event in there:
            edits += _renewed(source.plain, layout, there[event].handler, handler)
        elif (list_ := hooks.member(event)) is not None:
            before |= _emptiness(text, list_, f"hooks.{event}")
            edits += layout.add(list_, [("", group_of(handler))])
        else:
            missing[event] = handler
    if missing:
        before |= _emptiness(text, hooks, "hooks")
        before |= {f"hooks.{event}": None for event in missing}
        edits += layout.add(hooks, list(_groups(missing).items()))
    return applied(text, edits), before


def take_out(text: str, ours: Ours, before: Before | None, comments: bool = False) -> str | None:
    """Return the text without our entries, or None if there was no file before."""
    source = source_of(text, comments)
    return _taken_out(source, _all(source, ours), before or {})


def without(told: Any, ours: Ours) -> Any:
    """Return settings without our hooks, and without what is empty then.

    Two settings that differ only in our hooks give equal results.
    """
    hooks = told.get("hooks") if isinstance(told, dict) else None
    if not isinstance(hooks, dict):
        return told
    left = {}
    for event, groups in hooks.items():
        rest = groups
        if isinstance(groups, list):
            rest = [group for group in groups if not _is_all_ours(group, ours)]
            rest = [_less(group, ours) for group in rest]
        if rest != []:
            left[event] = rest
    others = {key: value for key, value in told.items() if key != "hooks"}
    return {**others, "hooks": left} if left else others


def group_of(handler: Handler) -> dict[str, Any]:
    """Return an entry that runs a handler for every occurrence of an event."""
    return {"hooks": [dict(handler)]}


def _all(source: Source, ours: Ours) -> list[Entry]:
    root = parse(source.plain, "hooks")
    hooks = root.member("hooks") if root else None
    return list(_entries(source.plain, hooks, ours)) if hooks else []


def _renewed(text: str, layout: Layout, handler: Node, wanted: Handler) -> Iterator[Edit]:
    """Yield the edits that give a handler these members; others stay."""
    missing = []
    for key, new in wanted.items():
        node = handler.member(key)
        if node is None:
            missing.append((key, new))
        elif value(text, node) != new:
            yield Edit(node.start, node.end, layout.render(new, None))
    if missing:
        yield from layout.add(handler, missing)


def _taken_out(source: Source, gone: list[Entry], before: Before) -> str | None:
    text, root = source.raw, parse(source.plain, "hooks")
    hooks = root.member("hooks") if root else None
    if not gone or root is None or hooks is None:
        return text
    handlers = {entry.handler.start for entry in gone}
    edits: list[Edit] = []

    def is_noted(node: Node, start: int, end: int, before: str | None) -> bool:
        """Return whether there are other comments around its children than before; they stay."""
        inner = [(child.begin, child.end) for child in node.children]
        return source.outside(start, end, inner) != source_of(before or "", True).comments

    def emptied(node: Node, place: str, children: list[Node]) -> bool:
        """Remove the children; return whether the node itself has to go too."""
        inside = before.get(place)
        is_shared = len(children) < len(node.children)
        if is_shared or is_noted(node, node.start, node.end, inside):
            edits.extend(cut(source, node, children))
            return False
        if inside is not None:
            edits.append(Edit(node.start + 1, node.end - 1, inside))
        return inside is None

    events = []
    for event in _lists(hooks):
        groups = []
        for group, inner in _grouped(event):
            out = [handler for handler in inner.children if handler.start in handlers]
            if out and len(out) == len(inner.children):
                groups.append(group)
            else:
                edits.extend(cut(source, inner, out))
        if groups and emptied(event, f"hooks.{event.key}", groups):
            events.append(event)
    if events and emptied(hooks, "hooks", events):
        is_all = len(root.children) == 1 and "file" in before
        if is_all and not is_noted(root, 0, len(text), before["file"]):
            return before["file"]
        before = {"": "", **before}  # there is always an object
        emptied(root, "", [hooks])
    return applied(text, edits)


def _without_surplus(
    text: str | None,
    handlers: Mapping[str, Handler],
    ours: Ours,
    before: Before,
    comments: bool,
) -> tuple[str | None, Before]:
    """Remove entries of ours that are restricted, duplicate, or for an unwanted event."""
    if text is None:
        return None, {}
    seen: set[str] = set()
    surplus = []
    source = source_of(text, comments)
    for entry in _all(source, ours):
        if entry.event in seen or entry.event not in handlers or not entry.whole:
            surplus.append(entry)
        else:
            seen.add(entry.event)
    return (_taken_out(source, surplus, before), before) if surplus else (text, before)


def _checked(text: str) -> Node | None:
    """Parse a text and check that hooks can be added to it."""
    root = parse(text, "hooks")
    if root is None:
        return None
    _expect(root, "object", "the file")
    if (hooks := root.member("hooks")) is not None:
        _expect(hooks, "object", "hooks")
        for event in hooks.children:
            _expect(event, "array", f"hooks.{event.key}")
            for n, group in enumerate(event.children):
                place = f"hooks.{event.key}[{n}]"
                _expect(group, "object", place)
                if (inner := group.member("hooks")) is not None:
                    _expect(inner, "array", f"{place}.hooks")
    return root


def _expect(node: Node, kind: str, place: str) -> None:
    if node.kind != kind:
        found = NAMES.get(node.kind, "true, false or null")
        raise Malformed(f"{place} is {found}, expected {NAMES[kind]}")


def _lists(hooks: Node) -> Iterator[Node]:
    return (event for event in hooks.children if event.kind == "array")


def _grouped(event: Node) -> Iterator[tuple[Node, Node]]:
    for group in event.children:
        inner = group.member("hooks")
        if inner is not None and inner.kind == "array":
            yield group, inner


def _entries(text: str, hooks: Node, ours: Ours) -> Iterator[Entry]:
    for event in _lists(hooks):
        for group, inner in _grouped(event):
            matcher = group.member("matcher")
            whole = matcher is None or value(text, matcher) in ANY
            for handler in inner.children:
                command = handler.member("command")
                is_text = command is not None and command.kind == "string"
                if command is not None and is_text and ours(value(text, command)):
                    members = {child.key: value(text, child) for child in handler.children}
                    yield Entry(event.key, members, whole, handler)


def _groups(handlers: Mapping[str, Handler]) -> dict[str, Any]:
    return {event: [group_of(handler)] for event, handler in handlers.items()}


def _made(handlers: Mapping[str, Handler]) -> Before:
    return {"hooks": None, **{f"hooks.{event}": None for event in handlers}}


def _emptiness(text: str, node: Node, place: str) -> Before:
    return {} if node.children else {place: text[node.start + 1 : node.end - 1]}


def _handlers(group: Any) -> list[Any]:
    inner = group.get("hooks") if isinstance(group, dict) else None
    return inner if isinstance(inner, list) else []


def _is_one(handler: Any, ours: Ours) -> bool:
    command = handler.get("command") if isinstance(handler, dict) else None
    return isinstance(command, str) and ours(command)


def _is_all_ours(group: Any, ours: Ours) -> bool:
    handlers = _handlers(group)
    return bool(handlers) and all(_is_one(handler, ours) for handler in handlers)


def _less(group: Any, ours: Ours) -> Any:
    handlers = _handlers(group)
    return {**group, "hooks": [h for h in handlers if not _is_one(h, ours)]} if handlers else group


# How a file holds our hooks: among those of others, or as a file of our own.
#
# This file does no I/O.


WHOLE: Final = "*"  # stands for the events of a file of our own


class Found(NamedTuple):
    """Our hooks in a text, by event."""

    there: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    outdated: tuple[str, ...] = ()  # they run another script than the kept one
    other: tuple[str, ...] = ()  # they have other limits, as an older version wrote them


class Form(ABC):
    """What belongs in a file, and how to put it in and take it out."""

    #: The events of what is put in.
    events: tuple[str, ...]

    @abstractmethod
    def put_in(self, text: str | None, before: Before) -> tuple[str, Before]:
        """Return the text with our hooks, and what was there before."""

    @abstractmethod
    def take_out(self, text: str, before: Before | None) -> str | None:
        """Return the text without our hooks, or None if there was no file before."""

    @abstractmethod
    def look(self, text: str) -> Found:
        """Return which of our hooks are in a text."""

    @abstractmethod
    def is_kept(self, old: str | None, new: str | None) -> bool:
        """Return whether everything that is not ours is in both; ValueError if that is unknown."""

    def is_altered(self, text: str) -> bool:
        """Return whether a file that is to be removed has more than what we wrote."""
        return False


@dataclass(frozen=True)
class Beside(Form):
    """In a JSON file that lists everybody's hooks."""

    handlers: Mapping[str, Handler]
    ours: Ours
    comments: bool = False  # whether the CLI allows them in it
    events: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", tuple(self.handlers))

    def put_in(self, text: str | None, before: Before) -> tuple[str, Before]:
        return put_in(text, self.handlers, self.ours, before, self.comments)

    def take_out(self, text: str, before: Before | None) -> str | None:
        return take_out(text, self.ours, before, self.comments)

    def look(self, text: str) -> Found:
        entries = ours_in(text, self.ours, self.comments)
        there = {entry.event: entry for entry in entries if entry.whole}
        known = {event: there[event] for event in there if event in self.handlers}
        command = {e: entry.command == self.handlers[e]["command"] for e, entry in known.items()}
        return Found(
            there=tuple(there),
            missing=tuple(event for event in self.handlers if event not in there),
            outdated=tuple(event for event, same in command.items() if not same),
            other=tuple(
                event
                for event, entry in known.items()
                if command[event] and not self.handlers[event].items() <= entry.members.items()
            ),
        )

    def is_kept(self, old: str | None, new: str | None) -> bool:
        one, other = (source_of(text or "", self.comments) for text in (old, new))
        if one.comments != other.comments:
            raise ValueError("a comment among the hooks of bellboard would be lost; move it")
        return bool(self._others(one.plain) == self._others(other.plain))

    def _others(self, text: str) -> Any:
        settings = json.loads(text.removeprefix(MARK).strip() or "{}")
        return without(settings, self.ours)


@dataclass(frozen=True)
class Alone(Form):
    """A file of our own, among the files of others."""

    content: str
    ours: Ours
    mark: str = ""  # how it begins, if it is a program
    events = (WHOLE,)

    def put_in(self, text: str | None, before: Before) -> tuple[str, Before]:
        if text is None or not text.strip():
            return self.content, {"file": text}
        self._expect_ours(text)
        return self.content, before

    def take_out(self, text: str, before: Before | None) -> str | None:
        return (before or {}).get("file") if self._is_ours(text) else text

    def look(self, text: str) -> Found:
        if not text.strip():
            return Found(missing=self.events)
        self._expect_ours(text)
        return Found(there=self.events, outdated=() if text == self.content else self.events)

    def is_kept(self, old: str | None, new: str | None) -> bool:
        return True  # all of it is ours

    def is_altered(self, text: str) -> bool:
        return text != self.content

    def _expect_ours(self, text: str) -> None:
        if not self._is_ours(text):
            raise Malformed("it is not a file of bellboard; move it away")

    def _is_ours(self, text: str) -> bool:
        if self.mark:
            return text.startswith(self.mark)
        try:
            hooks = json.loads(text)["hooks"]
            commands = list(_commands(hooks))
        except (ValueError, KeyError, TypeError, RecursionError):
            return False
        return bool(commands) and all(map(self.ours, commands))


def _commands(hooks: Any) -> Iterator[str]:
    """Yield what each handler runs, or "" if that is unknown."""
    for handlers in hooks.values() if isinstance(hooks, dict) else ():
        for handler in handlers:
            given = handler if isinstance(handler, dict) else {}
            command = given.get("bash", given.get("command"))
            yield command if isinstance(command, str) else ""
