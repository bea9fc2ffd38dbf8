"""Find, add and remove our hooks in the text of a file, while everything else stays.

Most files list everybody's hooks as `{"hooks": {EVENT: [{"hooks": [HANDLER]}]}}`, a form that most
CLIs copied from Claude Code.  Their text is edited, in whatever layout it is: every other byte
stays, and `Before` says what was there, so that removing restores it.  What is not strict JSON
(trailing commas, NaN, duplicate keys, and comments where the CLI takes none) is refused with its
line, because other programs may read it differently.  Other files are ours alone.

This file does no I/O.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

MARK: Final = "\ufeff"  # byte order mark: some editors write it
WHOLE: Final = "*"  # stands for the events of a file of our own
ANY: Final = ("", "*")  # matchers that match everything

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_LINE: Final = re.compile(r"\r\n|\n|\r")
_LINE_END: Final = re.compile(r"[ \t]*,?[ \t]*(?=\r?(?:\n|\Z))")
_INK: Final = re.compile(r"[^\r\n]")
_PIECE: Final = re.compile(
    r'"(?:[^"\\]|\\.)*"?|(?P<comment>//[^\n]*?(?=\r?(?:\n|\Z))|/\*.*?\*/)|/\*.*', re.S
)
#: Text that Python reads although it is no JSON, or refuses although it is: a very long number.
_ODD: Final = re.compile(r'"(?:[^"\\]|\\.)*"|(NaN|-?Infinity|[0-9]{640,})', re.S)
_NAMES: Final = {dict: "an object", list: "a list", str: "a string", int: "a number"}

Ours = Callable[[str], bool]  # whether a command is ours
#: The members of our handler, as the CLI wants them.
HookHandler = Mapping[str, Any]
#: Place that was empty or missing → None if it did not exist, else the text inside the empty object
#: or list.  Places are "hooks", "hooks.EVENT", "" for the top object, and "file" for the whole text
#: if there was no top object.  A place that is not noted was not empty, or nothing is known about
#: it: if only our hooks are there now, it is removed with them.
Before = dict[str, "str | None"]


class NotJson(ValueError):
    """The text is not JSON; the message names the line."""


class Malformed(ValueError):
    """The settings do not have the expected form; the message names the place."""


class _Twice(ValueError):
    """An object has this key twice."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in pairs:
        if key in made:
            raise _Twice(key)
        made[key] = value
    return made


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_DECODER: Final = json.JSONDecoder()
_STRICT: Final = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_no_number)


# ---------------------------------------------------------------- the text


class JsonPart(NamedTuple):
    """A value in a text, and where it is; `begin` is where its key is, if it has one."""

    key: str
    value: Any
    begin: int
    start: int
    end: int


class Edit(NamedTuple):
    """Replace the characters from start to end with this text."""

    start: int
    end: int
    text: str


class JsonText:
    """A text that is read as JSON, and where its parts are; comments only if they are allowed."""

    def __init__(self, raw: str, comments: bool = False) -> None:
        self.raw = raw
        self.plain, self._comments = without_comments(raw) if comments else (raw, [])
        self._remarks = {to for at, to in self._comments if raw.startswith("//", at)}
        self.root = self._read()  # None for a blank text
        self._layout()

    def comments(self, start: int, end: int, among: Iterable[JsonPart] = ()) -> list[str]:
        """Return the comments that begin between two positions, and outside of these parts."""
        inner = [(part.begin, part.end) for part in among]
        return [
            self.raw[at:to]
            for at, to in self._comments
            if start <= at < end and not any(first <= at < last for first, last in inner)
        ]

    def parts(self, at: int) -> list[JsonPart]:
        """Return the parts of the object or list at a position."""
        text, found = self.plain, []
        is_object = text[at] == "{"
        at = self._skip(at + 1)
        while text[at] not in "}]":
            begin, key = at, ""
            if is_object:
                key, at = _DECODER.raw_decode(text, at)
                at = self._skip(self._skip(at) + 1)  # behind the colon
            value, end = _DECODER.raw_decode(text, at)
            found.append(JsonPart(key, value, begin, at, end))
            at = self._skip(end)
            if text[at] == ",":
                at = self._skip(at + 1)
        return found

    def member(self, of: JsonPart | None, key: str) -> JsonPart | None:
        """Return the value of a key, or None if the key is missing or the part is no object."""
        if of is None or not isinstance(of.value, dict):
            return None
        return next((part for part in self.parts(of.start) if part.key == key), None)

    def edited(self, edits: Iterable[Edit]) -> str:
        """Return the text after edits that do not overlap."""
        pieces, at = [], 0
        for edit in sorted(edits):
            pieces += [self.raw[at : edit.start], edit.text]
            at = edit.end
        return "".join([*pieces, self.raw[at:]])

    def add(self, to: JsonPart, items: list[tuple[str, Any]]) -> list[Edit]:
        """Return the edits that append items; their keys matter only in an object."""
        there = self.parts(to.start)
        ink = self._ink(to.end - 1)  # the end of its content
        if there:
            last = there[-1]
            begin = there[-2].end if len(there) > 1 else to.start + 1
            gap = self.plain[begin : last.begin].rpartition(",")[2]
            noted = self.comments(begin, ink)
            if not _LINE.search(gap):
                added = (self._item(to, key, item, None) for key, item in items)
                gap = self.comma[1:] if noted or not gap else gap
                return [Edit(last.end, last.end, "".join(f",{gap}{text}" for text in added))]
            margin = self._margin_at(last.begin)
            gap = self.line + margin if noted else gap
            text = ",".join(f"{gap}{self._item(to, key, item, margin)}" for key, item in items)
            if ink == last.end:
                return [Edit(ink, ink, f",{text}")]
            return [Edit(last.end, last.end, ","), Edit(ink, ink, text)]
        if not self.in_lines and ink == to.start + 1:
            added = (self._item(to, key, item, None) for key, item in items)
            return [Edit(ink, to.end - 1, self.comma.join(added))]
        outer = self._margin_at(to.start)
        inner = outer + self.indent
        added = (self.line + inner + self._item(to, key, item, inner) for key, item in items)
        return [Edit(ink, to.end - 1, ",".join(added) + self.line + outer)]

    def cut(self, there: list[JsonPart], gone: Collection[JsonPart]) -> Iterator[Edit]:
        """Yield the edits that remove some parts of an object or list, each with one comma."""
        begins = {part.begin for part in gone}
        last = max((part.begin for part in there if part.begin not in begins), default=-1)
        for n, part in enumerate(there):
            if part.begin not in begins:
                continue
            start = self._ink(part.begin)
            if start in self._remarks and not _LINE_END.match(self.raw, part.end):
                start = part.begin  # else the text behind would join the comment
            yield Edit(start, part.end, "")
            if part.begin < last:
                comma = self.plain.index(",", part.end)
            elif n:
                comma = self.plain.index(",", there[n - 1].end)
            else:
                continue
            yield Edit(comma, comma + 1, "")

    def render(self, value: Any, margin: str | None) -> str:
        """Format a value: over several lines indented by the margin, or (None) on one line."""
        if margin is None:
            return json.dumps(value, ensure_ascii=False, separators=(self.comma, self.colon))
        lines = json.dumps(value, ensure_ascii=False, indent=self.indent, separators=(",", ": "))
        return lines.replace("\n", self.line + margin)

    def _item(self, to: JsonPart, key: str, item: Any, margin: str | None) -> str:
        named = f"{json.dumps(key, ensure_ascii=False)}{self.colon if margin is None else ': '}"
        return (named if self.raw[to.start] == "{" else "") + self.render(item, margin)

    def _layout(self) -> None:
        """Find how the text is formatted, so that additions match it."""
        there = self.parts(self.root.start) if self.root and self.root.value else []
        before = self.plain[self.root.start + 1 : there[0].begin] if self.root and there else "\n"
        self.in_lines = bool(_LINE.search(before))
        self.indent = self._margin_at(there[0].begin) if there and self.in_lines else "  "
        line = _LINE.search(self.plain)
        self.line = line.group() if line and not (self._comments and line.group() == "\r") else "\n"
        is_tight = bool(there) and '":' in self.plain and '": ' not in self.plain
        self.colon, self.comma = (":", ",") if is_tight else (": ", ", ")

    def _margin_at(self, at: int) -> str:
        """Return the indentation of the line at a position."""
        line = _LINE.split(self.raw[:at])[-1].removeprefix(MARK)
        return line[: len(line) - len(line.lstrip(" \t"))]

    def _ink(self, at: int) -> int:
        """Return the position behind the last character that is no blank, before a position."""
        while at and self.raw[at - 1] in " \t\r\n":
            at -= 1
        return at

    def _skip(self, at: int) -> int:
        found = _SPACE.match(self.plain, at)
        return found.end() if found else at

    def _read(self) -> JsonPart | None:
        start = self._skip(len(MARK) if self.plain.startswith(MARK) else 0)
        if start == len(self.plain):
            return None
        try:
            value, end = _STRICT.raw_decode(self.plain, start)
        except json.JSONDecodeError as e:
            raise self._misspelt(e) from None
        except _Twice as e:
            why = f"duplicate key {json.dumps(str(e), ensure_ascii=False)[:60]}"
            raise self._broken(self._second(start), why) from None
        except RecursionError:
            raise self._broken(start, "more levels than can be read") from None
        except ValueError:
            odd = next((found for found in _ODD.finditer(self.plain) if found[1]), None)
            at, what = (odd.start(), odd[1]) if odd else (start, "0")
            why = "a value that is too long to read" if what.isdigit() else f"{what} is not JSON"
            raise self._broken(at, why) from None
        if (rest := self._skip(end)) < len(self.plain):
            raise self._broken(rest, "unexpected text after the end")
        return JsonPart("", value, start, start, end)

    def _broken(self, at: int, why: str) -> NotJson:
        return NotJson(f"line {len(_LINE.findall(self.plain, 0, at)) + 1}: {why}")

    def _misspelt(self, e: json.JSONDecodeError) -> NotJson:
        """Describe the error where Python has stopped: some people write JSON by hand."""
        text, at, why = self.plain, e.pos, e.msg[:1].lower() + e.msg[1:]
        if why.startswith(("expecting", "illegal")):  # before or behind a comma, by its version
            head = text[: at + text.startswith(",", at)].rstrip(" \t\r\n")
            rest = text[self._skip(len(head)) :][:2]
            if not rest:
                why = "unexpected end of file"
            elif rest in ("//", "/*") or rest[0] == "#":
                at, why = self._skip(len(head)), "JSON does not allow comments"
            elif head.endswith(",") and rest[0] in "}]":
                at, why = len(head) - 1, "trailing comma"
            elif found := re.compile(r"[\w.+-]+|.").match(text, at):
                why = f"{why.replace('expecting value', 'expecting a value')}, not {found[0]}"
        return self._broken(at, why.removesuffix(" at").removesuffix(" starting"))

    def _second(self, at: int, levels: int = 4) -> int:
        """Return where an object repeats a key, or the place of that object if it is deep."""
        seen: set[str] = set()
        with suppress(ValueError, IndexError, RecursionError):  # later text may be no JSON
            for part in self.parts(at):
                if part.key in seen:
                    return part.begin
                seen.update([part.key] if self.plain[at] == "{" else ())
                try:
                    _STRICT.raw_decode(self.plain, part.start)
                except _Twice:
                    return self._second(part.start, levels - 1) if levels else part.begin
        return at


def without_comments(raw: str) -> tuple[str, list[tuple[int, int]]]:
    """Return a text with blanks instead of its comments, and where these are."""

    def blanked(piece: re.Match[str]) -> str:
        return _INK.sub(" ", piece[0]) if piece["comment"] else piece[0]

    spans = [piece.span() for piece in _PIECE.finditer(raw) if piece["comment"]]
    return _PIECE.sub(blanked, raw), spans


# ---------------------------------------------------------------- among the hooks of others


class Found(NamedTuple):
    """Our hooks in a text, by event."""

    there: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    outdated: tuple[str, ...] = ()  # events whose hooks run another script than the kept one
    other: tuple[str, ...] = ()  # events whose hooks have other limits, of an older version


class OurHook(NamedTuple):
    """A handler that runs one of our commands."""

    event: str
    handler: JsonPart
    whole: bool  # whether it runs for the whole event, without a matcher


@dataclass(frozen=True)
class SharedFile:
    """A JSON file that lists everybody's hooks; ours are one handler for each event."""

    handlers: Mapping[str, HookHandler]
    ours: Ours
    has_comments: bool = False  # whether the CLI allows comments in it

    @property
    def events(self) -> tuple[str, ...]:
        return tuple(self.handlers)

    def put_in(self, text: str | None, before: Before) -> tuple[str, Before]:
        """Return the text with our hooks, and the places that were empty before."""
        text, before = self._without_surplus(text, before)
        there = JsonText(text or "", self.has_comments)
        groups = {event: [hook_group(handler)] for event, handler in self.handlers.items()}
        made: Before = {"hooks": None, **{f"hooks.{event}": None for event in groups}}
        if there.root is None:
            end = "\n" if there.comments(0, len(there.raw)) and not there.raw.endswith("\n") else ""
            top = JsonText("").render({"hooks": groups}, "")
            return f"{text or ''}{end}{top}\n", {"file": text, **made}
        _check(there.root.value)
        hooks = there.member(there.root, "hooks")
        if hooks is None:
            edits = there.add(there.root, [("hooks", groups)])
            return there.edited(edits), {**_emptiness(there, there.root, ""), **made}
        present = {entry.event: entry.handler for entry in _entries(there, self.ours)}
        lists = {part.key: part for part in there.parts(hooks.start)}
        before = dict(before) if present else {}
        edits, missing = [], {}
        for event, handler in self.handlers.items():
            if event in present:
                edits += _renewed(there, present[event], handler)
            elif event in lists:
                before |= _emptiness(there, lists[event], f"hooks.{event}")
                edits += there.add(lists[event], [("", hook_group(handler))])
            else:
                missing[event] = groups[event]
        if missing:
            before |= _emptiness(there, hooks, "hooks")
            before |= {f"hooks.{event}": None for event in missing}
            edits += there.add(hooks, list(missing.items()))
        return there.edited(edits), before

    def take_out(self, text: str, before: Before | None) -> str | None:
        """Return the text without our hooks, or None if there was no file before."""
        there = JsonText(text, self.has_comments)
        return _taken_out(there, _entries(there, self.ours), before or {})

    def look(self, text: str) -> Found:
        """Return which of our hooks are in a text."""
        entries = _entries(JsonText(text, self.has_comments), self.ours)
        there = {entry.event: entry.handler.value for entry in entries if entry.whole}
        known = {event: there[event] for event in there if event in self.handlers}
        same = {e: each["command"] == self.handlers[e]["command"] for e, each in known.items()}
        return Found(
            there=tuple(there),
            missing=tuple(event for event in self.handlers if event not in there),
            outdated=tuple(event for event in same if not same[event]),
            other=tuple(
                event
                for event, each in known.items()
                if same[event] and not self.handlers[event].items() <= each.items()
            ),
        )

    def is_kept(self, old: str | None, new: str | None) -> bool:
        """Return whether both texts have the same content besides ours; ValueError if unknown."""
        one, other = (JsonText(text or "", self.has_comments) for text in (old, new))
        if one.comments(0, len(one.raw)) != other.comments(0, len(other.raw)):
            raise ValueError("a comment among the hooks of bellboard would be lost; move it")
        kept = [without(text.root.value if text.root else {}, self.ours) for text in (one, other)]
        return bool(kept[0] == kept[1])

    def is_altered(self, text: str) -> bool:
        """Return whether a file that is to be removed has text that we did not write."""
        return False

    def _without_surplus(self, text: str | None, before: Before) -> tuple[str | None, Before]:
        """Remove entries of ours that are restricted, duplicate, or for an unwanted event."""
        if text is None:
            return None, {}
        there, seen, surplus = JsonText(text, self.has_comments), set(), []
        for entry in _entries(there, self.ours):
            if entry.event in seen or entry.event not in self.handlers or not entry.whole:
                surplus.append(entry)
            else:
                seen.add(entry.event)
        return (_taken_out(there, surplus, before), before) if surplus else (text, before)


def hook_group(handler: HookHandler) -> dict[str, Any]:
    """Return an entry that runs a handler for every occurrence of an event."""
    return {"hooks": [dict(handler)]}


def without(told: Any, ours: Ours) -> Any:
    """Return settings without our hooks, and without objects and lists that are empty then.

    Two settings that differ only in our hooks give equal results.
    """
    hooks = told.get("hooks") if isinstance(told, dict) else None
    if not isinstance(hooks, dict):
        return told
    left = {}
    for event, groups in hooks.items():
        rest = groups
        if isinstance(groups, list):
            rest = [less for group in groups if (less := _less(group, ours)) is not None]
        if rest != []:
            left[event] = rest
    others = {key: value for key, value in told.items() if key != "hooks"}
    return {**others, "hooks": left} if left else others


def _less(group: Any, ours: Ours) -> Any:
    """Return a group without our handlers; None if it has no other handlers."""
    inner = group.get("hooks") if isinstance(group, dict) else None
    if not isinstance(inner, list) or not inner:
        return group
    rest = [handler for handler in inner if not _is_ours(handler, ours)]
    return {**group, "hooks": rest} if rest else None


def _is_ours(handler: Any, ours: Ours) -> bool:
    command = handler.get("command") if isinstance(handler, dict) else None
    return isinstance(command, str) and ours(command)


def _check(told: Any) -> None:
    """Refuse settings to which hooks cannot be added."""
    _expect(told, dict, "the file")
    if "hooks" in told:
        _expect(told["hooks"], dict, "hooks")
        for event, groups in told["hooks"].items():
            _expect(groups, list, f"hooks.{event}")
            for n, group in enumerate(groups):
                _expect(group, dict, f"hooks.{event}[{n}]")
                _expect(group.get("hooks", []), list, f"hooks.{event}[{n}].hooks")


def _expect(told: Any, kind: type, place: str) -> None:
    if not isinstance(told, kind):
        name = _NAMES.get(int if type(told) is float else type(told), "true, false or null")
        raise Malformed(f"{place} is {name}, expected {_NAMES[kind]}")


def _groups(there: JsonText) -> Iterator[tuple[JsonPart, JsonPart, JsonPart]]:
    """Yield the list of each event with each of its groups, and the group's list of handlers."""
    hooks = there.member(there.root, "hooks")
    for event in there.parts(hooks.start) if hooks and isinstance(hooks.value, dict) else ():
        for group in there.parts(event.start) if isinstance(event.value, list) else ():
            inner = there.member(group, "hooks")
            if inner is not None and isinstance(inner.value, list):
                yield event, group, inner


def _entries(there: JsonText, ours: Ours) -> list[OurHook]:
    """Return our entries, in the order of the text."""
    return [
        OurHook(event.key, handler, group.value.get("matcher", "") in ANY)
        for event, group, inner in _groups(there)
        for handler in there.parts(inner.start)
        if _is_ours(handler.value, ours)
    ]


def _renewed(there: JsonText, handler: JsonPart, wanted: HookHandler) -> Iterator[Edit]:
    """Yield the edits that give a handler these members; its other members stay."""
    members = {part.key: part for part in there.parts(handler.start)}
    for key in wanted.keys() & members.keys():
        if members[key].value != wanted[key]:
            yield Edit(members[key].start, members[key].end, there.render(wanted[key], None))
    if missing := [(key, new) for key, new in wanted.items() if key not in members]:
        yield from there.add(handler, missing)


def _taken_out(there: JsonText, gone: list[OurHook], before: Before) -> str | None:
    """Return the text without these entries, and without objects and lists that only held them."""
    root, hooks = there.root, there.member(there.root, "hooks")
    if not gone or root is None or hooks is None:
        return there.raw
    starts = {entry.handler.start for entry in gone}
    edits: list[Edit] = []

    def is_noted(start: int, end: int, among: list[JsonPart], was: str | None) -> bool:
        """Return whether there are other comments around these parts than before; they stay."""
        old = [(was or "")[at:to] for at, to in without_comments(was or "")[1]]
        return there.comments(start, end, among) != old

    def emptied(part: JsonPart, place: str, children: list[JsonPart]) -> bool:
        """Remove the children; return whether the part itself has to be removed too."""
        inside, everything = before.get(place), there.parts(part.start)
        is_shared = len(children) < len(everything)
        if is_shared or is_noted(part.start, part.end, everything, inside):
            edits.extend(there.cut(everything, children))
            return False
        if inside is not None:
            edits.append(Edit(part.start + 1, part.end - 1, inside))
        return inside is None

    lists: dict[int, tuple[JsonPart, list[JsonPart]]] = {}
    for event, group, inner in _groups(there):
        handlers = there.parts(inner.start)
        out = [handler for handler in handlers if handler.start in starts]
        if out and len(out) == len(handlers):
            lists.setdefault(event.start, (event, []))[1].append(group)
        else:
            edits.extend(there.cut(handlers, out))
    emptied_lists = [
        event for event, groups in lists.values() if emptied(event, f"hooks.{event.key}", groups)
    ]
    if emptied_lists and emptied(hooks, "hooks", emptied_lists):
        members = there.parts(root.start)
        is_all = len(members) == 1 and "file" in before
        if is_all and not is_noted(0, len(there.raw), members, before["file"]):
            return before["file"]
        before = {"": "", **before}  # there always is a top object
        emptied(root, "", [hooks])
    return there.edited(edits)


def _emptiness(there: JsonText, part: JsonPart, place: str) -> Before:
    return {} if part.value else {place: there.raw[part.start + 1 : part.end - 1]}


# ---------------------------------------------------------------- a file of our own


@dataclass(frozen=True)
class OwnFile:
    """A file of our own, in a folder of a CLI; it has the methods of a `SharedFile`."""

    content: str
    ours: Ours
    mark: str = ""  # its start, if it is a program
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
    """Yield the command of each handler, or "" if unknown."""
    for handlers in hooks.values() if isinstance(hooks, dict) else ():
        for handler in handlers:
            given = handler if isinstance(handler, dict) else {}
            command = given.get("bash", given.get("command"))
            yield command if isinstance(command, str) else ""


Form = SharedFile | OwnFile  # the form of a file
