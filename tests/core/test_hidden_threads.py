"""A thread of Codex asks while its terminal shows another one, in every order of the evidence.

Each hook is a process of its own, so their events come in any order, and late on a busy machine, as
do reports and titles.  Codex waits for its hooks before it goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from random import Random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from bellboard.agents.trace_line import from_line
from bellboard.core.board import Board
from bellboard.core.session import published_status
from rig.host.playback import Line

T0 = 1.8e9
ORIGIN = {"agent": "codex", "pid": 11, "tty": "/dev/pts/0"}
HIDDEN, NEW = "s1", "s2"
AT_REST = (None, "idle", "completed")
LOCK = {"lock": NEW}  # of the new thread, as `observe_threads` finds it


class Scene:
    """The first thread is at work, the user opens another one, and each goes on by itself."""

    def __init__(self, random: Random, reports: bool, named: bool) -> None:
        self._random, self._reports, self._named = random, reports, named
        self._slow = random.choice(
            (0.0, 0.3, 1.0, 3.0)
        )  # seconds by which events are late, at most
        self._last: dict[str, float] = {}  # stream → when its last event came
        self._now = 0.0
        self._lines: list[tuple[float, Line]] = []

    def lines(self) -> list[Line]:
        """Return all evidence in the order in which a host reads it."""
        self._tell("start", {"process": {"pid": 11, "alive": True, "tty": ORIGIN["tty"]}})
        self._report("idle")
        self._turn(HIDDEN)
        self._end(HIDDEN)
        self._wait(1.6, 3.0)
        self._report("idle")  # somebody types
        self._turn(HIDDEN)
        self._wait(0.0, 3.0)
        self._tell("locks", LOCK)
        self._report("idle")
        self._title("" if self._named else "idle")
        asks, prompt = (
            self._now + self._random.uniform(0.3, 9),
            self._now + 9 * self._random.random(),
        )
        self._now = asks
        tool = {"tool_name": "Bash", "tool_input": {"command": "true"}}
        self._hook(HIDDEN, "PreToolUse", tool_use_id="u1", **tool)
        self._hook(HIDDEN, "PermissionRequest", **tool)
        self._now = prompt
        self._turn(NEW)
        self._end(NEW)
        self._wait(0.0, 3.0)
        self._report("idle")
        self._now = 60.0
        self._lines.append((60.0, {"t": T0 + 60.0, "arrived": T0 + 60.0, "tick": {}}))
        return [line for _, line in sorted(self._lines, key=lambda x: x[0])]

    def _wait(self, least: float, most: float) -> None:
        self._now += self._random.uniform(least, most)

    def _late(self) -> float:
        return self._random.choice((0.0, 0.0, 0.02, 0.2, self._slow * self._random.random()))

    def _tell(self, stream: str, line: Line) -> None:
        """Report something; what one witness reports comes in its order."""
        came = max(self._now + self._late(), self._last.get(stream, 0.0))
        if stream:
            self._last[stream] = came
        self._lines.append((came, {"t": T0 + self._now, "arrived": T0 + came, **line}))

    def _hook(self, thread: str, name: str, **fields: object) -> None:
        self._now += 0.02 + self._late()
        told = {"session_id": thread, "hook_event_name": name, "cwd": "/p", **fields}
        self._tell("", {"hook": told, "origin": ORIGIN})
        self._now += 0.01 + self._late()

    def _log(self, thread: str, what: str) -> None:
        at = datetime.fromtimestamp(T0 + self._now, timezone.utc).isoformat()
        entry = {"type": "event_msg", "payload": {"type": what}, "timestamp": at}
        told = {"session_id": thread, "agent": "codex", "entry": entry}
        self._tell(f"log of {thread}", {"transcript": told})

    def _report(self, state: str) -> None:
        if self._reports:
            said = {"pid": 11, "tty": ORIGIN["tty"], "command": "codex", "cwd": "/p"}
            body = f"state={state}:app=codex"
            self._tell("reports", {"osc7501": {**said, "body": body}})

    def _title(self, says: str) -> None:
        self._tell("titles", {"title": {"pid": 11, "says": says}})

    def _turn(self, thread: str) -> None:
        self._report("working")
        if self._random.random() < 0.5:
            self._title("busy")
        self._log(thread, "task_started")
        if self._now < 3.0 or thread == NEW:
            self._hook(thread, "SessionStart", source="startup")
        self._hook(thread, "UserPromptSubmit", prompt="go")
        self._title("busy")
        self._hook(thread, "PreToolUse", tool_name="wait", tool_input={}, tool_use_id="u0")
        self._hook(thread, "PostToolUse", tool_name="wait", tool_input={}, tool_use_id="u0")

    def _end(self, thread: str) -> None:
        self._wait(0.0, 1.0)
        self._hook(thread, "Stop", last_assistant_message="Done")
        self._report("done")
        self._log(thread, "task_complete")
        self._title("idle")


class Witnesses:
    """What reports evidence to a board, and knows what that lists."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._unread: list[Line] = []  # lines of logs of threads that nobody knows yet

    def told(self, line: Line) -> Iterator[Line]:
        """Yield a line as it is reported."""
        known = {sid: published_status(s) for sid, s in self._board.sessions.items()}
        if "lock" in line:
            if NEW not in known and known.get(HIDDEN, "working") in AT_REST:
                hook = {"session_id": NEW, "hook_event_name": "SessionStart", "source": "clear"}
                yield {"t": line["arrived"], "hook": hook, "origin": ORIGIN}
        elif "title" in line:
            for sid in (HIDDEN, NEW):
                if known.get(sid):
                    yield {**line, "title": {**line["title"], "session_id": sid}}
        elif "transcript" in line and line["transcript"]["session_id"] not in known:
            self._unread.append(line)
        else:
            yield line
            unread, self._unread = self._unread, []
            for each in unread:
                yield from self.told({**each, "arrived": max(each["arrived"], line["arrived"])})


@pytest.mark.parametrize("reports", [True, False], ids=["reports", "titles"])
@settings(phases=[Phase.generate])
@given(random=st.randoms(use_true_random=False), named=st.booleans())
def test_whatever_comes_late_a_hidden_thread_that_asks_is_listed_and_asks(
    reports: bool, random: Random, named: bool
) -> None:
    """Its question stays open, and the other one has completed its turn."""
    board, shown = Board(), list[str | None]()
    witnesses = Witnesses(board)
    for line in Scene(random, reports, named).lines():
        for each in witnesses.told(line):
            for folded in board.fold(from_line(each)):
                shown += [c.after for c in folded.changes if c.session_id == HIDDEN]
    assert "blocked" == published_status(board.sessions[HIDDEN])
    assert published_status(board.sessions[NEW]) in ("completed", "idle")
    assert 1 == shown.count("blocked"), "it asks once, without a break"
