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
from typing import Final

import msgspec

from ..core.deadlines import BY_TIME
from ..core.events import LINES, LIVE, UNCOUNTED, Event, junk, usable_id
from ..core.program_status import Report
from ..core.program_status import parsed as parsed_report
from ..core.text import ODD, line, whole
from ..core.untrusted import WRONG_SHAPE, Facts, decode, number_of, storable, text_of
from . import linked
from .dialects import dialect_of, program_of, reported
from .origins import origin_of, pid_of, where_of

_WORD: Final = re.compile(r"[a-z]+(?:-[a-z]+)*", re.ASCII)
SCREENS: Final = frozenset({"idle", "busy", "waiting"})
#: What ends the reports of a program besides itself: the next prompt of its shell, its terminal.
ENDED_BY: Final = frozenset({"prompt", "exit"})
LIVE_SAYS: Final = SCREENS | {""}  # "": only that it asks nothing


def read(raw: bytes, clock: float = 0.0) -> Event:
    """Decode a trace line; return junk, with the reason, if it cannot be decoded."""
    fields = parsed(raw, clock)
    return fields if isinstance(fields, Event) else from_line(fields, clock)


def parsed(raw: bytes, clock: float = 0.0) -> object:
    """Decode the JSON of a trace line; return junk if it is none."""
    try:
        return decode(raw)
    except ODD:
        try:
            return json.loads(raw)
        except ODD as e:
            return junk(f"not JSON: {e}"[:120], clock, clock)


def from_line(fields: object, clock: float = 0.0) -> Event:
    """Do the same for a line whose JSON is already decoded."""
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
    return dialect_of(origin.agent).event(raw, t, now, origin, name=name)


# ---------------------------------------------------------------- decoded events


def _decoded(fields: Facts, t: float, now: float) -> Event:
    given = {"t": t, "name": fields["decoded"]["kind"], **fields["decoded"]}
    origin = origin_of(given.pop("origin", None))
    e = msgspec.convert({**given, "clock": now}, Event)
    if e.kind in BY_TIME:
        raise ValueError("only a deadline can cause this")
    if not (e.t > 0 and math.isfinite(e.t)):
        raise ValueError("invalid time")
    e = linked.checked(e)
    return msgspec.structs.replace(
        e,
        session_id=usable_id(e.session_id) if e.session_id else "",
        origin=origin,
        pid=pid_of(e.pid),
        children=_children(e.children),
        settings=storable(e.settings),
        **{field: line(text) for field in LINES if (text := getattr(e, field))},
    )


# ---------------------------------------------------------------- what the CLI writes and shows


def _registry(fields: Facts, t: float, now: float) -> Event:
    given = fields["registry"]
    pid, record = _process_id(given), given.get("record")
    if record is None:
        return Event("registry gone", "registry gone", t, now, pid=pid)
    sid = usable_id(record["sessionId"])
    source = "discovered" if given.get("discovered") else ""
    dialect = dialect_of(text_of(given, "agent"))
    return dialect.account(record, Event("registry", "", t, now, sid, pid=pid, source=source))


def _own_report(fields: Facts, t: float, now: float) -> Event:
    """Decode what a program writes to its terminal, or what else ends that (`ends`)."""
    given = fields["osc7501"]
    pid, body, ends = _process_id(given), text_of(given, "body"), text_of(given, "ends")
    if body == "?":
        return Event("note", "own report", t, now)
    said = Report(ends) if ends in ENDED_BY else parsed_report(body)
    agent = program_of(said.app, text_of(given, "command"))
    return Event(
        "own report",
        "own report",
        t,
        now,
        session_id=usable_id(known) if (known := text_of(given, "session_id")) else "",
        pid=pid,
        started=text_of(given, "started"),
        origin=msgspec.structs.replace(where_of(given), pid=pid, agent=agent),
        cwd=text_of(given, "cwd"),
        status=reported(agent, said),
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
    return dialect_of(text_of(given, "agent")).entry(sid, entry, t, now)


def _live(key: str) -> Callable[[Facts, float, float], Event]:
    """Return a reader for what a title or a server says: that counts like a session file."""

    def reader(fields: Facts, t: float, now: float) -> Event:
        event = _shown(fields[key], t, now, LIVE_SAYS)
        return msgspec.structs.replace(event, kind="registry", name=key, source=key, at=t)

    return reader


def _shown(given: Facts, t: float, now: float, known: frozenset[str] = SCREENS) -> Event:
    says = given.get("says")
    if not isinstance(says, str) or says not in known:
        raise ValueError("not idle, busy or waiting")
    return Event(
        f"screen {says}",
        "screen",
        t,
        now,
        session_id=usable_id(given["session_id"]),
        pid=_process_id(given),
        status=says,
        asks=(text_of(given, "asks") or "choice") if says == "waiting" else "",
        tool=line(text_of(given, "tool"), 80),
        detail=line(text_of(given, "detail")),
        at=0.0 if given.get("found") is True else t,
    )


# ---------------------------------------------------------------- processes, panes, users, hosts


def _process(fields: Facts, t: float, now: float) -> Event:
    given = fields["process"]
    pid, alive = _process_id(given), bool(given.get("alive"))
    kind = "process" if alive else "process gone"
    return Event(
        kind,
        kind,
        t,
        now,
        pid=pid,
        started=text_of(given, "started"),
        origin=msgspec.structs.replace(where_of(given), pid=pid),
        alive=alive,
        at=0.0 if given.get("found") is True else t,
        children=_children(given.get("children")),
    )


def _client(fields: Facts, t: float, now: float) -> Event:
    given = fields["client"]
    sid, where = usable_id(given["session_id"]), where_of(given)
    return Event("client", "client", t, now, sid, where, pid=_process_id(given))


def _pane(fields: Facts, t: float, now: float) -> Event:
    given = fields["pane"]
    alive = bool(given.get("alive"))
    kind = "pane" if alive else "pane gone"
    return Event(kind, kind, t, now, origin=where_of(given), alive=alive)


def _view(fields: Facts, t: float, now: float) -> Event:
    given = fields["view"] or {}
    where = where_of(given)
    viewer = text_of(fields, "viewer") or text_of(given, "viewer")
    how, sid = text_of(given, "how"), text_of(given, "session_id")
    return Event("view", "view", t, now, sid, where, viewer=viewer, source=how)


def _person(key: str, kind: str, field: str = "") -> Callable[[Facts, float, float], Event]:
    """Return a reader for what a user does to a session: a jump, a correction, a label."""

    def reader(fields: Facts, t: float, now: float) -> Event:
        given = fields[key]
        sid = usable_id(given["session_id"])
        value = given.get(field) if field else ""
        text = value if isinstance(value, str) else ""
        number = number_of(value) or 0.0
        return Event(kind, key, t, now, sid, status=line(text, 80), at=number, alive=bool(value))

    return reader


def _answer(fields: Facts, t: float, now: float) -> Event:
    """Decode that somebody answered a request, or what followed."""
    given = fields["answer"]
    choice, way = (_word(given[key]) for key in ("choice", "way"))
    by, outcome = (line(text_of(given, key), 80) for key in ("by", "outcome"))
    said = (outcome,) if outcome else (choice, f"by {way}", by and f"from {by}")
    kind = "answer outcome" if outcome else "answer"
    return Event(
        kind,
        kind,
        t,
        now,
        usable_id(given["session_id"]),
        pid=pid_of(given.get("pid")),
        request=text_of(given, "request"),
        digest=text_of(given, "digest"),
        status=choice,
        source=way,
        viewer=by,
        detail=", ".join(filter(None, said)),
        message=outcome,
    )


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


#: Key of a trace line → the function that decodes it.
READERS: Final[dict[str, Callable[[Facts, float, float], Event]]] = {
    # What its screen showed, for the judge of a replay.
    "truth": lambda fields, t, now: Event("note", "truth", t, now),
    "note": lambda fields, t, now: Event("note", "note", t, now),
    "hook": _hook,
    "registry": _registry,
    "transcript": _transcript,
    "osc7501": _own_report,
    "screen": lambda fields, t, now: _shown(fields["screen"], t, now),
    **{key: _live(key) for key in LIVE},
    "process": _process,
    "client": _client,
    "pane": _pane,
    "view": _view,
    "goto": _person("goto", "jump"),
    "set": _person("set", "set", "status"),
    "label": _person("label", "label", "label"),
    "name": _person("name", "name", "name"),
    "park": _person("park", "park", "parked"),
    "snooze": _person("snooze", "snooze", "until"),
    "forget": _person("forget", "forget"),
    "answer": _answer,
    "facts": _facts,
    "far": linked.far,
    "link": linked.link,
    "raw": _raw,
    "decoded": _decoded,
    "config": _config,
    "restart": _restart,
    "clock": lambda fields, t, now: Event("clock", "clock", t, now),
    "tick": lambda fields, t, now: Event("tick", "tick", t, now),
}


# ---------------------------------------------------------------- values


def _word(value: object) -> str:
    if not isinstance(value, str) or not _WORD.fullmatch(value):
        raise ValueError("not a word")
    return value


def _is_fact(value: object) -> bool:
    if isinstance(value, list):
        return all(isinstance(x, str | int) for x in value)
    return isinstance(value, str | int | float)


def _children(value: object) -> int:
    return value if type(value) is int and 0 <= value < 1 << 31 else UNCOUNTED


def _process_id(given: Facts) -> int:
    if (pid := pid_of(given.get("pid"))) is None:
        raise ValueError("no process id")
    return pid
