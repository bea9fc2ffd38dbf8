"""The CLI's own account of its status, as stretches of time, compared with what is shown.

The CLI writes `sessions/<pid>.json`: busy is working, waiting is blocked, shell is background; idle
depends on how the last turn ended.  For old CLIs, which do not, `painted` is what the screen shows.
Not counted are the moment around each change, and dialogs that are not the agent's; one that opens
while a tool of the turn waits is the agent's.  A hook reports a change shortly before the file, a
second before it on a busy machine: from then on, either status may be shown.  For a session in two
processes, the more urgent one counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from live.report import Line, Row

Allowed = frozenset[str]

SLACK: Final = 0.35  # seconds around each change: the distance between the CLI's file and its hooks
GONE: Final = 5.0  # seconds; longer than the limit, so that a miss is measured
STANDS: Final = 2 * SLACK  # seconds; shorter stretches are not compared
AT_REST: Final = frozenset({"idle", "completed", "error"})
IDLE: Final = frozenset({"idle"})
ANY: Final[Allowed] = frozenset()  # nothing is known
INTERRUPTED: Final = "[Request interrupted by user"
FORETOLD: Final = 1.2  # seconds after its hook in which a starved CLI may write its file
CERTAIN: Final = 5.0  # seconds, if no other process can be the cause
COUNTED: Final = ("shell", "subagent", "workflow", "monitor", "teammate")  # in its file, or no work
SENT_ON: Final = frozenset({"prompted", "idle", "completed"})  # continued by a Stop hook, until Esc
COMPLETED: Final = frozenset({"completed"})
PROMPTED: Final = frozenset({"prompted"})
BLOCKED: Final = frozenset({"blocked"})
RESTS_OR_WORKS: Final = COMPLETED | {"working"}
RESTS: Final = "state=idle:app=claude-code"
LOGS_IN: Final = "state=blocked:app=claude-code:kind=auth"
URGENT: Final = (frozenset({"blocked"}), frozenset({"working"}))
ENDED: Final = (frozenset({"error"}), COMPLETED)  # of two ends, the more urgent one shows
ENDS_TOOLS: Final = ("PostToolBatch", "Stop", "StopFailure", "UserPromptSubmit", "SessionStart")
TELLS: Final = {  # hook → the status that its file will have
    **dict.fromkeys(("Stop", "StopFailure", "PostCompact", "SessionEnd"), AT_REST),
    **dict.fromkeys(("UserPromptSubmit", "PreCompact", "PostToolUse"), frozenset({"working"})),
    **dict.fromkeys(("PermissionRequest", "Elicitation"), frozenset({"blocked"})),
}


@dataclass(frozen=True)
class Stretch:
    """A time with one status of the CLI, and the statuses that may be shown in it."""

    start: float
    end: float
    session_id: str
    pid: int
    allowed: Allowed

    @property
    def compared(self) -> Stretch:
        """Return its length without the moments around the changes."""
        return replace(self, start=self.start + SLACK, end=self.end - SLACK)


class Account:
    """Turns the lines of a trace into stretches."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.stretches: list[Stretch] = []
        self._now: dict[
            int, tuple[float, str, Allowed | None]
        ] = {}  # pid → since, session, allowed statuses
        self._idle_is: dict[tuple[str, int], Allowed] = {}  # its process → what idle means now
        self._turn: dict[tuple[str, int], str | None] = {}  # its process → its newest prompt
        self._queued: dict[tuple[str, str], tuple[str, int]] = {}  # session, prompt → its process
        self._over: dict[str, str | None] = {}  # session → the prompt of the last turn that ended
        self._said: dict[int, str] = {}  # pid → its last status, without dialogs
        self._tools: dict[str, set[str]] = {}  # session → the running tools of its turn
        self._speaks_for: dict[
            int, str
        ] = {}  # pid → session, because older CLIs leave a stale id in the file
        self._foretold: dict[
            int, tuple[float, Allowed, float]
        ] = {}  # pid → since when, what, how long
        begin = lines[0]["t"] + 0.05
        self._dead = {
            x["process"]["pid"]
            for x in lines
            if "process" in x and not x["process"]["alive"] and x["t"] <= begin
        }
        for x in lines:
            self._take(x)
        for pid in list(self._now):
            self._close(pid, lines[-1]["t"])

    def _take(self, x: Line) -> None:
        if "process" in x and not x["process"]["alive"]:
            self._close(x["process"]["pid"], x["t"])
            self._leave(x["process"]["pid"], x["t"])
        if "hook" in x:
            self._take_hook(x["hook"], x.get("origin", {}).get("pid"), x["t"])
        if "transcript" in x:
            self._take_entry(x["transcript"]["session_id"], x["transcript"]["entry"], x["t"])
        if report := x.get("osc7501", {}).get("body", ""):
            self._take_report(x["osc7501"]["pid"], report, x["t"])
        if "registry" in x and x["registry"]["pid"] not in self._dead:
            self._take_registry(x["registry"]["pid"], x["registry"]["record"], x["t"])

    def _take_report(self, pid: int, report: str, t: float) -> None:
        """Note what idle means, if only its own report tells: it asks to log in, or a `!` ended."""
        for key in [k for k in self._idle_is if k[1] == pid]:
            if report.startswith(LOGS_IN):
                self._idle_becomes([key], BLOCKED, t)
            elif report == RESTS and not self._idle_is[key] & PROMPTED:
                self._idle_becomes([key], self._idle_is[key] | IDLE, t)

    def _take_entry(self, sid: str, entry: Line, t: float) -> None:
        if is_interrupted(entry):
            self._tools.pop(sid, None)  # no hook tells that
        if is_sent_on(entry):
            self._idle_is |= dict.fromkeys(self._whose(sid, entry), SENT_ON)
        elif is_interrupted(entry) and entry.get("promptId") not in (None, self._over.get(sid)):
            self._idle_becomes(self._whose(sid, entry), IDLE, t)  # no hook tells of a queued prompt
        elif entry.get("type") == "user" and (key := self._queued.pop((sid, said(entry)), None)):
            self._idle_becomes([key], PROMPTED, t)  # its turn begins
        elif entry.get("attachment", {}).get("type") == "hook_stopped_continuation":
            self._idle_becomes(self._whose(sid, entry), COMPLETED, t)

    def _whose(self, sid: str, entry: Line) -> list[tuple[str, int]]:
        """Return the processes that may have written an entry: one, if it names its prompt."""
        there = [key for key in self._idle_is if key[0] == sid]
        named = [key for key in there if entry.get("promptId") == self._turn.get(key, "")]
        return named or there

    def _idle_becomes(self, keys: Iterable[tuple[str, int]], means: Allowed, t: float) -> None:
        for sid, p in keys:
            if means != self._idle_is.get((sid, p), IDLE):
                self._idle_is[sid, p] = means
                now = self._now.get(p)
                if now and now[1] == sid and now[2] is not None and now[2] <= AT_REST:
                    self._open(p, t, sid, means - PROMPTED or IDLE)

    def _take_hook(self, hook: Line, pid: int | None, t: float) -> None:
        sid = hook.get("session_id", "")
        if pid and (tells := TELLS.get(hook["hook_event_name"])):
            self._foretell(pid, t, hook["hook_event_name"], tells)
        if hook["hook_event_name"] == "TeammateIdle" and hook.get("agent_id"):
            self._idle_becomes([(sid, pid or 0)], RESTS_OR_WORKS, t)  # its message follows
        if not hook.get("agent_id"):
            self._take_tool(sid, hook)
            if hook["hook_event_name"] == "Stop":
                self._over[sid] = hook.get("prompt_id")
            self._take_end(sid, pid or 0, hook, t)
        if pid and hook["hook_event_name"] == "SessionEnd":
            self._close(pid, t)
            self._speaks_for.pop(pid, None)  # the next session has another id, as after /clear
        elif pid and self._speaks_for.get(pid) != sid:
            self._speaks_for[pid] = sid
            if pid in self._now:
                self._open(pid, t, sid, self._now[pid][2])

    def _take_end(self, sid: str, pid: int, hook: Line, t: float) -> None:
        """Note what idle means now; whoever opens or prompts a session has seen its other ends."""
        key, name = (sid, pid), hook["hook_event_name"]
        others = [other for other in self._idle_is if other[0] == sid and other != key]
        if name in ("SessionStart", "UserPromptSubmit"):
            seen = [k for k in others if not self._idle_is[k] & PROMPTED]
            self._idle_becomes(seen, IDLE, t)
            if name == "UserPromptSubmit" and hook.get("prompt_id") == self._turn.get(key, ""):
                self._queued[sid, hook.get("prompt", "")] = key  # in the turn that runs
            self._turn[key] = hook.get("prompt_id")
        was = self._idle_is.setdefault(key, IDLE)
        if not (name == "StopFailure" and was == BLOCKED):  # it asks to log in
            self._idle_becomes([key], idle_after(hook, was), t)
        if name == "SessionEnd":
            self._leave(pid, t)

    def _leave(self, pid: int, t: float) -> None:
        """Let the other processes of a session have the end that nobody has looked at yet."""
        for sid, p in [key for key in self._idle_is if key[1] == pid]:
            left = self._idle_is.pop((sid, p)) - PROMPTED or IDLE
            resting = [k for k in self._idle_is if k[0] == sid and self._rests(k)]
            self._idle_becomes(resting, left, t)

    def _rests(self, key: tuple[str, int]) -> bool:
        now = self._now.get(key[1], (0.0, "", None))[2]
        return now is not None and now <= AT_REST and self._idle_is[key] <= {"idle", "prompted"}

    def _foretell(self, pid: int, t: float, name: str, tells: Allowed) -> None:
        now = self._now.get(pid, (t, "", None))[2]
        if name == "UserPromptSubmit" and not (now and now <= AT_REST):
            return  # it may only be queued
        certain = name in ("UserPromptSubmit", "StopFailure", "PostCompact", "SessionEnd")
        self._foretold[pid] = (t, tells, CERTAIN if certain else FORETOLD)

    def _take_tool(self, sid: str, hook: Line) -> None:
        name, tool = hook["hook_event_name"], hook.get("tool_use_id", "")
        if name == "PreToolUse":
            self._tools.setdefault(sid, set()).add(tool)
        elif name in ("PostToolUse", "PostToolUseFailure"):
            self._tools.get(sid, set()).discard(tool)
        elif name in ENDS_TOOLS:
            self._tools.pop(sid, None)

    def _take_registry(self, pid: int, record: Line | None, t: float) -> None:
        if record is None or "parkedJobId" in record or record.get("spare"):
            self._close(pid, t, AT_REST)
            return
        sid = self._speaks_for.get(pid) or record.get("sessionId", "")
        means: dict[str, Allowed] = {
            "busy": frozenset({"working"}),
            "waiting": frozenset({"blocked"}),
            "shell": frozenset({"background"}),
            "idle": self._idle_is.get((sid, pid), IDLE) - PROMPTED or IDLE,
        }
        status = record.get("status", "")
        allowed = means.get(status)
        if record.get("painted") and status == "idle" and self._tools.get(sid):
            allowed = None  # a starved CLI paints seconds later
        elif record.get("waitingFor") != "dialog open":
            self._said[pid] = status
        elif not (self._said.get(pid) == "busy" and self._tools.get(sid)):
            allowed = None
        if pid not in self._now or self._now[pid][1:] != (sid, allowed):
            self._open(pid, t, sid, allowed)

    def _open(self, pid: int, t: float, sid: str, allowed: Allowed | None) -> None:
        self._close(pid, t, allowed)
        self._now[pid] = (t, sid, allowed)

    def _close(self, pid: int, t: float, after: Allowed | None = None) -> None:
        since, sid, allowed = self._now.pop(pid, (t, "", None))
        told, what, lag = self._foretold.get(pid, (t, IDLE, 0.0))
        if after and after & what and t - lag < told < t:
            told = max(told, since)
            self.stretches.append(Stretch(told, t, sid, pid, ANY))
            t = told
        if t > since:
            self.stretches.append(Stretch(since, t, sid, pid, allowed or ANY))


def of_process(trace: Sequence[Line], pid: int) -> list[Stretch]:
    """Return the stretches of a process as if no other had its session."""
    others = {
        x["hook"]["prompt_id"]
        for x in trace
        if x.get("origin", {}).get("pid") not in (None, pid) and x["hook"].get("prompt_id")
    }
    lines = [
        x
        for x in trace
        if x.get("origin", {}).get("pid") in (None, pid)
        and x.get("transcript", {}).get("entry", {}).get("promptId") not in others
    ]
    found = Account(lines).stretches
    return [replace(x, session_id=str(pid)) for x in found if x.pid == pid]


def is_sent_on(entry: Line) -> bool:
    """Return whether this transcript entry shows that a Stop hook continued the session."""
    said = entry.get("message") if entry.get("isMeta") else None
    return isinstance(said, dict) and str(said.get("content")).startswith("Stop hook feedback")


def said(entry: Line) -> str:
    """Return the text of a prompt's transcript entry."""
    return str(entry.get("message", {}).get("content"))


def is_interrupted(entry: Line) -> bool:
    """Return whether this transcript entry shows that the user ended a turn of the main thread."""
    if entry.get("type") != "user" or entry.get("isSidechain"):
        return False
    content = entry.get("message", {}).get("content")
    blocks = content if isinstance(content, list) else [{"text": content}]
    return any(str(x.get("text")).startswith(INTERRUPTED) for x in blocks)


def idle_after(hook: Line, was: Allowed) -> Allowed:
    """Return what idle means in a session file after this hook."""
    name = hook.get("hook_event_name")
    if name == "SessionStart":
        return was if hook.get("source") == "compact" else IDLE
    if name == "UserPromptSubmit":
        return PROMPTED
    if name == "StopFailure":
        return frozenset({"error"})
    if name == "Stop":
        tasks = hook.get("background_tasks") or ()
        if any(x.get("type") not in COUNTED and x.get("status") == "running" for x in tasks):
            return frozenset({"background"})  # its file knows of no such task
        ended = "prompted" in was or was == COMPLETED
        return COMPLETED if ended else frozenset({"idle", "completed"})
    if name == "PreCompact":
        return was | {"idle", "completed"}
    return was


def most_urgent(stretches: Sequence[Stretch]) -> list[Stretch]:
    """Return the stretches of each session, with its most urgent process at any time.

    If the status of another process is unknown, so is that of the session.
    """
    merged = []
    for sid in sorted({x.session_id for x in stretches}):
        mine = [x for x in stretches if x.session_id == sid]
        pieces: list[Stretch] = []
        for a, b in pairwise(sorted({t for x in mine for t in (x.start, x.end)})):
            said = [x for x in mine if x.start <= a and b <= x.end]
            urgent = next((x for which in URGENT for x in said if x.allowed == which), None)
            if not said or (urgent is None and any(x.allowed == ANY for x in said)):
                continue
            urgent = urgent or next(
                (x for which in ENDED for x in said if x.allowed == which), None
            )
            allowed = urgent.allowed if urgent else ANY.union(*(x.allowed for x in said))
            piece = replace(urgent or said[0], start=a, end=b, allowed=allowed)
            last = pieces[-1] if pieces else None
            if last and last.end == a and last.allowed == allowed:
                pieces[-1] = replace(last, end=b)
            else:
                pieces.append(piece)
        merged += pieces
    return merged


@dataclass(frozen=True)
class Wrong:
    """A time in which something else was shown than what is so."""

    start: float
    end: float
    shown: str | None
    rule: str  # that decided it
    stretch: Stretch

    @property
    def seconds(self) -> float:
        """Return how long it was."""
        return self.end - self.start


def wrongs(stretch: Stretch, changes: Iterable[Line]) -> list[Wrong]:
    """Return when something wrong was shown in a stretch."""
    mine = [c for c in changes if c["session_id"] == stretch.session_id]
    before = [c for c in mine if c["t"] <= stretch.start][-1:]
    shown = before + [c for c in mine if stretch.start < c["t"] < stretch.end]
    if not before:
        shown.insert(0, {"t": 0.0, "to": None, "rule": "nothing"})
    times = [stretch.start, *(c["t"] for c in shown[1:]), stretch.end]
    return [
        Wrong(start, end, change["to"], change.get("rule") or "?", stretch)
        for change, (start, end) in zip(shown, pairwise(times), strict=True)
        if change["to"] not in stretch.allowed and end > start
    ]


def runs(stretch: Stretch, changes: Iterable[Line]) -> list[list[Wrong]]:
    """Return the same, with what follows each other together."""
    found: list[list[Wrong]] = []
    for wrong in wrongs(stretch, changes):
        if found and found[-1][-1].end == wrong.start:
            found[-1].append(wrong)
        else:
            found.append([wrong])
    return found


def wrong_times(stretch: Stretch, changes: Iterable[Line]) -> list[float]:
    """Return how long each wrong status was shown."""
    return [run[-1].end - run[0].start for run in runs(stretch, changes)]


def delay(stretch: Stretch, changes: Iterable[Line]) -> float:
    """Return how long it took to show the CLI's status; the whole stretch if never."""
    mine = [(c["t"], c["to"]) for c in changes if c["session_id"] == stretch.session_id]
    if next((to for t, to in reversed(mine) if t <= stretch.start), None) in stretch.allowed:
        return 0.0
    shown = (t for t, to in mine if stretch.start < t <= stretch.end and to in stretch.allowed)
    return next(shown, stretch.end) - stretch.start


def unsteady(stretch: Stretch, changes: Sequence[Line]) -> float:
    """Return how long a wrong status followed the right one, which slowness cannot explain."""
    shown = replace(stretch, start=stretch.start + delay(stretch, changes))
    return sum(wrong_times(shown, changes))


def judged(
    scene: str, stood: Sequence[Stretch], changes: list[Line], ended: dict[int, float]
) -> Row:
    """Return the figures of a played scene; `stood`: what its CLIs said about themselves."""
    compared = [x.compared for x in stood if x.compared.end > x.compared.start]
    gone = max(ended.values(), default=changes[-1]["t"] if changes else 0.0)
    last = {c["session_id"]: c for c in changes}.values()
    return Row(
        scene,
        compared=sum(x.end - x.start for x in compared),
        wrong=tuple(w for x in compared for w in wrong_times(x, changes)),
        delays=tuple(delay(x, changes) for x in stood if x.compared.end > x.compared.start),
        unsteady=sum(unsteady(x, changes) for x in compared),
        left=max([0.0, *(c["t"] - gone if c["to"] is None else GONE for c in last)]),
    )
