"""The event log as a trace: what can be replayed, and sent to others, without private text.

Payloads are never stored, so each line is made anew from the few facts that an event holds.  It
reads as the same event but for its private texts: same kind, same times, same verdicts.

* The same event told twice must stay so, and different ones different: their key goes along.
* Events that time alone brings are no lines: they come by themselves when the trace is replayed.
* One event may be about many sessions (a view, a restart): it is one line.

Rules of this file: no I/O and no clock, as in `trace.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from ..agents.claude_code.dialect.names import KINDS, QUESTIONS
from ..agents.claude_code.dialect.said import INTERRUPTED, NOT_TYPED, SENT_ON
from ..agents.evidence import UNCOUNTED, WAITING
from ..core.events import Event, Origin
from ..core.lenient import decimal
from ..core.private import Names
from .store import Logged

Line = dict[str, Any]

SUBTYPES: Final = {"said end": "turn_duration", "said stop": "stop_hook_summary"}
REPORT: Final = "<task-notification>"
_WAITING_FOR: Final = {asks: told for told, asks in reversed(WAITING.items())}


def record(log: Iterable[Logged], private: bool = True) -> Iterator[Line]:
    """The lines of a trace that replays to the changes that this log tells of."""
    names = Names() if private else None
    clock, last = 0.0, None
    for row in log:
        e = row.event
        clock = e.clock if e.kind == "clock" else max(clock, e.clock)
        told = (row.file, replace(e, alive=True))
        if not is_by_time(e) and told != last:
            last = told
            yield line_of(names.event(e) if names else e)
    if clock:
        yield {"t": clock, "tick": {}}


def span(
    log: Iterable[Logged], sessions: set[str], options: Mapping[str, Any] | None = None
) -> list[Logged]:
    """The part of a log that is about these sessions, from where each of them last began.

    The options then in force come first: those last set before it, else the ones that are given.
    """
    rows = list(log)
    begins: dict[str, int] = {}
    for n, row in enumerate(rows):
        begun = row.before is None and row.after is not None
        if row.session_id in sessions and (begun or row.session_id not in begins):
            begins[row.session_id] = n
    first = min(begins.values(), default=len(rows))
    found = [
        row
        for n, row in enumerate(rows)
        if n >= first and n >= begins.get(row.session_id, len(rows) if row.session_id else 0)
    ]
    config = [row for row in rows[:first] if row.event.kind == "config"][-1:]
    if found and options and not any(row.event.kind == "config" for row in rows):
        t = found[0].event.clock
        event = Event("config", "config", t, t, settings=dict(options))
        config = [Logged(0, "", event, "", "", True, "", None, None)]
    return config + found


def is_by_time(e: Event) -> bool:
    """Whether `deadlines.py` brought it, and not something that was told."""
    return e.kind == e.name and " " in e.kind and not e.kind.endswith(" gone")


def line_of(e: Event) -> Line:
    """A trace line that reads as this event."""
    line: Line = {"t": e.t}
    if e.clock != e.t:
        line["arrived"] = e.clock
    if e.kind == "junk":
        return line | {"raw": f"no event: {e.why}"}
    if e.from_hook or e.kind == "unknown":
        return line | {"hook": _hook(e), "origin": origin(e.origin)}
    source = e.name.split()[0] if e.name not in OTHERS else e.name
    return line | OTHERS[source](e)


def origin(o: Origin) -> Line:
    facts = {f: getattr(o, f) for f in ("agent", "pid", "tty", "tmux", "pane", "nvim", "env")}
    return {k: v for k, v in facts.items() if v}


# ---------------------------------------------------------------- hooks


def _hook(e: Event) -> Line:
    base = KINDS.get(e.name, "unknown")
    payload: Line = {
        "session_id": e.session_id,
        "hook_event_name": e.name,
        "prompt_id": e.prompt_id,
        "tool_use_id": e.tool_id,
        "agent_id": e.agent,
        "agent_type": e.agent_type,
        "cwd": e.cwd,
        "transcript_path": e.transcript,
        "permission_mode": e.mode,
        "session_title": e.title,
        "model": e.model,
        "context_tokens": e.context,
        "mcp_server_name" if base in ("form", "form answer") else "tool_name": e.tool,
    }
    if base in ("tool", "request"):
        payload["tool_input"] = _input(e)
    elif e.spawned:
        payload["tool_response"] = {"isAsync": True, "agentId": e.spawned}
    elif base == "start":
        payload["source"] = e.source
    elif base == "end":
        payload["reason"] = e.source
    elif base == "prompt":
        report = e.kind == "report"
        payload["prompt"] = REPORT if report else _not_as(e.prompt, (REPORT,))
    elif base == "notification":
        payload |= {"notification_type": e.source, "message": _message(e)}
    elif base == "form":
        payload["message"] = e.detail
    elif base == "failure":
        payload["error"] = e.error
    elif base in ("compacting", "compacted"):
        payload["trigger"] = e.source
    elif base in ("task", "task done"):
        payload["task_subject"] = e.detail
    elif base in ("stop", "agent stop"):
        payload["last_assistant_message"] = e.message
        payload["session_crons"] = [{}] * e.wakeups
    payload = {k: v for k, v in payload.items() if v}
    if e.tasks is not None:
        payload["background_tasks"] = [
            {"id": x.id, "type": x.type, "status": "running", "description": x.description}
            for x in e.tasks
        ]
    if e.key:
        payload["recorded_key"] = e.key
    return payload


def _input(e: Event) -> Line | None:
    """An input of which `tool_detail` makes the same detail, and which differs where it did."""
    if not e.tool_key:
        return None
    given: Line = {}
    if e.detail:
        if QUESTIONS.get(e.tool) == "question":
            given = {"questions": [{"question": e.detail}]}
        elif QUESTIONS.get(e.tool) == "plan":
            given = {"plan": e.detail}
        else:
            given = {"command": e.detail}
    return given | {"recorded_key": e.tool_key}


def _message(e: Event) -> str:
    """CLIs before 2.0.37 told the type of a notification in its words only."""
    if e.source or e.kind != "nudge" or "permission" in e.message:
        return e.message
    return f"{e.message} permission"  # it was cut off


def _not_as(text: str, beginnings: tuple[str, ...]) -> str:
    return f" {text}" if text.startswith(beginnings) else text


# ---------------------------------------------------------------- what is not a hook


def _registry(e: Event) -> Line:
    if e.kind == "registry gone":
        return {"registry": {"pid": e.pid, "record": None}}
    waiting = f"approve {e.tool}" if e.tool else ""
    if e.status == "waiting" and not e.tool:
        waiting = _WAITING_FOR[e.asks]
    env = e.origin.env
    source = {"nameSource": "user"} if e.named else {}
    record: Line = {
        "pid": e.pid,
        "sessionId": e.session_id,
        "status": e.status,
        "waitingFor": waiting,
        "statusUpdatedAt": _milliseconds(e.at) if e.at != e.t else 0,
        "procStart": e.started,
        "cwd": e.cwd,
        "name": e.title,
        "kind": "bg" if "CLAUDE_JOB_DIR" in env else "",
        "entrypoint": env.get("CLAUDE_CODE_ENTRYPOINT", ""),
    }
    found = {"discovered": True} if e.source == "discovered" else {}
    kept = {k: v for k, v in record.items() if v} | source
    return {"registry": {"pid": e.pid, "record": kept, **found}}


def _milliseconds(t: float) -> float:
    whole = round(t * 1000)
    return whole if whole / 1000 == t else t * 1000


def _transcript(e: Event) -> Line:
    return {"transcript": {"session_id": e.session_id, "entry": _entry(e)}}


def _entry(e: Event) -> Line:
    """An entry that reads as this event; without a time of its own the line's counts."""
    entry = _told(e)
    return entry | {"promptId": e.prompt_id} if e.prompt_id else entry


def _told(e: Event) -> Line:
    if e.kind in SUBTYPES:
        return {"type": "system", "subtype": SUBTYPES[e.kind]}
    if e.kind == "said queue":
        return {"type": "queue-operation", "operation": e.status}
    if e.kind == "said feedback":
        return _user({"type": "text", "text": SENT_ON}) | {"isMeta": True}
    if e.kind == "said retry":
        numbers = [n for w in e.detail.split() if (n := decimal(w)) is not None]
        retry = dict(zip(("retryAttempt", "maxRetries"), numbers, strict=False))
        return {"type": "system", "subtype": "api_error", **retry}
    if e.kind == "said error":
        return _assistant({"type": "text", "text": e.error}) | {"isApiErrorMessage": True}
    if e.kind == "interrupt":
        return _user({"type": "text", "text": f"{INTERRUPTED}]"})
    if e.kind == "said prompt":
        text = _not_as(e.prompt, (*NOT_TYPED, REPORT, INTERRUPTED)) or REPORT
        return _user({"type": "text", "text": text})
    if e.kind in ("said result", "said denial"):
        told = {"toolDenialKind": "user-rejected"} if e.kind == "said denial" else {}
        return _user({"type": "tool_result", "tool_use_id": e.tool_id}) | told
    if e.kind == "note":
        if e.named or e.title:
            return {"type": "custom-title" if e.named else "ai-title", "title": e.title}
        return {"type": "note"}
    blocks: list[Line] = [{"type": "text", "text": e.message}] if e.message else []
    if e.kind == "said tool":
        given = _input(e) or {}
        blocks.append({"type": "tool_use", "id": e.tool_id, "name": e.tool, "input": given})
    entry = _assistant(*blocks)
    entry["message"] |= {"model": e.model, "usage": {"input_tokens": e.context}}
    if e.kind == "said last":
        entry["message"]["stop_reason"] = "end_turn"
    return entry


def _assistant(*blocks: Line) -> Line:
    return {"type": "assistant", "message": {"content": list(blocks)}}


def _user(block: Line) -> Line:
    return {"type": "user", "message": {"content": [block]}}


def _screen(e: Event) -> Line:
    told = {"says": e.status, "asks": e.asks, "tool": e.tool, "detail": e.detail}
    known = {k: v for k, v in told.items() if v}
    return {"screen": {"session_id": e.session_id, "pid": e.pid, **known}}


def _process(e: Event) -> Line:
    found = e.kind == "process gone" and not e.at
    facts = {"started": e.started, "found": found, **_where(e.origin)}
    counted = {} if e.children == UNCOUNTED else {"children": e.children}
    known = {k: v for k, v in facts.items() if v}
    return {"process": {"pid": e.pid, "alive": e.alive, **known, **counted}}


def _pane(e: Event) -> Line:
    return {"pane": {**_where(e.origin), "alive": e.kind == "pane"}}


def _view(e: Event) -> Line:
    where = _where(e.origin) | ({"session_id": e.session_id} if e.session_id else {})
    where |= {"how": e.source} if e.source else {}
    return {"view": where or None, "viewer": e.viewer}


def _where(o: Origin) -> Line:
    known = {"tty": o.tty, "tmux": o.tmux, "pane": o.pane, "nvim": o.nvim}
    return {k: v for k, v in known.items() if v}


def _person(key: str, value: Callable[[Event], Line]) -> Callable[[Event], Line]:
    return lambda e: {key: {"session_id": e.session_id, **value(e)}}


#: Name of an event, or its first word → the rest of its line.
OTHERS: Final[dict[str, Callable[[Event], Line]]] = {
    "registry": _registry,
    "transcript": _transcript,
    "screen": _screen,
    "process": _process,
    "process gone": _process,
    "pane": _pane,
    "pane gone": _pane,
    "view": _view,
    "goto": _person("goto", lambda e: {}),
    "set": _person("set", lambda e: {"status": e.status}),
    "label": _person("label", lambda e: {"label": e.status}),
    "name": _person("name", lambda e: {"name": e.status}),
    "park": _person("park", lambda e: {"parked": e.alive}),
    "snooze": _person("snooze", lambda e: {"until": e.at}),
    "forget": _person("forget", lambda e: {}),
    "facts": lambda e: {"facts": {**e.settings, "session_id": e.session_id}},
    "config": lambda e: {"config": dict(e.settings)},
    "restart": lambda e: {"restart": {}},
    "clock": lambda e: {"clock": {}},
}
