"""The rule for what a program reports of itself (OSC 7501): that is its status, as it stands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from ..events import Event
from ..options import Options
from ..program_status import Record, Report, at_prompt, taken
from ..session import Agent, Block, OwnReport, Session, Shell, is_told_otherwise, stated
from .steps import die, end, end_questions, rest, turn_to_work

ENDS: Final = frozenset({"clear", "prompt", "exit"})  # what says nothing but that something is over
RESTS: Final = frozenset({"idle", "done", "background"})
UNNAMED: Final = "choice"  # what it asks, if it does not say which kind of question that is


def state(s: Session, e: Event, o: Options) -> str | None:
    """It says so itself."""
    before = s.own_report or OwnReport()
    records = _heard(before.records, e)
    is_told = is_told_otherwise(s)
    # A turn may have passed in a time without hosts, after which everything is said again.
    is_missed = before.unsaid and e.t > before.at and e.status in ("done", "error")
    unsaid = tuple(x for x in before.unsaid if x != e.agent)
    s.own_report = replace(before, records=records, at=max(before.at, e.t), unsaid=unsaid)
    is_known = records == before.records and e.status not in ENDS and not is_missed
    if is_told:
        return "its hooks, session file or server decide; its own report is only compared"
    if is_known and s.turn != "unknown":
        s.trusted_until = 0.0
        return "it has said that before"
    _set(s, e, "" if is_missed else stated(before.records), stated(records))
    return None


def _heard(records: Mapping[str, Record], e: Event) -> Mapping[str, Record]:
    """Return its records after a report, at the next prompt of its shell, or without a terminal."""
    if e.status == "prompt":
        kept = at_prompt(records)  # a part that is done says nothing of the whole
        return kept if "" in kept or "" not in records else {}
    if e.status == "exit":
        return {}
    said = (e.status, e.agent, e.asks, "", e.progress, e.title, e.detail)
    return taken(records, Report(*said), e.t)


def _set(s: Session, e: Event, before: str, now: str) -> None:
    """Set a session to what its records say."""
    is_news = before != now or s.turn in ("working", "unknown")
    records = s.own_report.records if s.own_report is not None else {}
    root = records.get("") or Record(now, e.t)
    if root.title and not s.titled:
        s.title = root.title
    asked = {
        f"own report {name}": Block(r.kind or UNNAMED, r.since, name, detail=r.msg, shown=True)
        for name, r in records.items()
        if r.state == "blocked"
    }
    end_questions(s, s.blocks.keys() - asked.keys(), e)
    parts = [(x, r) for x, r in records.items() if x and r.state in ("working", "blocked")]
    s.blocks, s.shells = asked, ()
    if now in ("working", "blocked"):
        if s.turn != "working" or before not in ("working", "blocked"):
            turn_to_work(s, e.t)
    elif now in RESTS:
        is_end = is_news and now != "idle" and before not in RESTS - {"idle"}
        unseen = is_end or (now != "idle" and (s.unseen or s.turn == "completed"))
        rest(s, e.t)
        s.turn = now if now == "background" else "completed" if unseen else "idle"
        s.unseen = unseen and now == "background"
        s.message = root.msg if is_end else s.message
    elif now == "error" and is_news:
        die(s, e.t, root.msg)
    elif not now:
        end(s, e.t, "its own report", s.pid)
        return
    if now == "background":
        s.agents = {}
        s.shells = tuple(Shell(x, "shell", r.since, r.title or r.msg) for x, r in parts)
    else:
        s.agents = {x: Agent(x, "task", r.since, r.title or r.msg) for x, r in parts}
