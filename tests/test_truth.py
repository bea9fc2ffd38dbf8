"""What is shown, compared with what the CLI says of itself, second by second.

The CLI keeps `sessions/<pid>.json`: busy is working, waiting is blocked, shell is background; idle
is what the last end says.  Not counted: the moment around each change, dialogs that ask nothing for
the agent, and a session open in two processes at once, which has two truths.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import pytest

from playback import TRACES, Line, play, read_lines

pytestmark = pytest.mark.pure

RECORDINGS: Final = {path.stem: path for path in sorted((TRACES / "recordings").glob("*.jsonl"))}
SLACK: Final = 0.35  # around each change: the CLI's file and its hooks are as far apart
HOOKS: Final = frozenset({"hook", "process", "pane", "view", "goto", "tick", "raw"})
EVIDENCE: Final = {
    "all evidence": HOOKS | {"registry", "transcript"},
    "hooks and transcripts": HOOKS | {"transcript"},
    "hooks alone": HOOKS,
}
FLOOR: Final = {"all evidence": 0.999, "hooks and transcripts": 0.93, "hooks alone": 0.89}
LONGEST_WRONG: Final = 0.5
AT_REST: Final = frozenset({"idle", "completed", "error"})
Allowed = frozenset[str]


@dataclass(frozen=True)
class Stretch:
    """A time in which the CLI says the same of a session, and what may be shown in it."""

    start: float
    end: float
    session_id: str
    allowed: Allowed


class Account:
    """What the CLI says of itself in a recording, as stretches."""

    def __init__(self, lines: list[Line]) -> None:
        self.stretches: list[Stretch] = []
        self.now: dict[int, tuple[float, str, Allowed | None]] = {}  # pid → since, session, allowed
        self.idle_is: dict[str, Allowed] = {}  # session → what idle means by now
        self.speaks_for: dict[
            int, str
        ] = {}  # pid → session: older CLIs leave a stale id in the file
        begin = lines[0]["t"] + 0.05
        self.dead = {
            x["process"]["pid"]
            for x in lines
            if "process" in x and not x["process"]["alive"] and x["t"] <= begin
        }
        for x in lines:
            self.take(x)
        for pid in list(self.now):
            self.close(pid, lines[-1]["t"])

    def take(self, x: Line) -> None:
        if "process" in x and not x["process"]["alive"]:
            self.close(x["process"]["pid"], x["t"])
        if "hook" in x:
            self.take_hook(x["hook"], x.get("origin", {}).get("pid"), x["t"])
        if "registry" in x and x["registry"]["pid"] not in self.dead:
            self.take_registry(x["registry"]["pid"], x["registry"]["record"], x["t"])

    def take_hook(self, hook: Line, pid: int | None, t: float) -> None:
        sid = hook.get("session_id", "")
        if not hook.get("agent_id"):
            was = self.idle_is.get(sid, frozenset({"idle"}))
            now = self.idle_after(hook, was)
            if now != was:
                self.idle_is[sid] = now
                for p, (_, s, allowed) in list(self.now.items()):
                    if s == sid and allowed is not None and allowed <= AT_REST:
                        self.open(p, t, sid, now - {"prompted"} or frozenset({"idle"}))
        if pid and self.speaks_for.get(pid) != sid:
            self.speaks_for[pid] = sid
            if pid in self.now:
                self.open(pid, t, sid, self.now[pid][2])

    @staticmethod
    def idle_after(hook: Line, was: Allowed) -> Allowed:
        name = hook.get("hook_event_name")
        if name == "SessionStart":
            return was if hook.get("source") == "compact" else frozenset({"idle"})
        if name == "UserPromptSubmit":
            return frozenset({"prompted"})
        if name == "StopFailure":
            return frozenset({"error"})
        if name == "Stop":
            ended = "prompted" in was or was == {"completed"}
            return frozenset({"completed"} if ended else {"idle", "completed"})
        if name == "PreCompact":
            return was | {"idle", "completed"}
        return was

    def take_registry(self, pid: int, record: Line | None, t: float) -> None:
        if record is None:
            self.close(pid, t)
            return
        sid = self.speaks_for.get(pid) or record.get("sessionId", "")
        idle = self.idle_is.get(sid, frozenset({"idle"})) - {"prompted"} or frozenset({"idle"})
        means: dict[str, Allowed] = {
            "busy": frozenset({"working"}),
            "waiting": frozenset({"blocked"}),
            "shell": frozenset({"background"}),
            "idle": idle,
        }
        allowed = means.get(record.get("status", ""))
        if record.get("waitingFor") == "dialog open":
            allowed = None
        if pid not in self.now or self.now[pid][1:] != (sid, allowed):
            self.open(pid, t, sid, allowed)

    def open(self, pid: int, t: float, sid: str, allowed: Allowed | None) -> None:
        self.close(pid, t)
        self.now[pid] = (t, sid, allowed)

    def close(self, pid: int, t: float) -> None:
        since, sid, allowed = self.now.pop(pid, (t, "", None))
        if allowed and t - since > 2 * SLACK:
            self.stretches.append(Stretch(since + SLACK, t - SLACK, sid, allowed))


def truth(lines: list[Line]) -> list[Stretch]:
    processes: dict[str, set[int]] = {}
    for x in lines:
        if "registry" in x and x["registry"]["record"]:
            sid = x["registry"]["record"].get("sessionId", "")
            processes.setdefault(sid, set()).add(x["registry"]["pid"])
    return [x for x in Account(lines).stretches if len(processes.get(x.session_id, ())) < 2]


def wrong_times(stretch: Stretch, changes: list[Line]) -> list[float]:
    """How long at a time something else was shown than the CLI says."""
    mine = [(c["t"], c["to"]) for c in changes if c["session_id"] == stretch.session_id]
    shown = next((to for t, to in reversed(mine) if t <= stretch.start), None)
    inside = [(t, to) for t, to in mine if stretch.start < t < stretch.end]
    steps = [(stretch.start, shown), *inside, (stretch.end, None)]
    wrong, run = [], 0.0
    for (t, status), (until, _) in pairwise(steps):
        if status in stretch.allowed:
            wrong.append(run)
            run = 0.0
        else:
            run += until - t
    return [x for x in [*wrong, run] if x > 0]


def compared(kind: str, name: str) -> tuple[float, list[float]]:
    """Seconds compared in one recording, and its wrong stretches."""
    lines = read_lines(RECORDINGS[name])
    stretches = truth(lines)
    changes, _ = play(x for x in lines if EVIDENCE[kind] & x.keys())
    total = sum(x.end - x.start for x in stretches)
    return total, [w for x in stretches for w in wrong_times(x, changes)]


@pytest.mark.parametrize("kind", EVIDENCE)
def test_agrees_with_the_clis_own_account(kind: str) -> None:
    scores = {name: compared(kind, name) for name in RECORDINGS}
    total = sum(seconds for seconds, _ in scores.values())
    wrong = sum(sum(times) for _, times in scores.values())
    assert total > 240, "the recordings hold four minutes of the CLI's own account"
    assert 1 - wrong / total >= FLOOR[kind], {n: w for n, (_, w) in scores.items() if w}


@pytest.mark.parametrize("name", RECORDINGS)
def test_with_all_evidence_nothing_wrong_lasts(name: str) -> None:
    _, wrong = compared("all evidence", name)
    assert [w for w in wrong if w > LONGEST_WRONG] == []
