"""Decode the payloads of hooks by a table of a CLI's names.

Only fields that a rule or a screen needs are read; of prompts and tool inputs, only a short line is
kept.  This file does no I/O, knows no clock, and tolerates any input.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple
from zlib import crc32

import msgspec

from ..core.events import LINES, LONGEST_ID, Event, Origin, is_id, junk
from ..core.request import shown_digest_of
from ..core.text import ODD, line, prompt_line, tool_detail
from ..core.untrusted import Facts, members, text_of

#: Start of a session in the words of most CLIs → kind.
STARTS: Final = {"resume": "resume", "compact": "compacted"}
#: Kind of an event → its kind from a subagent, where it says nothing about the parent.
BY_AGENT: Final = {
    "tool": "agent tool",
    "question": "agent question",
    "request": "agent request",
    "granted": "agent tool end",
    "tool end": "agent tool end",
    "batch": "agent batch",
    "agent start": "agent start",
    "agent stop": "agent stop",
    "form": "agent request",
    "form answer": "agent tool end",
}
#: Reads more of a payload into the facts of its event, and may return a more exact kind.
Reader = Callable[[Facts, Facts], str | None]
#: Field of an event → its name in most CLIs.
FIELDS: Final[Mapping[str, str]] = {
    "session_id": "session_id",
    "agent": "agent_id",
    "agent_type": "agent_type",
    "cwd": "cwd",
    "transcript": "transcript_path",
    "mode": "permission_mode",
    "model": "model",
    "source": "source",
    "prompt": "prompt",
    "message": "last_assistant_message",
    "prompt_id": "prompt_id",
    "tool": "tool_name",
    "tool_id": "tool_use_id",
}
#: Start of the text that some CLIs add to a prompt: the files that it names.
REFERENCED: Final = "--- Content from referenced files ---"


def typed_prompt(top: Facts, facts: Facts) -> None:
    """Read only the typed part of a prompt."""
    facts["prompt"] = text_of(top, "prompt").partition(REFERENCED)[0]


def failure(*keys: str) -> Reader:
    """Return a reader of why a turn failed."""

    def read(top: Facts, facts: Facts) -> str | None:
        facts["error"] = ": ".join(filter(None, (text_of(top, key) for key in keys))) or "unknown"
        return None

    return read


def from_key(field: str, key: str) -> Reader:
    """Return a reader of a field, for events in which it has another key."""

    def read(top: Facts, facts: Facts) -> str | None:
        facts[field] = text_of(top, key)
        return None

    return read


def kind_in(kinds: Mapping[str, str], field: str, *keys: str) -> Reader:
    """Return a reader of the kind that a field names, and, for a failure, of its reason."""
    fail = failure(*keys)

    def read(top: Facts, facts: Facts) -> str | None:
        kind = kinds.get(text_of(top, field))
        if kind == "failure":
            fail(top, facts)
        return kind

    return read


class Words(NamedTuple):
    """A CLI's names for events, fields and tools.

    A kind is a row of TABLE_TEXT in `core/machine.py`, which has its effect on a session.
    """

    kinds: Mapping[str, str]  # event → kind
    read: Mapping[str, Reader] = {}  # event → a reader of more fields, such as `from_key`
    #: Field → its key in every event; for an event in which the key means something else, use
    #: `from_key`.  `parent` is the session whose subagent this is.
    fields: Mapping[str, str] = FIELDS
    event: str = "hook_event_name"  # key of the event, or else the hook's argument is it
    #: Key of a tool's input.  The shown member of it is in `SHOWN` in `core/text.py`, unless `read`
    #: sets `detail` to another.
    given: str = "tool_input"
    tools: Mapping[str, str] = {}  # tool → its neutral name in rules
    once: bool = False  # our plugin reports: no event twice, and all in order


def event_of(
    payload: bytes, t: float, clock: float, origin: Origin, truncated: bool, name: str, words: Words
) -> Event:
    """Decode a payload; return junk, with the reason, if it cannot be decoded."""
    if not (math.isfinite(t) and t > 0):
        return junk("invalid time", clock, clock)
    try:
        top = members(payload, truncated)
    except ODD as e:
        return junk(str(e)[:120], t, clock)
    name = (text_of(top, words.event) or name)[:60]
    if not name:
        return junk("no event name", t, clock)
    texts = {field: text_of(top, key) for field, key in words.fields.items()}
    facts: Facts = {field: text for field, text in texts.items() if text}
    session = facts.pop("session_id", "")
    session = facts.pop("parent", "") or session
    if not is_id(session) or len(facts.get("agent", "")) > LONGEST_ID:
        return junk("no usable session id", t, clock, name)
    kind = words.kinds.get(name)
    if kind is None:
        return Event("unknown", name, t, clock, session, origin)
    tool_id = facts.get("tool_id", "")
    if tool := facts.get("tool", ""):
        facts["tool"] = words.tools.get(tool, tool)
        facts |= of_input(tool, top.get(words.given))
    if (read := words.read.get(name)) is not None:
        kind = read(top, facts) or kind
    for field in LINES:
        if field in facts:
            facts[field] = (prompt_line if field == "prompt" else line)(facts[field])
    if facts.get("agent"):
        kind = BY_AGENT.get(kind, "note")
        facts.pop("transcript", None)  # the subagent's transcript
    if kind in ("request", "agent request", "question", "agent question"):
        facts.setdefault("asks", "permission")
    said = (name + tool_id).encode("utf-8", "replace") if tool_id else payload
    key = key_of_one(payload, t) if words.once else crc32(said) or 1
    return Event(kind, name, t, clock, session, origin, key, in_order=words.once, **facts)


def key_of_one(payload: bytes, t: float) -> int:
    """Return a unique key, as equal payloads of an event that is never reported twice are two."""
    return crc32(repr(t).encode(), crc32(payload)) or 1


def of_input(tool: str, given: object) -> Facts:
    """Return the detail of a tool's input, and a number that is equal for equal inputs."""
    if not isinstance(given, dict):
        return {}
    try:
        encoded = msgspec.Raw(msgspec.json.encode(given, order="deterministic"))
    except (ValueError, RecursionError):  # lone surrogates, numbers without a limit
        return {}
    return {
        "tool_key": crc32(encoded),
        "detail": tool_detail(tool, encoded),
        "shown_digest": shown_digest_of(encoded),
    }
