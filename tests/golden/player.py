"""Play the day, and write down everything that is published: a list of lines for each kind."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final

from . import program
from .day import HOUR, START, Told

MOMENTS: Final = tuple(START + m * 60.0 + 7.5 for m in range(5, 60, 5))
WIDTHS: Final = (60, 100, 0)
NEVER: Final = float("inf")

Outcome = dict[str, list[str]]


def decoded(day: Iterable[Told]) -> Iterator[tuple[float, list[program.Event]]]:
    """Yield the events of each line, decoded within its scene as in a trace of its own."""
    recorded: dict[str, program.Recorded] = defaultdict(program.Recorded)
    for told in day:
        yield told.t, [*recorded[told.scene].events(told.raw)]


class Player:
    """A board, what was last published from it, and all that was."""

    def __init__(self) -> None:
        self.board = program.Board()
        self.log: list[program.Folded] = []
        self._ringing = {mode: program.Ringing(mode) for mode in ("normal", "all")}
        self._wakes = dict.fromkeys(self._ringing, NEVER)
        self._outcome: dict[str, list[str]] = defaultdict(list)
        self._last: dict[tuple[str, str], dict[str, Any]] = {}
        self._texts: dict[str, str] = {}
        self._moments = [*MOMENTS]

    def play(self, day: Iterable[Told]) -> Outcome:
        """Fold every line, and wake in between whenever a host would."""
        for t, events in decoded(day):
            self._wait(t)
            for event in events:
                self._take(self.board.fold(event), t)
        self._wait(START + HOUR + 60.0)
        self._end()
        return dict(self._outcome)

    def _wait(self, until: float) -> None:
        """Wake at every deadline, notice and moment to look before this time."""
        now = self.board.ledger.clock or START
        while True:
            due = self.board.due()
            when = min(*self._wakes.values(), due if due is not None else NEVER, *self._moments[:1])
            if when >= until:
                return
            now = max(now, when)
            self._take(self.board.advance(now), now)
            if self._moments and self._moments[0] <= now:
                self._look(self._moments.pop(0))

    def _take(self, folded: list[program.Folded], now: float) -> None:
        self.log += folded
        changes = [change for f in folded for change in f.changes]
        for change in changes:
            self._say("transitions", change.t, change.session_id, program.transition_line(change))
        changed = sorted(self.board.dirty - {""})
        self.board.dirty.clear()
        for sid in changed:
            self._changed("pushes", now, sid, program.published(self.board, sid))
            self._changed("rows", now, sid, program.row_elsewhere(self.board, sid))
        for mode, ringing in self._ringing.items():
            if not (changed or changes) and now < self._wakes[mode]:
                continue
            ringing.see(self.board, changed, now)
            ringing.hear(changes)
            for notice in ringing.due(self.board, now):
                self._say("notices", now, mode, notice)
            self._text("float", f"float {mode}", now, " ".join(ringing.calling(now)))
            self._wakes[mode] = ringing.wake(now)
        if not changed:
            return
        shown = program.most_urgent(p for (kind, _), p in self._last.items() if kind == "pushes")
        for room in (60, 120):
            self._text("bar", f"{room} cells", now, program.status_text(shown, now, room))

    def _changed(self, kind: str, now: float, sid: str, p: dict[str, Any] | None) -> None:
        """Write down what is new in a session: all of it at first, then what changed."""
        before = self._last.get((kind, sid))
        if p is None:
            if before is not None:
                del self._last[kind, sid]
                self._say(kind, now, sid, None)
            return
        p = json.loads(json.dumps(p))
        self._last[kind, sid] = p
        news = p if before is None else _news(before, p)
        if news or before is None:
            self._say(kind, now, sid, news)

    def _text(self, kind: str, key: str, now: float, text: str) -> None:
        if self._texts.get(key) != text:
            self._texts[key] = text
            self._say(kind, now, key, text)

    def _look(self, now: float) -> None:
        """Write down what the commands show."""
        shown = program.snapshot(self.board.sessions.values())
        for columns in WIDTHS:
            lines = program.listed(self.board, now, columns)
            self._outcome["list"] += [f"{_clock(now)} {columns:3} {line}" for line in lines]
        for n, p in enumerate(shown):
            self._say("list_json", now, f"{n:3} {p['session_id']}", program.worded(p))
            if words := program.time_words(p, now):
                self._say("list_json", now, f"{n:3} {p['session_id']}", words)

    def _end(self) -> None:
        logs: dict[str, list[program.Folded]] = defaultdict(list)
        for f in self.log:
            logs[f.session_id].append(f)
        for sid in sorted(logs.keys() - {""}):
            lines = program.explained(self.board, sid, logs[sid])
            self._outcome["explain"] += [f"{sid} {line}" for line in lines]
        self._outcome["replay"] += program.replayed(self.board, self.log)
        end = program.final_line(self.board)
        for each in end["sessions"]:
            self._say("end", end["t"], each["session_id"], each)
        for p in program.over(self.board):
            self._say("ended", p["ended"], p["session_id"], p)
        counts: dict[str, int] = defaultdict(int)
        for name, count in self.board.ledger.counts.items():
            counts[name.partition("not JSON")[0]] += count  # the rest is up to Python's version
        for name, count in sorted(counts.items()):
            self._say("counts", end["t"], name, count)

    def _say(self, kind: str, t: float, about: str, what: object) -> None:
        text = what if isinstance(what, str) else json.dumps(what, ensure_ascii=False)
        self._outcome[kind].append(f"{_clock(t)} {about} {text}")


def _news(before: dict[str, Any], p: dict[str, Any]) -> dict[str, Any]:
    """Return what changed: new values, None for what is gone, and the same within the words."""
    news: dict[str, Any] = {}
    for key in [*p, *(key for key in before if key not in p)]:
        old, new = before.get(key), p.get(key)
        if old != new:
            is_within = key == "words" and isinstance(old, dict) and isinstance(new, dict)
            news[key] = _news(old, new) if is_within else new  # type: ignore[arg-type]
    return news


def _clock(t: float) -> str:
    """Return a time of the day: minutes, seconds and milliseconds of the hour."""
    thousandths = round((t - START) * 1000)
    sign, left = ("-", -thousandths) if thousandths < 0 else ("", thousandths)
    return f"{sign}{left // 60000:02}:{left // 1000 % 60:02}.{left % 1000:03}"
