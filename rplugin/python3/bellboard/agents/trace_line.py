"""Decode a trace line, which is one piece of evidence, into an event.

A trace line is a JSON object with `t` and one more key (`hook`, `registry`, `transcript`,
`title`, `server`, `process`, `pane`, `view`, `goto`, `set`, …).  The spool and `bellboard replay`
both read it, so a replay decodes exactly what the host decoded.  `decoded` carries an
`events.Event` as it is; the line's `t` is then when it became known.

This file does no I/O, knows no clock, and tolerates any input.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from ..core.deadlines import BY_TIME
from ..core.events import AGENT, LINES, LIVE, UNCOUNTED, Event, Origin, junk, usable_id
from ..core.evidence import MARKS, TraceLine
from ..core.far import MACHINE, OF_LINKS, id_of
from ..core.program_status import Report
from ..core.program_status import parsed as parsed_report
from ..core.row import row_of
from ..core.text import ODD, line, whole
from ..core.untrusted import WRONG_SHAPE, Facts, decode, leniently, number_of, storable, text_of
from .registry import RUNNERS, VARIABLES, agent_of, agent_of_program, status_reported

#: Names of variables in a trace line, a CLI's own or those of an event → those of an event.
NAMES: Final = {known: field for name, field in VARIABLES.items() for known in (name, field)}


def origin_of(given: object) -> Origin:
    """Decode an origin, without values of the wrong type."""
    x = leniently(TraceLine, given)
    pid = pid_of(x.pid)
    return replace(
        x.origin,
        agent=_runner(x.env, pid) or x.agent or AGENT,
        pid=pid,
        started=x.started,
        shared=x.shared,
        many=x.many,
        # all other variables are private
        env={NAMES[k]: whole(v) for k, v in x.env.items() if k in NAMES and type(v) is str},
    )


def _runner(env: Facts, pid: int | None) -> str:
    """Return the agent whose process ran a hook: some CLIs also run the hooks of another."""
    return next((agent for name, agent in RUNNERS.items() if env.get(name) == str(pid)), "")


def pid_of(value: object) -> int | None:
    return value if type(value) is int and 0 < value < 1 << 31 else None


MOST_IDS: Final = 4000  # sessions in one line; a feed has no more than 2,000


def _far(x: TraceLine, t: float, now: float) -> Event:
    """Decode a machine's report of its sessions."""
    if x.row is not None:
        e = Event("far", "far", t, now, row=x.row, detail=line(x.why))
    elif isinstance(ids := x.gone if x.all is None else x.all, list):
        source = "" if x.all is None else "all"
        e = Event("far gone", "far", t, now, source=source, ids=tuple(ids))
    else:
        raise ValueError("no sessions")
    e = _checked(replace(e, machine=x.machine, cursor=x.cursor, done=x.done))
    return replace(e, at=0.0 if x.found else e.row.get("since", 0.0))


def _link(x: TraceLine, t: float, now: float) -> Event:
    """Decode whether a machine can be followed."""
    kind = "link gone" if x.gone is True else "link up" if x.up else "link down"
    why = x.why if kind == "link down" else ""
    return _checked(Event(kind, "link", t, now, why=why, machine=x.machine))


def _checked(e: Event) -> Event:
    """Return an event with the fields of links checked (ValueError), or cleared if of no link."""
    if e.kind not in OF_LINKS:
        return replace(e, machine="", row={}, ids=(), cursor="", done=False)
    if not MACHINE.fullmatch(e.machine):
        raise ValueError("no usable name of a machine")
    row, ids = _row(e.row) if e.kind == "far" else {}, tuple(map(usable_id, e.ids[:MOST_IDS]))
    sid = usable_id(id_of(e.machine, row["agent"], row["session_id"])) if row else ""
    cursor = line(e.cursor, 80)
    return replace(e, session_id=sid, row=row, ids=ids, cursor=cursor, why=line(e.why))


def _row(given: object) -> dict[str, Any]:
    """Return the fields of a session that may leave its machine."""
    row = row_of(given)
    if row is None:
        raise ValueError("not a session")
    # In JSON's form, lists for tuples: a record that was stored and read again must be equal.
    return msgspec.json.decode(msgspec.json.encode(row))  # type: ignore[no-any-return]


_WORD: Final = re.compile(r"[a-z]+(?:-[a-z]+)*", re.ASCII)
SCREENS: Final = frozenset({"idle", "busy", "waiting"})
#: Ends of a program's reports, besides its own: the next prompt of its shell, or its terminal.
ENDED_BY: Final = frozenset({"prompt", "exit"})
LIVE_SAYS: Final = SCREENS | {""}  # "": it asks nothing


def event_in(raw: bytes, clock: float = 0.0) -> Event:
    """Decode a trace line; return junk, with the reason, if it cannot be decoded."""
    fields = fields_in(raw, clock)
    return fields if isinstance(fields, Event) else from_line(fields, clock)


def fields_in(raw: bytes, clock: float = 0.0) -> object:
    """Decode the JSON of a trace line; return junk if it is no JSON."""
    try:
        return decode(raw)
    except ODD:
        try:
            return json.loads(raw)
        except ODD as e:
            return junk(f"not JSON: {e}"[:120], clock, clock)


def from_line(fields: object, clock: float = 0.0) -> Event:
    """Decode a trace line whose JSON is already decoded."""
    if not isinstance(fields, dict):
        return junk("not a JSON object", clock, clock)
    t = number_of(fields.get("t"))
    if t is None or t <= 0:
        return junk("invalid time", clock, clock)
    now = number_of(fields.get("arrived")) or clock or t
    for key, reader in READERS.items():
        if key in fields:
            try:
                return reader(fields, t, now)
            except WRONG_SHAPE as e:
                return junk(f"{key}: {e!r}"[:120], t, now, key)
    return Event("note", whole(next((str(k) for k in fields if k != "t"), "nothing")[:60]), t, now)


def _hook(fields: Facts, t: float, now: float) -> Event:
    return _raw({**fields, "raw": json.dumps(fields["hook"], separators=(",", ":"))}, t, now)


def _raw(fields: Facts, t: float, now: float) -> Event:
    text, origin = fields["raw"], origin_of(fields.get("origin"))
    raw = text.encode("utf-8", "replace") if isinstance(text, str) else b""
    name = text_of(fields, "event")
    return agent_of(origin.agent).event(raw, t, now, origin, name=name)


# ---------------------------------------------------------------- decoded events


def _decoded(fields: Facts, t: float, now: float) -> Event:
    given = {"t": t, "name": fields["decoded"]["kind"], **fields["decoded"]}
    origin = origin_of(given.pop("origin", None))
    e = msgspec.convert({**given, "clock": now}, Event)
    if e.kind in BY_TIME:
        raise ValueError("only a deadline can cause this")
    if not (e.t > 0 and math.isfinite(e.t)):
        raise ValueError("invalid time")
    e = _checked(e)
    return replace(
        e,
        session_id=usable_id(e.session_id) if e.session_id else "",
        origin=origin,
        pid=pid_of(e.pid),
        children=_children(e.children),
        settings=storable(e.settings),
        **{field: line(text) for field in LINES if (text := getattr(e, field))},
    )


# ---------------------------------------------------------------- what the CLI writes and shows


def _registry(x: TraceLine, t: float, now: float) -> Event:
    pid = _process_id(x)
    if x.record is UNSET:
        return Event("registry gone", "registry gone", t, now, pid=pid)
    sid = usable_id(x.record["sessionId"])
    source = "discovered" if x.discovered else ""
    about = Event("registry", "", t, now, sid, pid=pid, source=source)
    return agent_of(x.agent).account(x.record, about)


def _own_report(x: TraceLine, t: float, now: float) -> Event:
    """Decode a program's own report in its terminal, or another end of its reports."""
    pid = _process_id(x)
    if x.body == "?":
        return Event("note", "own report", t, now)
    said = Report(x.ends) if x.ends in ENDED_BY else parsed_report(x.body)
    agent = agent_of_program(said.app, x.command)
    return Event(
        "own report",
        "own report",
        t,
        now,
        session_id=usable_id(x.session_id) if x.session_id else "",
        pid=pid,
        started=x.started,
        origin=replace(x.origin, pid=pid, agent=agent),
        cwd=x.cwd,
        status=status_reported(agent, said),
        agent=said.id,
        source="app" if said.app else "",
        asks=said.kind,
        progress=said.progress,
        title=line(said.title),
        detail=line(said.msg),
    )


def _transcript(fields: Facts, t: float, now: float) -> Event:
    given = fields["transcript"]
    sid, entry = usable_id(given["session_id"]), given["entry"]
    return agent_of(text_of(given, "agent")).entry(sid, entry, t, now)


def _live(x: TraceLine, t: float, now: float, key: str) -> Event:
    """Decode the state in a title or at a server, which counts like a session file."""
    return replace(_shown(x, t, now, LIVE_SAYS), kind="registry", name=key, source=key, at=t)


def _shown(x: TraceLine, t: float, now: float, known: frozenset[str] = SCREENS) -> Event:
    if x.says not in known:
        raise ValueError("not idle, busy or waiting")
    return Event(
        f"screen {x.says}",
        "screen",
        t,
        now,
        session_id=usable_id(x.session_id),
        pid=_process_id(x),
        status=x.says,
        asks=(x.asks or "choice") if x.says == "waiting" else "",
        tool=line(x.tool, 80),
        detail=line(x.detail),
        at=0.0 if x.found else t,
    )


# ---------------------------------------------------------------- processes, panes, users, hosts


def _process(x: TraceLine, t: float, now: float) -> Event:
    pid, kind = _process_id(x), "process" if x.alive else "process gone"
    return Event(
        kind,
        kind,
        t,
        now,
        pid=pid,
        started=x.started,
        origin=replace(x.origin, pid=pid),
        alive=bool(x.alive),
        at=0.0 if x.found else t,
        children=_children(x.children),
    )


def _client(x: TraceLine, t: float, now: float) -> Event:
    return Event("client", "client", t, now, usable_id(x.session_id), x.origin, pid=_process_id(x))


def _pane(x: TraceLine, t: float, now: float) -> Event:
    kind = "pane" if x.alive else "pane gone"
    return Event(kind, kind, t, now, origin=x.origin, alive=bool(x.alive))


def _view(fields: Facts, t: float, now: float) -> Event:
    x = _fields_of(fields["view"] or {})
    viewer = text_of(fields, "viewer") or x.viewer
    return Event("view", "view", t, now, x.session_id, x.origin, viewer=viewer, source=x.how)


def _mark(fields: Facts, t: float, now: float, key: str) -> Event:
    """Decode a user's change of a session."""
    given, (kind, field, _) = fields[key], MARKS[key]
    sid = usable_id(given["session_id"])
    value = given.get(field)
    text = value if isinstance(value, str) else ""
    number = number_of(value) or 0.0
    return Event(kind, key, t, now, sid, status=line(text, 80), at=number, alive=bool(value))


def _answer(x: TraceLine, t: float, now: float) -> Event:
    """Decode an answer to a request, or its outcome."""
    if not (_WORD.fullmatch(x.choice) and _WORD.fullmatch(x.way)):
        raise ValueError("not a word")
    by, outcome = line(x.by, 80), line(x.outcome, 80)
    said = (outcome,) if outcome else (x.choice, f"by {x.way}", by and f"from {by}")
    kind = "answer outcome" if outcome else "answer"
    return Event(
        kind,
        kind,
        t,
        now,
        usable_id(x.session_id),
        pid=pid_of(x.pid),
        request=x.request,
        digest=x.digest,
        status=x.choice,
        source=x.way,
        viewer=by,
        detail=", ".join(filter(None, said)),
        message=outcome,
    )


def _submit(x: TraceLine, t: float, now: float) -> Event:
    by = line(x.by, 80)
    return Event("submit", "submit", t, now, usable_id(x.session_id), viewer=by, detail=by)


def _facts(fields: Facts, t: float, now: float) -> Event:
    given = fields["facts"]
    known = {k: v for k, v in storable(given).items() if _is_fact(v)}
    of = text_of(fields, "cwd")
    return Event("facts", "facts", t, now, usable_id(given["session_id"]), cwd=of, settings=known)


def _config(fields: Facts, t: float, now: float) -> Event:
    if not isinstance(fields["config"], dict):
        raise ValueError("not an object")
    return Event("config", "config", t, now, settings=storable(fields["config"]))


def _restart(fields: Facts, t: float, now: float) -> Event:
    given = fields["restart"]
    until = number_of(given.get("until")) if isinstance(given, dict) else None
    return Event("restart", "restart", t, now, at=until or 0.0)


def _fields_of(given: object) -> TraceLine:
    if not isinstance(given, dict):
        raise ValueError("not an object")
    return leniently(TraceLine, given)


#: Key of a trace line → the function that decodes its fields.
FIELDS: Final[dict[str, Callable[[TraceLine, float, float], Event]]] = {
    "registry": _registry,
    "osc7501": _own_report,
    "screen": _shown,
    **{key: partial(_live, key=key) for key in LIVE},
    "process": _process,
    "client": _client,
    "pane": _pane,
    "answer": _answer,
    "submit": _submit,
    "far": _far,
    "link": _link,
}


def _line(fields: Facts, t: float, now: float, key: str) -> Event:
    return FIELDS[key](_fields_of(fields[key]), t, now)


#: Key of a trace line → the function that decodes it.
READERS: Final[dict[str, Callable[[Facts, float, float], Event]]] = {
    # The screen at that time, for the judge of a replay.
    "truth": lambda fields, t, now: Event("note", "truth", t, now),
    "note": lambda fields, t, now: Event("note", "note", t, now),
    "hook": _hook,
    "transcript": _transcript,
    **{key: partial(_line, key=key) for key in FIELDS},
    "view": _view,
    **{key: partial(_mark, key=key) for key in MARKS},
    "facts": _facts,
    "raw": _raw,
    "decoded": _decoded,
    "config": _config,
    "restart": _restart,
    "clock": lambda fields, t, now: Event("clock", "clock", t, now),
    "tick": lambda fields, t, now: Event("tick", "tick", t, now),
}


# ---------------------------------------------------------------- values


def _is_fact(value: object) -> bool:
    if isinstance(value, list):
        return all(isinstance(x, str | int) for x in value)
    return isinstance(value, str | int | float)


def _children(value: object) -> int:
    return value if type(value) is int and 0 <= value < 1 << 31 else UNCOUNTED


def _process_id(x: TraceLine) -> int:
    if (pid := pid_of(x.pid)) is None:
        raise ValueError("no process id")
    return pid
