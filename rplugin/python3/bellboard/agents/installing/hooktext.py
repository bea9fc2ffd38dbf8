"""Our hooks among others in the text of a JSON file: add, find and remove them.

The file lists them as `{"hooks": {EVENT: [{"hooks": [HANDLER]}]}}`, a form that most CLIs copied
from Claude Code.  This file does no I/O.  Texts are edited in place, so everything else keeps its
bytes, and `Before` records what was there, so that removing restores it.  A text that is not fully
understood is refused, with the place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from .comments import Source, source_of
from .jsontext import Edit, Layout, Node, applied, cut, parse, value

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


def entries(text: str, ours: Ours, comments: bool = False) -> list[Entry]:
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
