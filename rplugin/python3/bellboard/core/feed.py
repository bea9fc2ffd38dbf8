"""The messages of a feed: what `bellboard feed` prints for readers on other machines, and reads.

A feed is JSON, one object a line.  It begins with a hello and a state; then come changes, a beat
when nothing changed for a while, and the replies to what was asked.  `cursor` marks
the last transition that was sent.  A state lists the ids of all sessions in `all`; rows that do not
fit into its line follow as changes.

What reads the lines trusts nothing: it takes any bytes, skips what it does not know, and gives the
reason if a line cannot be used.  This file does no I/O, and knows no clock.

A program that follows many machines (`bellboard fleet run`) prints the same, with an `of` around
what each of them says, and `notes` for health.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from .far import MACHINE
from .request import refusal
from .row import Row, agent_in, count_in, id_of, row_of, text_in, time_in
from .session import URGENCY
from .text import Lines, as_json, line, marked
from .untrusted import LARGEST, list_of, storable, value_of

PROTOCOL: Final = 1
LONGEST: Final = 1 << 20  # bytes of a line
MOST: Final = 2000  # sessions of a machine, and transitions in a line
BEAT: Final = 10.0  # seconds without a line after which a beat follows
OWN: Final = "that is this same board; a machine cannot follow itself"
LEAST_JUNK: Final = 64  # bytes that a line counts as: even short ones take time to read
TOO_MANY: Final = f"it has {{}} {{}}; at most {MOST} can be followed"
SILENT_AFTER: Final = 25.0  # seconds without a line after which the other side is gone
QUIET: Final = 21.0  # seconds until its rows are stale: before SILENT even on a busy machine

_CURSOR: Final = re.compile(r"([A-Za-z0-9]{1,64})\.([0-9]{1,15})")


class Cursor(NamedTuple):
    """A position in a feed: the machine's database, and the last transition that was sent."""

    database: str
    last: int

    def __str__(self) -> str:
        return f"{self.database}.{self.last}"


class Moved(
    Struct, frozen=True, gc=False, omit_defaults=True, rename={"before": "from", "after": "to"}
):
    """A transition; None means not listed."""

    id: int
    t: float
    session_id: str
    before: str | None = None
    after: str | None = None
    rule: str = ""
    why: str = ""
    live: bool = False


class Hello(Struct, frozen=True, tag_field="type", tag="hello"):
    """The first line: about the machine."""

    version: str = ""
    machine: str = ""  # the same for a machine, whatever its name
    boot: str = ""
    now: float = 0.0
    hooks: bool = False  # whether hooks report there
    agents: tuple[str, ...] = ()  # whose programs are installed there
    hosts: int = 0  # how many run there besides the feed
    user: str = ""
    feed: int = PROTOCOL


class FeedState(Struct, frozen=True, tag_field="type", tag="state"):
    """All sessions: the reader drops any other.  `whole`: nothing is missing since its cursor."""

    now: float
    cursor: str
    all: tuple[str, ...]
    sessions: tuple[Row, ...] = ()
    transitions: tuple[Moved, ...] = ()
    whole: bool = False
    skipped: int = 0  # rows and transitions that could not be used
    beyond: int = 0  # sessions that are left out, as there are too many


class FeedChange(Struct, frozen=True, tag_field="type", tag="change"):
    """The sessions that changed, and those that are gone."""

    now: float
    cursor: str
    sessions: tuple[Row, ...] = ()
    removed: tuple[str, ...] = ()
    transitions: tuple[Moved, ...] = ()
    skipped: int = 0
    beyond: int = 0


class Beat(Struct, frozen=True, tag_field="type", tag="beat"):
    """Nothing changed."""

    now: float
    cursor: str


class Reply(Struct, frozen=True, tag_field="type", tag="reply"):
    """The reply to a request; hidden characters in `more` are shown as marks."""

    id: int
    ok: bool
    why: str = ""
    more: dict[str, Any] = {}

    @property
    def fields(self) -> dict[str, Any]:
        """Return the fields of the reply."""
        return {**self.more, "ok": self.ok, **({"why": self.why} if self.why else {})}


class FeedProblem(Struct, frozen=True, tag_field="type", tag="problem"):
    """Why the feed ends, or cannot be followed."""

    text: str


class Gone(Struct, frozen=True, tag_field="type", tag="gone"):
    """A machine is forgotten: it has been silent for long, and others need its place."""


OfOne = Hello | FeedState | FeedChange | Beat | FeedProblem | Gone


class Of(Struct, frozen=True, tag_field="type", tag="of"):
    """A message from one of many machines; `problem` says why it cannot be followed now."""

    machine: str
    said: OfOne


class HealthNotes(Struct, frozen=True, tag_field="type", tag="notes"):
    """All problems for health, by topic."""

    notes: dict[str, str] = {}


class Junk(Struct, frozen=True):
    """A line that does not belong to a feed, such as the greeting of a login shell."""

    text: str
    size: int = LEAST_JUNK


class Ask(Struct, frozen=True):
    """A request of a reader."""

    id: int
    do: str
    fields: dict[str, Any] = {}

    @property
    def session_id(self) -> str:
        return id_of(self.fields.get("session_id"))


Line = Hello | FeedState | FeedChange | Beat | Reply | FeedProblem | Of | HealthNotes | Junk


def cursor_of(text: object) -> Cursor | None:
    """Return a cursor, or None for anything else."""
    found = _CURSOR.fullmatch(text) if isinstance(text, str) else None
    return Cursor(found[1], int(found[2])) if found else None


# Write the lines of a feed, each short enough for its reader.


ROOM: Final = 1 << 18  # bytes of rows and transitions after which another line begins
FEW: Final = 16  # of these always fit


def encoded(said: object) -> bytes:
    """Return the line of a message."""
    return as_json(_encode(said)).encode() + b"\n"


def state(
    now: float,
    rows: Sequence[Row],
    moved: Sequence[Moved],
    at: Cursor,
    whole: bool,
    beyond: int = 0,
) -> Iterator[bytes]:
    """Return the lines of a state; rows that do not fit into the first follow as changes.

    `at` is the cursor after the transitions.
    """
    rows = sorted(rows, key=lambda r: (r.urgency, r.since, r.session_id))[:MOST]
    first = {"all": [r.session_id for r in rows], "whole": whole}
    begin = moved[0].id - 1 if moved else at.last
    return _lines(now, rows, moved, Cursor(at.database, begin), at, ("state", first), beyond)


def changes(
    now: float,
    rows: Sequence[Row],
    removed: Sequence[str],
    moved: Sequence[Moved],
    before: Cursor,
    at: Cursor,
    beyond: int = 0,
) -> Iterator[bytes]:
    """Return the lines of the changes; `before` is the cursor that the reader has."""
    first = {"removed": list(removed)}
    return _lines(now, rows, moved, before, at, ("change", first), beyond)


def of(machine: str, said: OfOne) -> Iterator[bytes]:
    """Return the lines of a message from one of many machines.

    What does not fit into the first follows as changes, each row with its transitions.
    """
    if not isinstance(said, FeedState | FeedChange) or len(said.sessions + said.transitions) <= FEW:
        yield encoded(Of(machine, said))
        return
    moved: dict[str, list[Moved]] = {}
    for m in said.transitions:
        moved.setdefault(m.session_id, []).append(m)
    at, lowest = cursor_of(said.cursor), min((m.id for m in said.transitions), default=0)
    before = (
        str(at._replace(last=min(at.last, max(lowest - 1, 0)))) if at and lowest else said.cursor
    )
    rows, own, room = list[Row](), list[Moved](), ROOM
    for row in said.sessions:
        its = moved.pop(row.session_id, [])
        size = len(_encode(row)) + sum(len(_encode(m)) for m in its)
        if size > room and rows:
            part = replace(said, cursor=before, sessions=tuple(rows), transitions=tuple(own))
            yield encoded(Of(machine, part))
            said, rows, own, room = FeedChange(said.now, said.cursor), [], [], ROOM
        rows.append(row)
        own += its
        room -= size
    rest = [m for its in moved.values() for m in its]
    yield encoded(Of(machine, replace(said, sessions=tuple(rows), transitions=(*own, *rest))))


def replied(id: int, reply: Mapping[str, Any]) -> bytes:
    """Return the line of a reply, or of an error if it is too long."""
    made = encoded({"type": "reply", "id": id, **reply})
    if len(made) <= LONGEST:
        return made
    why = f"the reply is too long for a feed: {len(made) >> 10} kB"
    return encoded({"type": "reply", "id": id, **refusal(why)})


def asking(id: int, do: str, fields: Mapping[str, Any]) -> bytes:
    """Return the line of a request."""
    return encoded({"id": id, "do": do, **fields})


def _lines(
    now: float,
    rows: Sequence[Row],
    moved: Sequence[Moved],
    before: Cursor,
    at: Cursor,
    first: tuple[str, dict[str, Any]],
    beyond: int,
) -> Iterator[bytes]:
    parts = list(_parts(rows, moved))
    kind, more = first
    for n, (sessions, transitions, last) in enumerate(parts):
        is_last = n == len(parts) - 1
        before = at if is_last else before._replace(last=last or before.last)
        yield encoded(
            {"type": kind, "now": now, "cursor": str(before)}
            | {"sessions": sessions, "transitions": transitions}
            | more
            | ({"beyond": beyond} if beyond else {})
        )
        kind, more = "change", {"removed": []}


def _parts(
    rows: Sequence[Row], moved: Sequence[Moved]
) -> Iterator[tuple[list[Raw], list[Raw], int]]:
    """Return rows, then transitions, as much as fits into a line each, and its last transition."""
    sessions: list[Raw] = []
    transitions: list[Raw] = []
    room, last = ROOM, 0
    for item in (*rows, *moved):
        made = _encode(item)
        if len(made) > room and (sessions or transitions):
            yield sessions, transitions, last
            sessions, transitions, room = [], [], ROOM
        room -= len(made)
        if isinstance(item, Moved):
            transitions.append(Raw(made))
            last = item.id
        else:
            sessions.append(Raw(made))
    yield sessions, transitions, last


def _encode(value: object) -> bytes:
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, OverflowError):  # a lone surrogate, or a number unknown to JSON
        return msgspec.json.encode(storable(msgspec.to_builtins(value)))


# Read the lines of a feed, and the requests of a reader.
#
# This file does no I/O, knows no clock, and tolerates any input.


MOST_AGENTS: Final = 50
SENTENCE: Final = 400  # characters of a reason
NOTE: Final = 1000  # of what is shown in health
MOST_NOTES: Final = 20
MOST_TEXTS: Final = 10_000  # values in what is asked; a request has dozens
GREETING: Final = b'{"type":"hello"'  # how a feed begins
MOST_JUNK: Final = 1 << 20  # bytes that are not of a feed: what a login shell prints has fewer
TOO_LONG: Final = f"it sent a line of more than {LONGEST >> 10} kB"
NO_PROTOCOL: Final = "it does not say which protocol it speaks: update bellboard there"
FOREIGN: Final = "its command prints something other than a feed, such as: {}"

_WORD: Final = re.compile(r"[a-z][a-z_-]{0,31}")


class FeedLines:
    """Reads the lines of a feed; too many that are not of one are a problem."""

    def __init__(self) -> None:
        self.foreign = ""  # the last line that is not of a feed
        self._junk = 0  # bytes of such lines
        self._lines = Lines(LONGEST)

    def take(self, data: bytes) -> Iterator[Line | None]:
        """Return the message in each line, as `read` does; None for an empty line."""
        for raw in self._lines.take(data):
            said = read(raw) if raw.strip() else None
            yield self._counted(said) if isinstance(said, Junk) else said

    def _counted(self, junk: Junk) -> Line:
        self._junk, self.foreign = self._junk + junk.size, line(junk.text, 120)
        return FeedProblem(FOREIGN.format(self.foreign)) if self._junk > MOST_JUNK else junk


def moved_of(given: object) -> Moved | None:
    """Return a transition that was sent or published, cleaned."""
    if not isinstance(given, dict):
        return None
    id, sid = count_in(given, "id", LARGEST), id_of(given.get("session_id"))
    if not id or not sid:
        return None
    before, after = (
        x if x in URGENCY else None for x in (_word(given, "from"), _word(given, "to"))
    )
    rule, why = text_in(given, "rule"), text_in(given, "why", SENTENCE)
    return Moved(id, time_in(given, "t"), sid, before, after, rule, why, given.get("live") is True)


def read(raw: bytes) -> Line | None:
    """Return the message in a line of a feed; None for an unknown type."""
    if len(raw) > LONGEST:
        return FeedProblem(TOO_LONG)
    given = value_of(raw)
    if not isinstance(given, dict) or not (kind := _word(given, "type")):
        text = line(raw[:1000].decode("utf-8", "replace"))
        return _greeting(raw) or Junk(text, max(len(raw), LEAST_JUNK))
    made = _READERS.get(kind)
    return made(given) if made else None


def asked(raw: bytes) -> Ask | None:
    """Return the request in a line of a reader; None if there is none."""
    given = storable(value_of(raw)) if len(raw) <= LONGEST else None
    if not isinstance(given, dict):
        return None
    id, do = count_in(given, "id", LARGEST), _word(given, "do")
    fields = {key: value for key, value in given.items() if key not in ("id", "do")}
    return Ask(id, do, fields) if id else None


def _greeting(raw: bytes) -> Line | None:
    """Return a hello that follows what a login shell printed on the same line."""
    given = value_of(raw[at:]) if (at := raw.find(GREETING)) > 0 else None
    return _hello(given) if isinstance(given, dict) else None


def _hello(given: dict[str, Any]) -> Line:
    spoken = given.get("feed")
    if type(spoken) is not int:
        return FeedProblem(NO_PROTOCOL)
    if spoken != PROTOCOL:
        where = "here" if spoken > PROTOCOL else "there"
        said = str(spoken) if abs(spoken) < LARGEST else "(an invalid number)"
        return FeedProblem(
            f"it speaks protocol {said}, this one {PROTOCOL}: update bellboard {where}"
        )
    agents = (agent_in(x) for x in list_of(given.get("agents"))[:MOST_AGENTS])
    return Hello(
        version=text_in(given, "version", 40),
        machine=id_of(given.get("machine")),
        boot=id_of(given.get("boot")),
        now=time_in(given, "now"),
        hooks=given.get("hooks") is True,
        agents=tuple(x for x in agents if x),
        hosts=count_in(given, "hosts"),
        user=text_in(given, "user", 60),
    )


def _state(given: dict[str, Any]) -> Line:
    listed = given.get("all")
    if not isinstance(listed, list):
        return FeedProblem("its state does not list its sessions")
    if why := _too_much(given, "all"):
        return FeedProblem(why)
    ids = _ids(listed)
    rows, bad = _rows(given)
    moved, worse = _moves(given)
    known = tuple(r for r in rows if r.session_id in ids)
    skipped = bad + worse + len(rows) - len(known)
    whole = given.get("whole") is True
    beyond = count_in(given, "beyond")
    return FeedState(*_when(given), tuple(ids), known, moved, whole, skipped, beyond)


def _change(given: dict[str, Any]) -> Line:
    if why := _too_much(given, "removed"):
        return FeedProblem(why)
    rows, bad = _rows(given)
    moved, worse = _moves(given)
    gone = tuple(_ids(list_of(given.get("removed"))))
    return FeedChange(*_when(given), rows, gone, moved, bad + worse, count_in(given, "beyond"))


def _beat(given: dict[str, Any]) -> Line:
    return Beat(*_when(given))


def reply_of(given: dict[str, Any]) -> Reply:
    """Return a reply that was sent, cleaned."""
    known = ("type", "id", "ok", "why")
    more = storable({key: value for key, value in given.items() if key not in known})
    id, ok = count_in(given, "id", LARGEST), given.get("ok") is True
    if _count(more) > MOST_TEXTS:
        return Reply(id, False, "its request has too many parts to show here", {})
    return Reply(id, ok, text_in(given, "why", SENTENCE), _marked(more))


def _problem(given: dict[str, Any]) -> Line:
    return FeedProblem(text_in(given, "text", SENTENCE) or "it ended and gave no reason")


def _of(given: dict[str, Any]) -> Of | None:
    """Return the message from one of many machines; None if its name or content is unusable."""
    name, said = given.get("machine"), given.get("said")
    if not isinstance(name, str) or not MACHINE.fullmatch(name) or not isinstance(said, dict):
        return None
    made = _OF_ONE.get(_word(said, "type"))
    return Of(name, made(said)) if made is not None else None


def _notes(given: dict[str, Any]) -> HealthNotes:
    told = given.get("notes")
    found = list(told.items())[:MOST_NOTES] if isinstance(told, dict) else []
    return HealthNotes(
        {line(about): line(why, NOTE) for about, why in found if isinstance(why, str)}
    )


_OF_ONE: Final[dict[str, Callable[[dict[str, Any]], Any]]] = {
    "hello": _hello,
    "state": _state,
    "change": _change,
    "beat": _beat,
    "problem": _problem,
    "gone": lambda given: Gone(),
}
_READERS: Final[dict[str, Callable[[dict[str, Any]], Line | None]]] = {
    **{kind: made for kind, made in _OF_ONE.items() if kind != "gone"},
    "reply": reply_of,
    "of": _of,
    "notes": _notes,
}


def _when(given: dict[str, Any]) -> tuple[float, str]:
    return time_in(given, "now"), str(cursor_of(given.get("cursor")) or "")


def _too_much(given: dict[str, Any], also: str) -> str:
    for key in (also, "sessions", "transitions"):
        if (count := len(list_of(given.get(key)))) > MOST:
            what = "transitions in a line" if key == "transitions" else "sessions"
            return TOO_MANY.format(count, what)
    return ""


def _ids(listed: Iterable[object]) -> dict[str, None]:
    return dict.fromkeys(sid for x in listed if (sid := id_of(x)))


def _rows(given: dict[str, Any]) -> tuple[tuple[Row, ...], int]:
    """Return the last row of each session in a line, and how many rows could not be used."""
    listed = list_of(given.get("sessions"))
    rows = {r.session_id: r for x in listed if (r := row_of(x)) is not None}
    return tuple(rows.values()), len(listed) - len(rows)


def _moves(given: dict[str, Any]) -> tuple[tuple[Moved, ...], int]:
    listed = list_of(given.get("transitions"))
    moved = {m.id: m for x in listed if (m := moved_of(x)) is not None}
    return tuple(moved.values()), len(listed) - len(moved)


def _word(given: Mapping[str, Any], key: str) -> str:
    value = given.get(key)
    return value if isinstance(value, str) and _WORD.fullmatch(value) else ""


def _count(value: object) -> int:
    """Return the number of values in a value."""
    inner = [*value.values()] if isinstance(value, dict) else value
    return 1 + sum(map(_count, inner)) if isinstance(inner, list) else 1


def _marked(value: Any) -> Any:
    if isinstance(value, str):
        return marked(value)
    if isinstance(value, list):
        return [_marked(x) for x in value]
    if isinstance(value, dict):
        return {marked(key): _marked(x) for key, x in value.items()}
    return value
