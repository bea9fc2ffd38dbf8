"""Decode the hook events of Codex.

Only fields that a rule or a screen needs are read; of prompts and tool inputs, only a short line is
kept.
"""

from __future__ import annotations

import math
from typing import Any, Final
from zlib import crc32

import msgspec
from msgspec import Raw, Struct

from ....core.events import Event, Origin, is_id, junk
from ....core.request import shown_digest_of
from ....core.text import ODD, line, tool_detail
from ....core.untrusted import encoded, members, object_of, text_of, value_of
from ...dialect import BY_AGENT, STARTS
from .names import KINDS, QUESTIONS


class Payload(Struct, gc=False):
    """The fields of a hook's payload that are read."""

    session_id: str
    hook_event_name: str
    tool_name: str | None = None
    tool_use_id: str | None = None
    tool_input: Raw = Raw(b"")
    agent_id: str | None = None
    agent_type: str | None = None
    cwd: str | None = None
    transcript_path: str | None = None
    permission_mode: str | None = None
    model: str | None = None
    source: str | None = None
    reason: str | None = None
    trigger: str | None = None
    prompt: str | None = None
    last_assistant_message: str | None = None


_decode = msgspec.json.Decoder(Payload).decode
_TEXTS: Final = tuple(f for f in Payload.__struct_fields__ if f != "tool_input")


def hook(
    payload: bytes, t: float, clock: float, origin: Origin, truncated: bool = False, name: str = ""
) -> Event:
    """Decode a hook's payload; return junk, with the reason, if it cannot be decoded."""
    if not (math.isfinite(t) and t > 0):
        return junk("invalid time", clock, clock)
    try:
        p = _leniently(payload, truncated) if truncated else _decode(payload)
    except ODD:
        try:
            p = _leniently(payload, truncated)
        except ODD as e:
            return junk(str(e)[:120], t, clock)
    name = p.hook_event_name[:60]
    if not is_id(p.session_id):
        return junk("no usable session id", t, clock, name or "junk")
    kind = KINDS.get(name)
    if kind is None:
        return Event("unknown", name, t, clock, p.session_id, origin)
    facts = _facts(p)
    if p.tool_name in QUESTIONS and kind == "tool":
        kind = "question"
    elif kind == "start":
        kind = STARTS.get(facts["source"], kind)
    elif kind == "request":
        facts["shown_digest"] = shown_digest_of(p.tool_input)
        facts["asks"] = "permission"
    if p.agent_id:
        kind = BY_AGENT.get(kind, "note")
    key = crc32((name + p.tool_use_id).encode()) if p.tool_use_id else crc32(payload)
    return Event(kind, name, t, clock, p.session_id, origin, key or 1, **facts)


def _facts(p: Payload) -> dict[str, Any]:
    tool = p.tool_name or ""
    facts: dict[str, Any] = {
        "agent": p.agent_id or "",
        "agent_type": p.agent_type or "",
        "cwd": p.cwd or "",
        "transcript": "" if p.agent_id else p.transcript_path or "",  # that is the subagent's
        "mode": p.permission_mode or "",
        "model": p.model or "",
        "source": p.source or p.reason or p.trigger or "",
        "prompt": line(p.prompt or ""),
        "message": line(p.last_assistant_message or ""),
        "tool": tool,
        "tool_id": p.tool_use_id or "",
    }
    if tool:
        given = object_of(value_of(p.tool_input) if p.tool_input else None)
        command = text_of(given, "command")
        # The input of a request has more than the input of its tool.
        facts["tool_key"] = crc32(command.encode("utf-8", "replace") if command else p.tool_input)
        facts["detail"] = tool_detail(tool, p.tool_input)
        facts["asks"] = QUESTIONS.get(tool, "")
    return facts


def _leniently(payload: bytes, truncated: bool) -> Payload:
    """Decode unexpected JSON: use the values that have the right type."""
    top = members(payload, truncated)
    p = Payload(text_of(top, "session_id"), text_of(top, "hook_event_name"))
    if not p.hook_event_name:
        raise ValueError("no event name")
    for name in _TEXTS:
        if text := text_of(top, name):
            setattr(p, name, text)
    if top.get("tool_input") is not None:
        p.tool_input = Raw(encoded(top["tool_input"]))
    return p
