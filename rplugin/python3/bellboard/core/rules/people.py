"""Rules of what people do, and of what is doubtful after nobody watched."""

from __future__ import annotations

from ..events import Event
from ..options import Options
from ..session import Block, Session
from .steps import rest


def look(s: Session, e: Event, o: Options) -> str | None:
    """Somebody looks at it, or looks away."""
    if e.alive == (e.viewer in s.viewers):
        return "looked at already" if e.alive else "not looked at"
    others = {v: t for v, t in s.viewers.items() if v != e.viewer}
    s.viewers = others | {e.viewer: e.t} if e.alive else others
    return None


def clear(s: Session, e: Event, o: Options) -> str | None:
    """You have seen it."""
    if s.turn == "background":
        if not s.unseen:
            return "seen before"
        s.unseen = False
        return None
    rest(s, s.over)
    return None


def correct(s: Session, e: Event, o: Options) -> str | None:
    """You corrected it; the next evidence counts again."""
    if e.status not in ("blocked", "error", "completed", "working", "background", "idle"):
        return f"{e.status or 'nothing'} is no status to set"
    if e.status == "blocked":
        s.blocks = {":": Block("permission", e.t, detail="marked by hand", shown=True)}
        return None
    s.blocks = {}
    rest(s, e.t)
    s.turn = e.status
    return None


def mark(s: Session, e: Event, o: Options) -> str | None:
    """You named, labelled, parked or snoozed it."""
    if e.kind == "label":
        s.label = e.status
    elif e.kind == "name":
        s.name = e.status
    elif e.kind == "park":
        s.parked = e.alive
    else:
        s.snoozed_until = e.at
    return None


def learn(s: Session, e: Event, o: Options) -> str | None:
    """Facts for display: repository, branch, ports."""
    s.facts = {**s.facts, **{k: v for k, v in e.settings.items() if k != "session_id"}}
    return None


def doubt(s: Session, e: Event, o: Options) -> str | None:
    """Nobody watched meanwhile: unknown, until something proves what it does."""
    if e.kind == "restart" and e.t - s.last <= o.fresh:
        s.trusted_until = s.last + o.fresh
        return "its record is fresh"
    s.trusted_until = 0.0
    if s.blocks:
        return "it waits for you"
    s.turn = "unknown"
    return None
