"""Why a session has its status, in one sentence: which source states it, and which others agree."""

from __future__ import annotations

from typing import Final

from .session import Process, Session, Stated, own, question_of, status_of
from .sources import AGREES, is_dialog, reported

#: Source → what it is called.
NAMES: Final = {
    "report": "its own report",
    "file": "its session file",
    "server": "its server",
    "title": "the title of its terminal",
}


def reason(s: Session, since: str) -> str:
    """Return why a session has its status, which it has had since that time of day."""
    status, x = status_of(s), s.stated
    name = NAMES.get(x.source, "") if x.says else ""
    if name and s.stood and not s.leads:
        about = f" ({x.asks})" if x.asks and status == "blocked" else ""
        by = f"{name} says so{about}" if _agrees(x, status) else "nothing newer says otherwise"
    elif name and s.leads:
        by = f"a hook says so, and {name} does not yet"
    else:
        by = "hooks say so" if s.hooked else "its log or screen says so"
    parts = [f"{status}: {by}, since {since}", *_others(s, status)]
    if question := question_of(s):
        what = " ".join(filter(None, (question.tool, question.detail and f"`{question.detail}`")))
        parts.append(f"asked: {what}" if what else "")
    return "; ".join(filter(None, parts))


def _agrees(x: Stated, status: str) -> bool:
    return is_dialog(x) or status in AGREES.get(x.says, ())


def _others(s: Session, status: str) -> list[str]:
    """Return what sources say that are not the best one, or are set aside."""
    p = own(s) or Process(0)
    report = reported(s.own_report) if s.own_report is not None else Stated()
    known = [
        (p.states, p.doubted),
        (report, s.own_report is not None and s.own_report.doubted),
    ]
    told = []
    for x, doubted in known:
        if not x.says or (x.source == s.stated.source and not doubted):
            continue
        name = NAMES[x.source]
        if doubted:
            told.append(f"{name} does not keep up")
        elif _agrees(x, status):
            told.append(f"{name} agrees")
        else:
            told.append(f"{name} says {x.says}")
    return told
