"""Decode the payloads of hooks by a table of what a CLI calls things.

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
from ..core.text import ODD, line, tool_detail
from ..core.untrusted import Facts, members, text_of

#: How a session starts, as most CLIs say it → kind.
STARTS: Final = {"resume": "resume", "compact": "compacted"}
#: What an event of a subagent becomes, because it says nothing about the parent.
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
#: Field of an event → what most CLIs call it.
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
#: What begins the text of the files that a prompt names, where the CLI adds that to it.
REFERENCED: Final = "--- Content from referenced files ---"


def typed_prompt(top: Facts, facts: Facts) -> None:
    """Read of a prompt only what its user typed."""
    facts["prompt"] = text_of(top, "prompt").partition(REFERENCED)[0]


def failure(*keys: str) -> Reader:
    """Return a reader of why a turn failed."""

    def read(top: Facts, facts: Facts) -> str | None:
        facts["error"] = ": ".join(filter(None, (text_of(top, key) for key in keys))) or "unknown"
        return None

    return read


def from_key(field: str, key: str) -> Reader:
    """Return a reader of a field that has another key in some events."""

    def read(top: Facts, facts: Facts) -> str | None:
        facts[field] = text_of(top, key)
        return None

    return read


def kind_in(kinds: Mapping[str, str], field: str, *keys: str) -> Reader:
    """Return a reader of the kind that a field names, and of why, if that is a failure."""
    fail = failure(*keys)

    def read(top: Facts, facts: Facts) -> str | None:
        kind = kinds.get(text_of(top, field))
        if kind == "failure":
            fail(top, facts)
        return kind

    return read


class Words(NamedTuple):
    """What a CLI calls things.

    A kind is a row of TABLE_TEXT in `core/machine.py`, which says what it does to a session.
    """

    kinds: Mapping[str, str]  # event → kind
    read: Mapping[str, Reader] = {}  # event → what reads more of it, such as `from_key`
    #: Field → its key, of every event; where a key means something else in one, `from_key` reads
    #: that one.  `parent`: the session whose subagent this is.
    fields: Mapping[str, str] = FIELDS
    event: str = "hook_event_name"  # where a payload has its event; else the hook's argument is it
    #: Where it has the input of a tool.  Of that, a member of `SHOWN` in `core/text.py` is shown;
    #: `read` can set `detail` to another.
    given: str = "tool_input"
    tools: Mapping[str, str] = {}  # tool → its neutral name, if a rule knows that
    once: bool = False  # a plugin of ours reports it: nothing twice, and all in order


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
            facts[field] = line(facts[field])
    if facts.get("agent"):
        kind = BY_AGENT.get(kind, "note")
        facts.pop("transcript", None)  # that is the subagent's
    if kind in ("request", "agent request", "question", "agent question"):
        facts.setdefault("asks", "permission")
    said = (name + tool_id).encode("utf-8", "replace") if tool_id else payload
    key = key_of_one(payload, t) if words.once else crc32(said) or 1
    return Event(kind, name, t, clock, session, origin, key, in_order=words.once, **facts)


def key_of_one(payload: bytes, t: float) -> int:
    """Return a unique key, for an event that is never reported twice: equal ones are two events."""
    return crc32(repr(t).encode(), crc32(payload)) or 1


def of_input(tool: str, given: object) -> Facts:
    """Return what a tool does, and a number that is equal for equal inputs."""
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
