"""Our hooks in the text of a settings file: add, find and remove them.

This file does no I/O.  Texts are edited in place, so everything else keeps its bytes, and `Before`
records what was there, so that removing restores it.  A text that is not fully understood is
refused, with the place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from .jsontext import (
    Edit,
    Layout,
    Node,
    applied,
    cut,
    parse,
    value,
)

Ours = Callable[[str], bool]  # whether a command is ours
#: What was at a place before, if it was empty: None if it did not exist, else the text inside the
#: empty object or list.  Places are "hooks", "hooks.EVENT", "" for the top object, and "file" for
#: the whole text if there was no top object.
Before = dict[str, "str | None"]

#: Seconds until the CLI ends a hook, where its usual time is too short: to wait for an answer.
TIMEOUTS: Final = {"PermissionRequest": 86_400}

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
    command: str
    timeout: object  # None if it has none
    whole: bool  # runs for the whole event, not restricted by a matcher
    group: Node
    handler: Node


def entries(text: str, ours: Ours) -> list[Entry]:
    """Return our entries, in the order of the text."""
    root = parse(text, "hooks")
    hooks = root.member("hooks") if root else None
    return list(_entries(text, hooks, ours)) if hooks else []


def put_in(
    text: str | None, commands: Mapping[str, str], ours: Ours, before: Before
) -> tuple[str, Before]:
    """Return the text with exactly these commands, by event, and what was there before."""
    text, before = _without_surplus(text, commands, ours, before)
    root = _checked(text or "")
    if text is None or root is None:
        made: Before = {"file": text, **_made(commands)}
        top = Layout("", None).render({"hooks": _groups(commands)}, "")
        return (text or "") + top + "\n", made
    layout = Layout(text, root)
    hooks = root.member("hooks")
    if hooks is None:
        edit = layout.add(root, [("hooks", _groups(commands))])
        return applied(text, [edit]), {**_emptiness(text, root, ""), **_made(commands)}
    there = {entry.event: entry for entry in _entries(text, hooks, ours)}
    before = dict(before) if there else {}
    edits: list[Edit] = []
    missing: dict[str, str] = {}
    for event, command in commands.items():
        if event in there:
            edits += _renewed(text, layout, there[event].handler, _handler_of(event, command))
        elif (list_ := hooks.member(event)) is not None:
            before |= _emptiness(text, list_, f"hooks.{event}")
            edits.append(layout.add(list_, [("", group_of(event, command))]))
        else:
            missing[event] = command
    if missing:
        before |= _emptiness(text, hooks, "hooks")
        before |= {f"hooks.{event}": None for event in missing}
        edits.append(layout.add(hooks, list(_groups(missing).items())))
    return applied(text, edits), before


def take_out(text: str, ours: Ours, before: Before | None) -> str | None:
    """Return the text without our entries, or None if there was no file before.

    Without `before`, remove everything that becomes empty.
    """
    return _taken_out(text, entries(text, ours), before)


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


def group_of(event: str, command: str) -> dict[str, Any]:
    """Return a settings entry that runs a command for every occurrence of an event."""
    return {"hooks": [_handler_of(event, command)]}


def _handler_of(event: str, command: str) -> dict[str, Any]:
    handler = {"type": "command", "command": command}
    return {**handler, "timeout": TIMEOUTS[event]} if event in TIMEOUTS else handler


def _renewed(text: str, layout: Layout, handler: Node, wanted: Mapping[str, Any]) -> Iterator[Edit]:
    """Yield the edits that give a handler these members; others stay."""
    missing = []
    for key, new in wanted.items():
        node = handler.member(key)
        if node is None:
            missing.append((key, new))
        elif value(text, node) != new:
            yield Edit(node.start, node.end, layout.render(new, None))
    if missing:
        yield layout.add(handler, missing)


def _taken_out(text: str, gone: list[Entry], before: Before | None) -> str | None:
    root = parse(text, "hooks")
    hooks = root.member("hooks") if root else None
    if not gone or root is None or hooks is None:
        return text
    handlers = {entry.handler.start for entry in gone}
    edits: list[Edit] = []

    def emptied(node: Node, place: str, children: list[Node]) -> bool:
        """Remove the children; return whether the node itself has to go too."""
        if len(children) < len(node.children):
            edits.extend(cut(node, children))
            return False
        inside = None if before is None else before.get(place, "")
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
                edits.extend(cut(inner, out))
        if groups and emptied(event, f"hooks.{event.key}", groups):
            events.append(event)
    if events and emptied(hooks, "hooks", events):
        if len(root.children) == 1 and before is not None and "file" in before:
            return before["file"]
        before = before or {}
        emptied(root, "", [hooks])
    return applied(text, edits)


def _without_surplus(
    text: str | None, commands: Mapping[str, str], ours: Ours, before: Before
) -> tuple[str | None, Before]:
    """Remove entries of ours that are restricted, duplicate, or for an unwanted event."""
    if text is None:
        return None, {}
    seen: set[str] = set()
    surplus = []
    for entry in entries(text, ours):
        if entry.event in seen or entry.event not in commands or not entry.whole:
            surplus.append(entry)
        else:
            seen.add(entry.event)
    return (_taken_out(text, surplus, before), before) if surplus else (text, before)


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
                if command is not None and command.kind == "string":
                    line = value(text, command)
                    if ours(line):
                        limit = handler.member("timeout")
                        timeout = value(text, limit) if limit is not None else None
                        yield Entry(event.key, line, timeout, whole, group, handler)


def _groups(commands: Mapping[str, str]) -> dict[str, Any]:
    return {event: [group_of(event, command)] for event, command in commands.items()}


def _made(commands: Mapping[str, str]) -> Before:
    return {"hooks": None, **{f"hooks.{event}": None for event in commands}}


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
