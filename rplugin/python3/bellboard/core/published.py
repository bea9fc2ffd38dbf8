"""The published form of sessions, a plain record each, and their order.

Lua, `bellboard list --json` and every other reader gets this form.  No status is decided here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from .program_status import stated
from .restore import KEPT
from .rules.steps import needs_screen
from .session import (
    ABSENT,
    URGENCY,
    Block,
    OwnReport,
    Session,
    Shell,
    Subagent,
    Tool,
    heard_of,
    is_hidden,
    is_listed,
    is_nameless,
    markers_of,
    oldest,
    owns_pane,
    question_of,
    status_of,
)
from .text import line

Published = dict[str, Any]
SOURCES = {"report": "says so itself", "file": "session file", "server": "server"}


class Looked(NamedTuple):
    """When sessions were looked at, and which could not be verified; None: any of them."""

    t: float
    unverified: frozenset[str] | None


def publish(s: Session) -> Published:
    """Return a session in the form for readers, without unknown fields."""
    if s.machine:
        return _publish_far(s)
    status, question, hidden = status_of(s), question_of(s), is_hidden(s)
    tool, kind, tool_name, detail, begun = tool_of(s), "", "", "", 0.0
    own = s.own_report.records.get("") if s.own_report is not None else None
    if question:
        kind, tool_name, detail = question.asks, question.tool, question.detail
    elif status == "working" and (held := waiting_for_hook(s)):
        tool_name, detail = held.tool, f"waits for a hook: {held.detail}".rstrip(": ")
        begun = held.since
    elif status == "working" and not s.retrying:
        if tool is not None:
            tool_name, detail, begun = tool.name, tool.detail, tool.since
        elif own is not None:
            detail = own.msg
    else:
        detail = s.error or s.retrying
    known: Published = {
        "kind": kind,
        "tool": tool_name,
        "detail": detail,
        "tool_since": begun if tool_name else 0.0,
        "quiet_since": heard_of(s) if s.quiet and status == "working" else 0.0,
        "asked_at": question.since if question else 0.0,
        "request": question.request if question else "",
        "title": s.title,
        "name": s.name,
        "label": s.label,
        "project": project_of(s),
        "cwd": s.cwd,
        "project_dir": s.project_dir,
        "agent": s.agent,
        "pid": s.pid if s.pid in s.processes else next(iter(s.processes), None),
        "tty": s.tty,
        "tmux": s.tmux,
        "pane": s.pane,
        "nvim": "" if owns_pane(s) else s.nvim,  # inherited, if it has a pane of its own
        "kitty": s.kitty if s.tty and not (s.nvim or s.pane) else "",  # else it may be inherited
        "blind": bool(s.tty) and needs_screen(s),
        "job": s.job,
        "terminal_program": s.terminal_program,
        "ssh": s.ssh,
        "through": s.through,
        "board": s.record.partition("/")[0],
        "parent": s.parent,
        "previous": list(s.previous),
        "team": list(s.team),
        "agents": _agents(s) if s.agents else None,
        "background": [_task(x) for x in s.shells] if s.shells else None,
        "tasks": {"done": s.tasks_done, "total": s.tasks} if s.tasks else None,
        "progress": f"{own.progress}%" if own is not None and own.progress >= 0 else "",
        "wakeups": s.wakeups,
        "mode": s.mode if is_mode_known(s, status) else "",
        "model": s.model,
        "context": s.context,
        "last_prompt": s.prompt,
        "prompts": list(s.prompts),
        "last_message": s.message,
        "transcript": s.transcript,
        "snoozed_until": s.snoozed_until,
        "submitted": s.submitted if s.submitted > s.began else 0.0,
        "edited": s.edited,
        "writes": [*dict.fromkeys(path for tool in s.tools.values() for path in tool.writes)],
        "source": source_of(s),
        "own_report": _compared(s.own_report) if s.own_report is not None else None,
        "last_event": {"event": s.hook, "t": s.hook_at} if s.hook else None,
        **{name: fact for name, fact in s.facts.items() if name not in KEPT},
    }
    return {
        "session_id": s.session_id,
        "status": status,
        "since": s.since,
        "hidden": hidden,
        "markers": markers_of(s, status, question, hidden),
        "urgency": URGENCY[status],
        "updated": s.last,
        **{k: v for k, v in known.items() if v},
    }


def source_of(s: Session) -> str:
    """Return what shows the status of a session, in words."""
    source = s.stated.source if s.stated.says else ""
    if source in SOURCES:
        return SOURCES[source]
    if s.hooked:
        return "hooks"
    if source:
        return "title"
    return "screen" if s.screen else "transcript" if s.transcript else ""


def _compared(report: OwnReport) -> dict[str, object]:
    """Publish what a program says of itself, and how often its session file differed from that."""
    says = stated(report.records)
    return ({"status": says} if says else {}) | (
        {"differed": report.count, "seconds": report.seconds} if report.count else {}
    )


def _publish_far(s: Session) -> Published:
    """Publish what another machine shows of a session.

    Its ids, paths and sockets mean nothing here: no field that is used on this machine has them.
    """
    status, row = status_of(s), s.row
    marks = [*row.get("markers", ())]
    known = {
        "machine": s.machine,
        "far_pid": row.get("pid"),
        "far_ssh": row.get("ssh"),
        "link_why": s.link_why,
        "link_since": s.link_since,
        "folded": s.folded and not row.get("hidden"),
    }
    return {
        **{k: v for k, v in row.items() if k not in ("pid", "ssh")},
        **{k: v for k, v in known.items() if v},
        "session_id": s.session_id,
        "status": status,
        "since": s.since,
        "hidden": is_hidden(s),
        "markers": marks + ["stale"] * (s.stale and "stale" not in marks),
        "urgency": URGENCY[status],
        "updated": s.last,
    }


def tool_of(s: Session) -> Tool | None:
    """Return the newest tool of its main thread; if it is quiet, the one that has run longest."""
    mine = [t for t in s.tools.values() if not t.agent]
    if s.quiet:
        return min(mine or s.tools.values(), key=lambda t: t.since, default=None)
    return max(mine, key=lambda t: t.since, default=None)


def verified(p: Published, looked: Looked) -> Published:
    """Return a session with the time at which it was verified: else that of its newest evidence."""
    if looked.unverified is not None and p["session_id"] not in looked.unverified:
        return {**p, "verified": looked.t}
    t, marks = p["updated"], p["markers"]
    return {**p, "verified": t, "stale_since": t, "markers": [*dict.fromkeys((*marks, "stale"))]}


def is_mode_known(s: Session, status: str) -> bool:
    """Return whether its hooks show its permission mode: a key changes that, and nothing says so.

    They do while a turn runs.
    """
    runs = status in ("working", "blocked") and s.turn == "working"
    return runs and not (s.stale or s.quiet) and s.mode_at >= s.began and s.mode_at > s.over


def waiting_for_hook(s: Session) -> Block | None:
    """Return the question that a user's hook may answer first."""
    return oldest(b for b in s.blocks.values() if b.waits and not b.passed)


def _agents(s: Session) -> list[dict[str, object]]:
    asking = {b.agent for b in s.blocks.values() if b.shown}
    # A workflow is one, whether a Stop has listed it or only its agents have started.
    members = [a for a in s.agents.values() if a.type == "workflow" and not a.apart]
    ran = [a for a in s.agents.values() if a not in members]
    flows = [a for a in ran if a.type == "workflow"] or members[:1]
    theirs = {a.id for a in members} | (asking - s.agents.keys() if len(flows) == 1 else set())
    return [
        {**_task(a), "blocked": a.id in asking or (a in flows and bool(asking & theirs))}
        for a in (ran if members[:1] != flows else [*ran, *flows])
    ]


def _task(x: Subagent | Shell) -> dict[str, object]:
    return {"id": x.id, "type": x.type, "since": x.since, "description": x.description}


def ended(sessions: Iterable[Session], path: str = "") -> list[Published]:
    """Return the ended sessions, of one directory if given, latest first."""
    over = [s for s in sessions if s.turn == ABSENT and s.ended and not is_nameless(s.session_id)]
    here = [s for s in over if not path or path in (s.cwd, s.project_dir)]
    here.sort(key=lambda s: (-s.ended, s.session_id))
    return [publish_ended(s) for s in here]


def publish_ended(s: Session) -> Published:
    """Return a session that has ended in the form for readers."""
    known = {
        "reason": s.end_reason,
        "title": s.title,
        "name": s.name,
        "label": s.label,
        "project": project_of(s),
        "branch": s.facts.get("branch"),
        "cwd": s.cwd,
        "agent": s.agent,
        "last_prompt": s.prompt,
        "last_message": s.message,
        "transcript": s.transcript,
    }
    there = {key: value for key, value in known.items() if value}
    return {"session_id": s.session_id, "ended": s.ended, **there}


def needs_you(p: Published) -> bool:
    return needs_somebody(p["status"], p["markers"], p["hidden"])


def needs_somebody(status: str, markers: Collection[str], hidden: bool) -> bool:
    """Return whether a session asks something, failed, or is done and unseen."""
    urgent = status in ("blocked", "error", "completed") or "unseen" in markers
    return urgent and not hidden and "parked" not in markers


def project_of(s: Session) -> str:
    """Return a short name for where it works: the repository's or the folder's.

    It is one visible line: commands of the user get it too, and print it to terminals.
    """
    if s.machine:
        return line(str(s.row.get("project", "")))
    if s.through:
        return line(s.through)
    repository = s.facts.get("repository")
    named = repository if isinstance(repository, str) else ""
    where = named or s.project_dir or s.cwd
    return line(where.rstrip("/").rpartition("/")[2])


def snapshot(sessions: Iterable[Session]) -> list[Published]:
    """Return all listed sessions, most urgent first, then longest waiting first."""
    return sorted((publish(s) for s in sessions if is_listed(s)), key=by_urgency)


def by_urgency(p: Published) -> tuple[int, float, str]:
    """Return the sort key of a session: the most urgent first, then the longest waiting."""
    return p["urgency"], p["since"], p["session_id"]


def of_directory(published: Iterable[Published], path: str) -> Published | None:
    """Return the session for a directory: one in it, below it or above it, in this order.

    A session above counts only while its process is known to run; otherwise, one that was once
    started in the root directory would match every directory.
    """
    here = PurePosixPath(path)
    best: tuple[int, int, float] | None = None
    found = None
    for p in published:
        near = _relation(here, p)
        if near is None or p["hidden"]:
            continue
        rank = (near, p["urgency"], -p["since"])
        if best is None or rank < best:
            best, found = rank, p
    return found


def _relation(here: PurePosixPath, p: Mapping[str, Any]) -> int | None:
    places = [PurePosixPath(x) for x in (p.get("cwd"), p.get("project_dir")) if x]
    if here in places:
        return 0
    if any(here in x.parents for x in places):
        return 1
    if p.get("pid") and any(x in here.parents for x in places):
        return 2
    return None
