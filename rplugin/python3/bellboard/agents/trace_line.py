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
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from ..core.deadlines import BY_TIME
from ..core.events import AGENT, LINES, LIVE, UNCOUNTED, Event, Origin, junk, usable_id
from ..core.far import MACHINE, OF_LINKS, id_of
from ..core.program_status import Report
from ..core.program_status import parsed as parsed_report
from ..core.row import row_of
from ..core.text import ODD, line, whole
from ..core.untrusted import WRONG_SHAPE, Facts, decode, number_of, object_of, storable, text_of
from .registry import RUNNERS, VARIABLES, agent_of, agent_of_program, status_reported

# Decode where evidence came from: the agent, its process, its terminal, its environment.
#
# This file does no I/O.


#: Names of variables in a trace line, a CLI's own or those of an event → those of an event.
NAMES: Final = {known: field for name, field in VARIABLES.items() for known in (name, field)}


def origin_of(given: object) -> Origin:
    """Decode an origin, without values of the wrong type."""
    if not isinstance(given, dict):
        return Origin()
    env, pid = object_of(given.get("env")), pid_of(given.get("pid"))
    return msgspec.structs.replace(
        where_of(given),
        agent=_runner(env, pid) or text_of(given, "agent") or AGENT,
        pid=pid,
        started=text_of(given, "started"),
        shared=given.get("shared") is True,
        many=given.get("many") is True,
        # the rest of an environment is private
        env={NAMES[k]: whole(v) for k, v in env.items() if k in NAMES and type(v) is str},
    )


def _runner(env: Facts, pid: int | None) -> str:
    """Return the agent whose process ran a hook: some also run those made for another."""
    return next((agent for name, agent in RUNNERS.items() if env.get(name) == str(pid)), "")


def where_of(given: Facts) -> Origin:
    """Decode the terminal that a line names."""
    return Origin(
        tty=text_of(given, "tty") or None,
        tmux=text_of(given, "tmux") or None,
        pane=text_of(given, "pane") or None,
        nvim=text_of(given, "nvim") or None,
        kitty=text_of(given, "kitty") or None,
    )


def pid_of(value: object) -> int | None:
    return value if type(value) is int and 0 < value < 1 << 31 else None


# Decode what links report of other machines.
#
#     {"far": {"machine": M, "row": ROW, "found": true}}    a session, as that machine shows it
#     {"far": {"machine": M, "gone": [ID, …]}}              sessions that have ended (its own ids)
#     {"far": {"machine": M, "all": [ID, …]}}               all that it lists; others have ended
#     {"link": {"machine": M, "up": bool, "why": "…"}}      whether it can be followed
#     {"link": {"machine": M, "gone": true}}                it is no longer followed
#
# `cursor` in any of them says how far the machine has been followed, `done` that everything up
# to there was reported. A machine's name is the one that we gave it, not what it calls itself.


MOST_IDS: Final = 4000  # sessions in one line; a feed has no more than 2,000


def _far(fields: Facts, t: float, now: float) -> Event:
    """Decode what a machine says of its sessions."""
    given = fields["far"]
    machine, cursor = _machine(given), _cursor(given)
    done = given.get("done") is True
    if "row" in given:
        row = _row(given["row"])
        at = 0.0 if given.get("found") is True else row.get("since", 0.0)
        sid, why = _sid(machine, row), line(text_of(given, "why"))
        made = Event("far", "far", t, now, sid, at=at, row=row, detail=why)
        return replace(made, machine=machine, cursor=cursor, done=done)
    how = "all" if "all" in given else "gone"
    ids = tuple(usable_id(x) for x in given[how][:MOST_IDS])
    source = "all" if how == "all" else ""
    made = Event("far gone", "far", t, now, source=source, ids=ids)
    return replace(made, machine=machine, cursor=cursor, done=done)


def _link(fields: Facts, t: float, now: float) -> Event:
    """Decode whether a machine can be followed."""
    given = fields["link"]
    kind = "link up" if given.get("up") is True else "link down"
    kind = "link gone" if given.get("gone") is True else kind
    why = line(text_of(given, "why")) if kind == "link down" else ""
    return Event(kind, "link", t, now, why=why, machine=_machine(given))


def _checked(e: Event) -> Event:
    """Check an event that is decoded already, in the same way; raise ValueError if it is wrong."""
    if e.kind not in OF_LINKS:
        return replace(e, machine="", row={}, ids=(), cursor="", done=False)
    machine, ids = _machine({"machine": e.machine}), tuple(map(usable_id, e.ids[:MOST_IDS]))
    row = _row(e.row) if e.kind == "far" else {}
    sid = _sid(machine, row) if row else ""
    cursor = _cursor({"cursor": e.cursor})
    return replace(e, session_id=sid, row=row, ids=ids, cursor=cursor, why=line(e.why))


def _row(given: object) -> dict[str, Any]:
    """Return the fields of a session that may leave its machine."""
    row = row_of(given)
    if row is None:
        raise ValueError("not a session")
    # As JSON has it: a record that was stored and read again must be equal, with lists for tuples.
    return msgspec.json.decode(msgspec.json.encode(row))  # type: ignore[no-any-return]


def _sid(machine: str, row: Mapping[str, Any]) -> str:
    return usable_id(id_of(machine, row["agent"], row["session_id"]))


def _machine(given: Facts) -> str:
    name = given.get("machine")
    if not isinstance(name, str) or not MACHINE.fullmatch(name):
        raise ValueError("no usable name of a machine")
    return name


def _cursor(given: Facts) -> str:
    return line(text_of(given, "cursor"), 80)


# Decode a trace line, which is one piece of evidence, into an event.
#
# A trace line is a JSON object with `t` and one more key (`hook`, `registry`, `transcript`,
# `title`, `server`, `process`, `pane`, `view`, `goto`, `set`, …). The spool and `bellboard
# replay` both read it, so a replay decodes exactly what the host decoded. `decoded` carries an
# `events.Event` as it is; the line's `t` is then when it became known.
#
# This file does no I/O, knows no clock, and tolerates any input.


_WORD: Final = re.compile(r"[a-z]+(?:-[a-z]+)*", re.ASCII)
SCREENS: Final = frozenset({"idle", "busy", "waiting"})
#: What ends the reports of a program besides itself: the next prompt of its shell, its terminal.
ENDED_BY: Final = frozenset({"prompt", "exit"})
LIVE_SAYS: Final = SCREENS | {""}  # "": only that it asks nothing


def event_in(raw: bytes, clock: float = 0.0) -> Event:
    """Decode a trace line; return junk, with the reason, if it cannot be decoded."""
    fields = fields_in(raw, clock)
    return fields if isinstance(fields, Event) else from_line(fields, clock)


def fields_in(raw: bytes, clock: float = 0.0) -> object:
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
    agent = agent_of(text_of(given, "agent"))
    return agent.account(record, Event("registry", "", t, now, sid, pid=pid, source=source))


def _own_report(fields: Facts, t: float, now: float) -> Event:
    """Decode what a program writes to its terminal, or what else ends that (`ends`)."""
    given = fields["osc7501"]
    pid, body, ends = _process_id(given), text_of(given, "body"), text_of(given, "ends")
    if body == "?":
        return Event("note", "own report", t, now)
    said = Report(ends) if ends in ENDED_BY else parsed_report(body)
    agent = agent_of_program(said.app, text_of(given, "command"))
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
    "far": _far,
    "link": _link,
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
