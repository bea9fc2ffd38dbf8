"""Read the lines of a feed, and the requests of a reader; `feed.py` has what they say.

This file does no I/O, knows no clock, and tolerates any input.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from .detail import line
from .feed import (
    LEAST_JUNK,
    LONGEST,
    MOST,
    PROTOCOL,
    TOO_MANY,
    Ask,
    Beat,
    Change,
    Hello,
    Junk,
    Line,
    Moved,
    Problem,
    Reply,
    State,
    cursor_of,
)
from .lenient import LARGEST, list_of, storable, value_of
from .row import Row, agent_of, count_in, id_of, row_of, text_in, time_in
from .session import URGENCY
from .visible import marked

MOST_AGENTS: Final = 50
SENTENCE: Final = 400  # characters of a reason
MOST_TEXTS: Final = 10_000  # values in what is asked; a request has dozens
GREETING: Final = b'{"type":"hello"'  # how a feed begins
MOST_JUNK: Final = 1 << 20  # bytes that are not of a feed: what a login shell prints has fewer
TOO_LONG: Final = f"it sent a line of more than {LONGEST >> 10} kB"
SILENT: Final = "it does not say which protocol it speaks: update bellboard there"
FOREIGN: Final = "its command prints something other than a feed, such as: {}"

_WORD: Final = re.compile(r"[a-z][a-z_-]{0,31}")


class Lines:
    """Splits what is read into lines; too many that are not of a feed are a problem."""

    def __init__(self) -> None:
        self.foreign = ""  # the last line that is not of a feed
        self._junk = 0  # bytes of such lines
        self._rest = bytearray()  # of a line

    def take(self, data: bytes) -> Iterator[Line | None]:
        """Return the message in each line, as `read` does; None for an empty line."""
        *whole, rest = data.split(b"\n")
        for part in whole:
            raw = bytes(self._rest) + part
            self._rest.clear()
            said = read(raw) if raw.strip() else None
            yield self._counted(said) if isinstance(said, Junk) else said
        self._rest += rest
        if len(self._rest) > LONGEST:
            yield Problem(TOO_LONG)

    def _counted(self, junk: Junk) -> Line:
        self._junk, self.foreign = self._junk + junk.size, line(junk.text, 120)
        return Problem(FOREIGN.format(self.foreign)) if self._junk > MOST_JUNK else junk


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
        return Problem(TOO_LONG)
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
        return Problem(SILENT)
    if spoken != PROTOCOL:
        where = "here" if spoken > PROTOCOL else "there"
        said = str(spoken) if abs(spoken) < LARGEST else "(an invalid number)"
        return Problem(f"it speaks protocol {said}, this one {PROTOCOL}: update bellboard {where}")
    agents = (agent_of(x) for x in list_of(given.get("agents"))[:MOST_AGENTS])
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
        return Problem("its state does not list its sessions")
    if why := _too_much(given, "all"):
        return Problem(why)
    ids = _ids(listed)
    rows, bad = _rows(given)
    moved, worse = _moves(given)
    known = tuple(r for r in rows if r.session_id in ids)
    skipped = bad + worse + len(rows) - len(known)
    whole = given.get("whole") is True
    return State(*_when(given), tuple(ids), known, moved, whole, skipped)


def _change(given: dict[str, Any]) -> Line:
    if why := _too_much(given, "removed"):
        return Problem(why)
    rows, bad = _rows(given)
    moved, worse = _moves(given)
    gone = tuple(_ids(list_of(given.get("removed"))))
    return Change(*_when(given), rows, gone, moved, bad + worse)


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
    return Problem(text_in(given, "text", SENTENCE) or "it ended and gave no reason")


_READERS: Final = {
    "hello": _hello,
    "state": _state,
    "change": _change,
    "beat": _beat,
    "reply": reply_of,
    "problem": _problem,
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
