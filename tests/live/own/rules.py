"""The rules that decided a shown status, and the program's own report at that moment."""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from live.account import Line
from live.own import ways
from live.own.score import read

SOON: Final = 1.0  # seconds in which a program may report what a rule has decided


@dataclass
class Decided:
    """The changes of a status by a rule, by the report of the program."""

    already: int = 0  # it had reported that
    soon: int = 0  # it reported that within a second
    unsaid: int = 0  # it had not reported anything yet
    otherwise: Counter[tuple[str, str]] = field(default_factory=Counter)  # shown, reported

    @property
    def times(self) -> int:
        return self.already + self.soon + self.unsaid + self.otherwise.total()


def decided(files: Iterable[Path]) -> dict[tuple[str, str], Decided]:
    """Return it for each rule and kind of evidence, of the traces of programs that report."""
    found: dict[tuple[str, str], Decided] = {}
    for path in files:
        trace = read(path)
        said = reported(trace)
        whose = {x: pid for pid in said for x in sessions_of(trace, pid)}
        for t, sid, status, rule, kind in changes(trace):
            if (pid := whose.get(sid)) is not None:
                count(found.setdefault((rule, kind), Decided()), said[pid], t, status)
    return found


def count(rule: Decided, said: Sequence[tuple[float, str]], t: float, status: str) -> None:
    """Count a change of what is shown."""
    at = bisect(said, t, key=lambda x: x[0])
    now = said[at - 1][1] if at else ""
    if now == status:
        rule.already += 1
    elif any(after == status for when, after in said[at:] if when <= t + SOON):
        rule.soon += 1
    elif not now:
        rule.unsaid += 1
    else:
        rule.otherwise[status, now] += 1


def changes(trace: Sequence[Line]) -> Iterator[tuple[float, str, str, str, str]]:
    """Fold a trace; yield time, session, status, rule and kind of evidence of each change."""
    for folded in ways.folds(trace, ways.EVIDENCE):
        for change in folded.changes:
            shown = change.after or "gone"
            yield change.t, change.session_id, shown, change.rule, folded.event.kind


def reported(trace: Sequence[Line]) -> dict[int, list[tuple[float, str]]]:
    """Return what each process reported, and when."""
    said: dict[int, list[tuple[float, str]]] = {}
    for change in ways.report(trace):
        said.setdefault(int(change["session_id"]), []).append((change["t"], change["to"] or "gone"))
    return said


def sessions_of(trace: Sequence[Line], pid: int) -> set[str]:
    """Return the sessions of a process, by its hooks and its file."""
    named = {x["hook"]["session_id"] for x in trace if x.get("origin", {}).get("pid") == pid}
    for x in trace:
        record = x.get("registry", {}).get("record") or {}
        if x.get("registry", {}).get("pid") == pid and "sessionId" in record:
            named.add(record["sessionId"])
    return named
