"""The trace of the day: scenes of many files at thirty places, one after the other at each.

Nothing here depends on the program, on chance, or on the machine.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Final, NamedTuple

from rig import DATA

TRACES: Final = DATA / "traces"
#: The scenes, in their order.  Others may come to `traces/`: the day stays as it is.
CHOSEN: Final = Path(__file__).parent / "scenes.txt"

START: Final = 1_800_000_000  # 08:00 UTC
HOUR: Final = 3600
PLACES: Final = 30
TICK: Final = 30

Line = dict[str, Any]

#: Keys whose values are ids of sessions.
IDS: Final = frozenset(
    {"session_id", "sessionId", "sessionID", "parentID", "threadId", "thread_id", "parent"}
)
PIDS: Final = frozenset({"pid", "ppid"})
LOGS: Final = frozenset(
    {"transcript_path", "transcriptPath", "transcript", "agent_transcript_path"}
)
#: Keys that say more about a line.
NO_KINDS: Final = frozenset(
    {"t", "arrived", "origin", "pid", "ppid", "event", "viewer", "note", "line", "cwd"}
)
#: Lines about all sessions, which would meet those of other scenes.
COMMON: Final = frozenset({"restart", "config", "clock"})
UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
HEAD: Final = re.compile(r"\b[0-9a-f]{8}\b")  # how the id of a lead begins
PANE: Final = re.compile(r"%(\d+)\b")
TTY: Final = re.compile(r"\bpts/(\d+)\b")
ISO: Final = re.compile(r"\b(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)((?:\.\d+)?Z)")

#: What is damaged on its way; each comes a few times.
DAMAGED: Final = (
    *(b"", b"{", b"\xff\xfe", b"[]", b"null", b'{"t": "now"}', b'{"t": 1e999, "tick": {}}'),
    *(b'{"hook": {}}', b'{"t": 0, "registry": 7}', b'{"t": -1, "osc7501": {"pid": 0}}'),
)


class Told(NamedTuple):
    """A line of the day, and the scene that it belongs to."""

    t: float
    number: int  # its place in the order of the day
    scene: str
    raw: bytes


class RecordedHour(NamedTuple):
    """A recording, or the trace of a case."""

    name: str
    lines: list[Line]

    @property
    def lasts(self) -> float:
        return max(map(arrives, self.lines)) - self.begins

    @property
    def begins(self) -> float:
        return min(map(arrives, self.lines))


def arrives(line: Line) -> float:
    """Return when a line is read, which may be long before or after its own time."""
    arrived = line.get("arrived")
    return float(arrived if isinstance(arrived, int | float) else line["t"])


def day() -> list[Told]:
    """Return the trace, in the order of its lines."""
    found: list[tuple[float, int, str, bytes]] = []
    left: dict[int, list[tuple[float, int, str, bytes]]] = {}  # by place: how it is left
    free = [(20 * place, place) for place in range(PLACES)]
    heapq.heapify(free)
    scenes = [*_scenes()]
    spare = PLACES * (HOUR - 60) - sum(scene.lasts for scene in scenes)
    pause = int(spare / len(scenes)) - 2  # how long each stands before the next comes to its place
    for number, scene in enumerate(scenes):
        begin, place = heapq.heappop(free)
        until = begin + int(scene.lasts) + pause
        if until > HOUR:
            heapq.heappush(free, (begin, place))
            continue
        heapq.heappush(free, (until + 2, place))
        lines = _moved(scene, number, START + begin)
        lines += _people(lines, number)
        found += left.pop(place, ())  # whoever was there before
        name = f"{number:03} {scene.name}"
        left[place] = [(arrives(x), number, name, _encoded(x)) for x in _left(lines, START + until)]
        lines.sort(key=arrives)
        found += [(arrives(x), number, name, _encoded(x)) for x in lines]
        if number % 9 == 4:
            found += _damaged(found[-1], number)
    found += [(t, -1, "", _encoded(x)) for x in _common() for t in [float(x["t"])]]
    found.sort(key=lambda x: (x[0], x[1]))  # stable: lines of one moment stay in their order
    return [Told(t, n, name, raw) for n, (t, _, name, raw) in enumerate(found)]


def kinds(told: list[Told]) -> dict[str, int]:
    """Return how many lines of each kind there are, and of each agent."""
    found: Counter[str] = Counter()
    for each in told:
        try:
            line = json.loads(each.raw)
        except ValueError:
            line = None
        if not isinstance(line, dict):
            found["damaged"] += 1
            continue
        origin = line["origin"] if isinstance(line.get("origin"), dict) else {}
        found.update(key for key in line if key not in NO_KINDS)
        found.update([f"agent {origin['agent']}"] if "agent" in origin else [])
    return dict(sorted(found.items()))


def digest(told: list[Told]) -> str:
    """Return a digest of the whole trace."""
    return hashlib.sha256(b"\n".join(x.scene.encode() + b" " + x.raw for x in told)).hexdigest()


def _scenes() -> Iterator[RecordedHour]:
    """Yield the scenes, without what the day itself tells all of them."""
    cases: dict[str, dict[str, list[Line]]] = {}
    for name in CHOSEN.read_text(encoding="utf-8").split():
        folder, _, leaf = name.partition("/")
        if (TRACES / folder).is_dir():
            lines = _read(TRACES / folder / f"{leaf}.jsonl")
        else:
            if folder not in cases:
                cases[folder] = {x["id"]: x["trace"] for x in _read(TRACES / f"{folder}.jsonl")}
            lines = cases[folder][leaf]
        lines = [x for x in lines if "truth" not in x and not COMMON & x.keys()]
        yield RecordedHour(name, [x for x in lines if type(x.get("t")) in (int, float)])


def _read(path: Path) -> list[Line]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(text) for text in file]


def _encoded(line: Line) -> bytes:
    return json.dumps(line).encode()


# ---------------------------------------------------------------- a scene at its place


def _moved(scene: RecordedHour, number: int, begin: int) -> list[Line]:
    """Return the lines at another time, with ids, processes and terminals of their own."""
    moved = _Moved(scene, number, begin - int(scene.begins))
    lines: list[Line] = [moved.value(x) for x in scene.lines]
    if number % 7 == 3:  # our hooks run late
        lines = [{**x, "t": x["t"] + 0.4} if "hook" in x else x for x in lines]
    return lines


class _Moved:
    """Names that are changed in one scene: the same everywhere in it, unlike all in another."""

    def __init__(self, scene: RecordedHour, number: int, later: int) -> None:
        self._number, self._later = number, later
        self._about = scene.begins
        self._pids: dict[int, int] = {}
        self._ids: set[str] = set()
        self._machines: set[str] = set()
        self._uuids: dict[str, int] = {}
        self._heads: dict[str, str] = {}
        self._collect(scene.lines)
        for uuid in sorted(set(UUID.findall(json.dumps(scene.lines)))):
            self._heads.setdefault(uuid[:8], self._uuid(uuid)[:8])

    def _collect(self, value: Any) -> None:
        if isinstance(value, list):
            for each in value:
                self._collect(each)
        if isinstance(value, dict):
            for key, each in value.items():
                if key in IDS and isinstance(each, str) and each and not UUID.search(each):
                    self._ids.add(each)
                elif key == "machine" and isinstance(each, str):
                    self._machines.add(each)
                elif key in PIDS and type(each) is int and each > 1:
                    self._pid(each)
                else:
                    self._collect(each)

    def value(self, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: self.value(each, name) for name, each in value.items()}
        if isinstance(value, list):
            rows = key == "ps"
            return [self._row(x) if rows and isinstance(x, str) else self.value(x) for x in value]
        if isinstance(value, str):
            return self._text(value, key)
        if type(value) is int and key in PIDS and value > 1:
            return self._pid(value)
        if type(value) in (int, float):
            return self._time(value)
        return value

    def _pid(self, pid: int) -> int:
        if pid not in self._pids:
            self._pids[pid] = 10_000 + 50 * self._number + len(self._pids)
        return self._pids[pid]

    def _row(self, row: str) -> str:
        """Rename the processes of a hook: pid, parent, group, leader."""
        words = row.split()
        if len(words) < 6 or not words[0].isdigit():
            return self._text(row, "")
        four = [str(self._pid(int(x))) if x.isdigit() and int(x) > 1 else x for x in words[:4]]
        return self._text(" ".join([*four, *words[4:]]), "")

    def _text(self, text: str, key: str) -> str:
        if text in self._ids and key not in ("tool_name", "hook_event_name", "status", "prompt"):
            return self._id(text)
        if key == "machine":
            return f"{text}{self._number}"
        parts = text.split("/")
        if len(parts) > 2 and parts[0] in self._machines:
            return "/".join([f"{parts[0]}{self._number}", *parts[1:]])
        if key == "viewer":
            return f"{text}-{self._number}"
        text = UUID.sub(lambda x: self._uuid(x[0]), text)
        text = HEAD.sub(lambda x: self._heads.get(x[0], x[0]), text)
        text = PANE.sub(lambda x: f"%{100 * self._number + int(x[1])}", text)
        text = TTY.sub(lambda x: f"pts/{100 * self._number + int(x[1])}", text)
        text = ISO.sub(self._date, text)
        text = text.replace("/nvim.sock", f"/nvim.{self._number}.0")
        if key in LOGS and "/" in text:
            folder, _, leaf = text.rpartition("/")
            text = f"{folder}/{self._number}/{leaf}"
        return text

    def _id(self, text: str) -> str:
        parts = text.split("/")
        if len(parts) > 2 and parts[0] in self._machines:
            return "/".join([f"{parts[0]}{self._number}", *parts[1:]])
        process = re.fullmatch(r"process-(\d+)-(.*)", text)
        if process:
            return f"process-{self._pid(int(process[1]))}-{process[2]}"
        return f"{text}-{self._number}" if text.isprintable() and len(text) < 150 else text

    def _uuid(self, uuid: str) -> str:
        index = self._uuids.setdefault(uuid, len(self._uuids))
        return f"{self._number:04x}{index:04x}-0000-4000-8000-{index:012x}"

    def _time(self, value: float) -> float:
        for unit in (1, 1000):
            if abs(value - self._about * unit) < 10**6 * unit and value > 10**9 * unit:
                moved = value + self._later * unit
                return moved if type(value) is int else round(moved, 6)
        return value

    def _date(self, found: re.Match[str]) -> str:
        t = datetime.strptime(found[1], "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc)
        if abs(t.timestamp() - self._about) > 10**6:
            return found[0]
        return f"{t + timedelta(seconds=self._later):%Y-%m-%dT%H:%M:%S}{found[2]}"


# ---------------------------------------------------------------- what the day adds


def _people(lines: list[Line], number: int) -> list[Line]:
    """Return what people do in the middle of a scene, and soon after its end."""
    named = [x[key]["session_id"] for x in lines for key in ("hook", "registry") if _names(x, key)]
    if not named:
        return []
    sid, first, last = named[0], min(map(arrives, lines)), max(map(arrives, lines))
    middle, after = round((first + last) / 2, 3), round(last + 5, 3)
    did: list[Line] = [
        {"name": {"session_id": sid, "name": f"errand {number}"}},
        {"label": {"session_id": sid, "label": ("IMPORTANT", "HEAVY", "ONEOFF")[number % 3]}},
        {"goto": {"session_id": sid}},
        {"view": {"session_id": sid}, "viewer": f"nvim {number}"},
        {"snooze": {"session_id": sid, "until": middle + 20.0}},
        {"park": {"session_id": sid, "parked": True}},
        {"answer": {"session_id": sid, "choice": "allow", "way": "hook", "by": "editor"}},
        {"set": {"session_id": sid, "status": ("idle", "working", "blocked")[number % 3]}},
        {"facts": {"session_id": sid, "branch": f"topic-{number}", "repository": "acme/api"}},
        {},
    ]
    then: dict[int, Line] = {
        2: {"label": {"session_id": sid, "label": ""}},
        3: {"view": None, "viewer": f"nvim {number}"},
        5: {"park": {"session_id": sid, "parked": False}},
        6: {
            "answer": {"session_id": sid, "outcome": "confirmed", "choice": "allow", "way": "hook"}
        },
        9: {"goto": {"session_id": sid}},
    }
    turn = number % len(did)
    found = [{"t": middle, **did[turn]}] if did[turn] else []
    return [*found, {"t": after, **then[turn]}] if turn in then else found


def _names(line: Line, key: str) -> bool:
    given = line.get(key)
    return isinstance(given, dict) and isinstance(given.get("session_id"), str)


def _left(lines: list[Line], t: int) -> list[Line]:
    """Return how a place is left: its processes end, and what had none is forgotten."""
    text = json.dumps(lines)
    pids = dict.fromkeys(map(int, re.findall(r'"pid": (\d+)', text)))
    if pids:
        return [
            {"t": t + 0.01 * n, "process": {"pid": x, "alive": False}} for n, x in enumerate(pids)
        ]
    ids = dict.fromkeys(re.findall(r'"session_?[iI][dD]": "([^"\\]+)"', text))
    return [{"t": float(t), "forget": {"session_id": x}} for x in ids]


def _damaged(
    last: tuple[float, int, str, bytes], number: int
) -> Iterator[tuple[float, int, str, bytes]]:
    """Yield what arrives damaged after a line: something else, and half of the line itself."""
    t, _, name, raw = last
    yield t, number, name, DAMAGED[number // 9 % len(DAMAGED)]
    yield t, number, name, raw[: len(raw) // 2]


def _common() -> Iterator[Line]:
    """Yield what concerns all: the time, a background process that starts again, settings."""
    for t in range(0, HOUR + 1, TICK):
        yield {"t": START + t, "tick": {}}
    yield {"t": START + 1234.5, "restart": {}}
    yield {"t": START + 2345.5, "restart": {}}
    yield {"t": START + 2700.5, "config": {"clear": {"grace": 15}}}
