"""Other ways to know the status, each a few simple rules, and what they would have shown.

Each takes the lines of a trace and yields changes as `bellboard watch --json` prints them.  Those
that know no sessions name the process instead.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from bellboard.agents import traces as traces
from bellboard.core.records import Folded
from live.account import Line
from rig import ROOT

BY_FILE: Final = {"busy": "working", "waiting": "blocked", "shell": "background"}
ENDED: Final = {"completed", "error", "idle"}
ASKED: Final = ("permission_prompt", "elicitation_dialog")
LAST_WORDS: Final = {"Interrupted": "idle", "API Error": "error"}
EVIDENCE: Final = ("hook", "registry", "transcript", "process", "osc7501", "tick")
REGISTERED: Final = json.loads((ROOT / "hooks" / "hooks.json").read_text())["hooks"].keys()
SAYS: Final = {"done": "completed"}  # words of a report that are not ours


class Shown:
    """The changes of what is shown, of which each is yielded once."""

    def __init__(self) -> None:
        self._now: dict[str, str | None] = {}

    def __call__(self, t: float, who: Any, status: str | None) -> Iterator[Line]:
        """Show a status from now on; None: it is not listed."""
        was = self._now.get(str(who))
        if status != was:
            self._now[str(who)] = status
            yield {"t": t, "session_id": str(who), "from": was, "to": status}

    def __getitem__(self, who: Any) -> str | None:
        return self._now.get(str(who))


def hooks(trace: Sequence[Line]) -> Iterator[Line]:
    """Follow the documented rules of a tracker for tmux, which knows nothing but hooks."""
    show = Shown()
    for x in trace:
        hook = x.get("hook", {})
        t, sid = x["t"], hook.get("session_id")
        match hook.get("hook_event_name"), show[sid]:
            case "SessionStart", None:
                yield from show(t, sid, "idle")
            case "UserPromptSubmit", _:
                yield from show(t, sid, "working")
            case "PostToolUse" | "PostToolUseFailure", str():
                yield from show(t, sid, "working")
            case "Stop", "working" | "blocked":
                yield from show(t, sid, "completed")
            case "Notification", "working" if hook.get("notification_type") in ASKED:
                yield from show(t, sid, "blocked")
            case "TeammateIdle", str():
                yield from show(t, sid, "idle")
            case "SessionEnd", _:
                yield from show(t, sid, None)


def newer_hooks(trace: Sequence[Line]) -> Iterator[Line]:
    """Follow the rules that it has today: questions by PermissionRequest, subagents counted."""
    show, since, agents = Shown(), dict[Any, float](), dict[Any, int]()
    for x in trace:
        hook = x.get("hook", {})
        t, sid, was = x["t"], hook.get("session_id"), show[hook.get("session_id")]
        to: str | None = was
        match hook.get("hook_event_name"), was:
            case "SessionStart", None:
                to = "idle"
            case "UserPromptSubmit", _:
                to, agents[sid] = "working", 0
            case "PostToolUse" | "PostToolUseFailure", str():
                to = "working"
            case "Stop", "working" | "blocked" if not agents.get(sid):
                to = "completed"
            case "PermissionRequest", "working":
                to = "blocked"
            case "Notification", "working" if hook.get("notification_type") in ASKED:
                to = "blocked" if t - since[sid] > 45 else was
            case "SubagentStart", _:
                agents[sid] = agents.get(sid, 0) + 1
            case "SubagentStop", _:
                agents[sid] = max(0, agents.get(sid, 0) - 1)
                to = "working" if was == "blocked" else was
            case "TeammateIdle", str():
                to = "idle"
            case "SessionEnd", _:
                to = None
        if to != was:
            since[sid] = t
            yield from show(t, sid, to)


def session_file(trace: Sequence[Line]) -> Iterator[Line]:
    """Translate the session file; a process that rests after work has completed it."""
    show = Shown()
    for x in trace:
        if "registry" in x:
            pid, record = x["registry"]["pid"], x["registry"]["record"] or {}
            yield from show(x["t"], pid, rested(BY_FILE.get(record.get("status", "")), show[pid]))


def screen(trace: Sequence[Line]) -> Iterator[Line]:
    """Look for a spinner, "esc to interrupt", a dialog, and the last words of a turn."""
    show = Shown()
    for x in trace:
        if "truth" in x:
            pid, working = x["pid"], x["truth"] if x["truth"] != "idle" else None
            status = rested(working, show[pid])
            if status == "completed":
                words = "\n".join(x["screen"])
                status = next((to for said, to in LAST_WORDS.items() if said in words), status)
            yield from show(x["t"], pid, status)


def rested(status: str | None, was: str | None) -> str:
    """Return what is shown of one that may be at rest."""
    return status or (was if was in ENDED else "completed" if was else "idle")


def report(trace: Sequence[Line]) -> Iterator[Line]:
    """Believe the root record of the program's own report."""
    show = Shown()
    for x in trace:
        said = fields(x.get("osc7501", {}).get("body", ""))
        if "state" in said and "id" not in said:
            state = said["state"]
            now = None if state == "clear" else SAYS.get(state, state)
            yield from show(x["t"], x["osc7501"]["pid"], now)


def fields(body: str) -> dict[str, str]:
    """Return the keys and values of a report."""
    return {key: value for key, _, value in (part.partition("=") for part in body.split(":"))}


def alone(trace: Sequence[Line]) -> Iterator[Line]:
    """Fold the reports, and the ends of processes, with the code that a host runs."""
    whose: dict[str, str] = {}
    for folded in folds(trace, ("osc7501", "process")):
        whose.setdefault(folded.session_id, str(folded.event.pid))
        for change in folded.changes:
            mine = whose[change.session_id]
            yield {**traces.transition_line(change), "session_id": mine}


def everything(trace: Sequence[Line]) -> Iterator[Line]:
    """Fold all evidence with the code that a host runs."""
    for folded in folds(trace, EVIDENCE):
        yield from map(traces.transition_line, folded.changes)


def folds(trace: Sequence[Line], kinds: Sequence[str]) -> Iterator[Folded]:
    """Yield what becomes of the evidence of some kinds; of hooks, only those that we register."""
    return traces.replay(
        json.dumps(x).encode()
        for x in trace
        if any(kind in x for kind in kinds)
        and (x.get("hook", {}).get("hook_event_name") in {None, *REGISTERED})
    )


WAYS: Final[Mapping[str, Callable[[Sequence[Line]], Iterator[Line]]]] = {
    "hooks": hooks,
    "newer hooks": newer_hooks,
    "screen": screen,
    "session file": session_file,
    "report": report,
    "alone": alone,
    "everything": everything,
}
