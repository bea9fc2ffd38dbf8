"""An entry of a session's transcript, reduced to what evidence reads of it.

A transcript holds whole prompts, files and answers.  Nothing of that goes further than a short
line, and the fields that tell the state of the turn.  This file does no I/O and knows no clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ....core.detail import line, whole
from ....core.events import Event
from ....core.secrets import hide
from ...evidence import from_line
from .said import INTERRUPTED, REJECTED, TITLES

Entry = dict[str, Any]

LONGEST: Final = 300  # of a text: evidence keeps 200, shortened once more
TOLD_BY: Final = ("custom-title", "ai-title", "summary")
SYSTEM: Final = frozenset({"turn_duration", "stop_hook_summary", "api_error"})
NUMBERS: Final = ("retryAttempt", "maxRetries")
COUNTED: Final = ("hookErrors", "failedHookErrorIndexes")
MOST_HOOKS: Final = 20
SHORT: Final = ("toolDenialKind", "error", "promptId")
USAGE: Final = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
LATEST: Final = 6  # entries that tell how a turn stands: a tool, its result, an end
HEAD: Final = 200  # bytes in which an entry's type stands, where the CLI writes it first


def is_noise(raw: bytes) -> bool:
    """Whole requests to the API, large and private, and subagents' lines: not even decoded."""
    head = raw[:HEAD]
    return b'"type":"api-request' in head or b'"isSidechain":true' in head


def reduced(given: Mapping[str, Any]) -> Entry | None:
    """The fields that evidence reads; None for an entry that tells nothing."""
    kind = given.get("type")
    if given.get("isSidechain") or not isinstance(kind, str):
        return None
    kept: Entry = {"type": kind}
    if kind in TOLD_BY:
        kept |= {k: _cut(given[k]) for k in TITLES if isinstance(given.get(k), str)}
    elif kind == "system" and given.get("subtype") in SYSTEM:
        kept["subtype"] = given["subtype"]
        kept |= {k: given[k] for k in NUMBERS if type(given.get(k)) in (int, float)}
        counted = {k: given[k] for k in COUNTED if isinstance(given.get(k), list)}
        kept |= {k: [0] * min(len(found), MOST_HOOKS) for k, found in counted.items()}
    elif kind == "queue-operation":
        kept["operation"] = _cut(given.get("operation"))
    elif kind in ("user", "assistant"):
        message = given.get("message")
        if not isinstance(message, dict):
            return None
        kept |= {k: True for k in ("isMeta", "isCompactSummary") if given.get(k) is True}
        kept |= {k: True for k in ("isApiErrorMessage",) if given.get(k) is True}
        kept |= {k: _cut(given[k]) for k in SHORT if _is_text(given.get(k))}
        kept["message"] = _message(message)
    else:
        return None
    if isinstance(given.get("timestamp"), str):
        kept["timestamp"] = given["timestamp"][:40]
    return kept


def _message(given: Mapping[str, Any]) -> Entry:
    kept: Entry = {k: _cut(given[k]) for k in ("model", "stop_reason") if _is_text(given.get(k))}
    usage = given.get("usage")
    if isinstance(usage, dict):
        kept["usage"] = {k: usage[k] for k in USAGE if type(usage.get(k)) in (int, float)}
    content = given.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    blocks = content if isinstance(content, list) else []
    found = {
        b["type"]: b for b in reversed(blocks) if isinstance(b, dict) and _is_text(b.get("type"))
    }
    interrupted = [b for b in blocks if _begins(b, INTERRUPTED)]
    texts = interrupted[:1] or [found[k] for k in ("text",) if k in found]
    kept["content"] = [{"type": "text", "text": _cut(b.get("text"))} for b in texts]
    if (result := found.get("tool_result")) is not None:
        kept["content"].append(_result(result))
    if (use := found.get("tool_use")) is not None:
        given_input = use.get("input")
        kept["content"].append(
            {
                "type": "tool_use",
                "id": _cut(use.get("id")),
                "name": _cut(use.get("name")),
                "input": _short(given_input) if isinstance(given_input, dict) else {},
            }
        )
    return kept


def _result(block: Mapping[str, Any]) -> Entry:
    content = block.get("content")
    if isinstance(content, list):
        content = next((b.get("text") for b in content if isinstance(b, dict)), "")
    kept: Entry = {"type": "tool_result", "tool_use_id": _cut(block.get("tool_use_id"))}
    if isinstance(content, str) and content.startswith(REJECTED):
        kept["content"] = REJECTED
    return kept


def _short(given: Mapping[str, Any]) -> Entry:
    """A tool's input with its texts cut: what it does is said in a line made of them."""
    kept: Entry = {}
    for key, value in list(given.items())[:20]:
        if isinstance(value, str | int | float | None):
            kept[_cut(key)] = _cut(value) if isinstance(value, str) else value
        elif key == "questions" and isinstance(value, list):
            asked = [q.get("question") for q in value[:1] if isinstance(q, dict)]
            kept[key] = [{"question": _cut(text)} for text in asked]
        elif isinstance(value, list):
            kept[_cut(key)] = [_cut(x) for x in value[:20] if isinstance(x, str)]
    return kept


def _begins(block: object, text: str) -> bool:
    said = block.get("text") if isinstance(block, dict) else None
    return isinstance(said, str) and said.startswith(text)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _cut(value: object) -> str:
    """The beginning; of what is cut, half a secret may not look like one."""
    if not isinstance(value, str):
        return ""
    return whole(value if len(value) <= LONGEST else hide(value[: LONGEST * 4])[:LONGEST])


# ---------------------------------------------------------------- what they tell


def told_by(session_id: str, entry: Entry, now: float) -> tuple[dict[str, Any], Event] | None:
    """The trace line of an entry and what evidence makes of it; None if it makes nothing."""
    told = {"t": now, "transcript": {"session_id": session_id, "entry": entry}}
    event = from_line(told, now)
    if event.kind == "junk" or (event.kind == "note" and not event.title):
        return None
    return told, event


def gist(events: Sequence[Event], since: float) -> Iterator[int]:
    """Which of many entries to tell, where nobody listened: facts, and how the turn stands now.

    What is older than `since` was overtaken by other evidence: only its facts still count.
    """
    last: dict[str, int] = {}
    for n, event in enumerate(events):
        if event.title:
            last["named" if event.named else "title"] = n
        if event.prompt:
            last["prompt"] = n
        if event.model:
            last["model"] = n
        if event.message:
            last["message"] = n
    deciding = [n for n, e in enumerate(events) if e.kind != "note" and e.t > since][-LATEST:]
    yield from sorted({*last.values(), *deciding})


def spoken(entry: Entry) -> Iterator[str]:
    """What a person or the agent said in it, as short plain lines."""
    if entry["type"] not in ("user", "assistant") or entry.get("isMeta"):
        return
    mark = "> " if entry["type"] == "user" else ""
    for block in entry["message"]["content"]:
        if block["type"] == "text" and not block["text"].startswith("<"):
            for text in block["text"].splitlines():
                if said := line(text):
                    yield mark + said
