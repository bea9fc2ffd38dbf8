"""Rules for the screen, the last resort: used only if there is no better evidence."""

from __future__ import annotations

from msgspec.structs import replace

from ..events import Event
from ..options import Options
from ..session import Block, Session
from .steps import (
    complete,
    end_questions,
    is_alone,
    is_blind,
    prove_questions,
    rest,
    turn_to_work,
)

BETTER = "its hooks or session file report that"
OLDER = "older than the last screen"


def seen_busy(s: Session, e: Event, o: Options) -> str | None:
    """Its screen shows that it is working, or which attempt it makes."""
    if not is_alone(s):
        return _attempt(s, e)
    if e.t <= s.over + o.swap:
        return "older than the end of the turn"
    if refused := _refused(s, e):
        return refused
    end_questions(s, set(s.blocks), e)
    if s.turn != "working":
        turn_to_work(s, e.t)
    s.inferred = True
    s.retrying = e.detail
    return None


def seen_idle(s: Session, e: Event, o: Options) -> str | None:
    """Its screen shows that it is waiting for a prompt."""
    if refused := _refused(s, e):
        return refused
    asked = bool(s.blocks)
    end_questions(s, set(s.blocks), e)
    if s.turn not in ("working", "unknown"):
        return None if asked else "already at rest"
    if asked:
        rest(s, e.t, interrupted=True)
    else:
        complete(s, e.t)
    s.inferred = True
    return None


def seen_asks(s: Session, e: Event, o: Options) -> str | None:
    """Its screen shows a question, or the text of one that its session file reports."""
    if is_blind(s) and not is_alone(s):
        return _told_in_words(s, e)
    if refused := _refused(s, e):
        return refused
    known = next((b for b in s.blocks.values() if (b.asks, b.detail) == (e.asks, e.detail)), None)
    asked = Block(e.asks, e.t, "", e.tool, "", e.detail, shown=True, inferred=True)
    s.blocks = {"screen": replace(asked, since=known.since) if known else asked}
    if s.turn != "working":
        turn_to_work(s, e.t)
    return None


def _told_in_words(s: Session, e: Event) -> str | None:
    """Its session file reports a question, and only its screen shows the text."""
    if e.t < s.watched:
        return OLDER
    s.watched = e.t
    slot, block = next(
        (k, b)
        for k, b in s.blocks.items()
        if b.shown and not b.key and (b.inferred or not b.detail)
    )
    if (block.asks, block.tool, block.detail) == (e.asks, e.tool, e.detail):
        return "already shown"
    since = e.t if block.detail else block.since
    read = {"asks": e.asks, "tool": e.tool, "detail": e.detail, "inferred": True}
    s.blocks = {**s.blocks, slot: replace(block, since=since, **read)}
    prove_questions(s)
    return None


def _attempt(s: Session, e: Event) -> str | None:
    """Better evidence reports the status, but only its screen may show that the API failed."""
    if s.turn != "working" or not (e.detail or s.retrying):
        return BETTER
    if e.t < max(s.watched, s.began, s.active):
        return OLDER
    s.watched = e.t
    if e.detail == s.retrying:
        return "already shown"
    s.retrying, s.read_retry = e.detail, bool(e.detail)
    return None


def _refused(s: Session, e: Event) -> str | None:
    if not is_alone(s):
        return BETTER
    if e.t < s.watched:
        return OLDER
    s.watched, s.screen = e.t, e.status
    return None
