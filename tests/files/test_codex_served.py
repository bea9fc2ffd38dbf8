"""The states of threads at Codex's shared server count at once, and cost the server nothing."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellboard.agents.codex import server
from bellboard.agents.codex.agent import Codex
from bellboard.agents.trace_line import from_line
from bellboard.system.threads import RUNNING, Thread
from files.test_codex_server import ITEM, PAYLOAD, Fake, fake
from files.test_lookout import MinimalHost, run
from rig.home import Home
from rig.waiting import leniency

FIRST, SECOND = "01a1ffc4-27ac", "01a1ffc4-4b5e"
ASKED = {**PAYLOAD, "hook_event_name": "PreToolUse", "tool_use_id": ITEM}
CHOICE = {"tool_name": "request_user_input", "tool_input": {"questions": [{"question": "a?"}]}}
THREADS = "bellboard codex"


def state(thread: str, kind: str, *flags: str, **more: Any) -> dict[str, Any]:
    status = {"type": kind, "activeFlags": [*flags]}
    params = {"threadId": thread, "status": status}
    return {"method": "thread/status/changed", "params": params, **more}


async def hook(desk: MinimalHost, codex: Fake, event: str, sid: str = FIRST, **more: Any) -> None:
    payload = {**more, "session_id": sid, "hook_event_name": event}
    origin = {"agent": "codex", "pid": codex.process.pid, "shared": True}
    await desk.fold(hook=payload, origin=origin)


def heard(desk: MinimalHost) -> list[str]:
    lines = [f.line["server"] for _, f in desk.found if "server" in f.line]
    return [f"{x['session_id']} {x['says']}" for x in lines]


def listeners() -> int:
    return sum(t.name == THREADS for t in tuple(RUNNING))


def test_a_granted_permission_shows_at_once(home: Home) -> None:
    """No hook says so, and the terminal of the session is not known."""

    async def test(desk: MinimalHost) -> None:
        with fake(home, loaded=[FIRST, SECOND], status={"type": "active"}) as codex:
            for sid in (FIRST, SECOND):
                await hook(desk, codex, "UserPromptSubmit", sid)
            await desk.until(lambda: heard(desk), "it is heard")
            await hook(desk, codex, "PreToolUse", **ASKED)
            await hook(desk, codex, "PermissionRequest", **PAYLOAD)
            codex.says(state(FIRST, "active", "waitingOnApproval"))
            await desk.until(lambda: desk.statuses()[FIRST] == "blocked")
            codex.says(state(SECOND, "active"))
            codex.says(state("a helper", "active", "waitingOnApproval"))
            began = time.monotonic()
            codex.says(state(FIRST, "active"))
            await desk.until(lambda: desk.statuses()[FIRST] == "working")
            assert time.monotonic() - began < 2.0 * leniency(1.0)
            assert desk.statuses() == {FIRST: "working", SECOND: "working"}
            codex.says(state(SECOND, "active", "waitingOnUserInput"))
            await desk.until(lambda: desk.statuses()[SECOND] == "blocked")
            codex.says(state(SECOND, "idle"))
            await desk.until(lambda: desk.statuses()[SECOND] == "idle", "after Esc")
            assert listeners() == 1

    run(home, test)


def test_what_is_late_does_not_start_a_turn_that_has_ended(home: Home) -> None:
    """A state has the time of its message."""

    async def test(desk: MinimalHost) -> None:
        with fake(home, loaded=[FIRST], status={"type": "active"}) as codex:
            await hook(desk, codex, "UserPromptSubmit")
            await desk.until(lambda: heard(desk))
            began = time.time() * 1000
            await hook(desk, codex, "Stop")
            codex.says(state(FIRST, "idle"))
            await desk.until(lambda: desk.statuses() == {FIRST: "completed"})
            codex.says(state(FIRST, "active", emittedAtMs=began))
            await desk.until(lambda: heard(desk)[-1] == f"{FIRST} busy")
            assert desk.statuses() == {FIRST: "completed"}
            ahead = (time.time() + 1000) * 1000
            codex.says(state(FIRST, "active", emittedAtMs=ahead))
            await desk.until(lambda: desk.statuses() == {FIRST: "working"}, "its clock is wrong")

    run(home, test)


async def reviewed(desk: MinimalHost, by: str) -> None:
    """Let the log say who decides on the permissions of the turn that has just begun."""
    context = {"type": "turn_context", "payload": {"approvals_reviewer": by}}
    at = datetime.fromtimestamp(desk.board.sessions[FIRST].began, timezone.utc).isoformat()
    entry = {"session_id": FIRST, "agent": "codex", "entry": {"timestamp": at, **context}}
    await desk.fold(transcript=entry)


def test_a_program_that_decides_asks_nobody(home: Home) -> None:
    """With auto review, the server waits for that."""

    async def test(desk: MinimalHost) -> None:
        with fake(home, loaded=[FIRST], status={"type": "active"}) as codex:
            await hook(desk, codex, "UserPromptSubmit")
            await reviewed(desk, "auto_review")
            await desk.until(lambda: heard(desk))
            codex.says(state(FIRST, "active", "waitingOnApproval"))
            codex.says(state(FIRST, "idle"))
            await desk.until(lambda: f"{FIRST} idle" in heard(desk))
            assert f"{FIRST} waiting" not in heard(desk)

    run(home, test)


def test_a_question_of_the_agent_is_yours_although_a_program_decides(home: Home) -> None:
    """Auto review decides on permissions only."""

    async def test(desk: MinimalHost) -> None:
        with fake(home, loaded=[FIRST], status={"type": "active"}) as codex:
            await hook(desk, codex, "UserPromptSubmit")
            await reviewed(desk, "auto_review")
            await desk.until(lambda: heard(desk))
            await hook(desk, codex, "PreToolUse", **{**ASKED, **CHOICE})
            codex.says(state(FIRST, "active", "waitingOnUserInput"))
            await desk.until(lambda: desk.statuses() == {FIRST: "blocked"})

    run(home, test)


@pytest.mark.parametrize("since", ["nothing", "granted", "hung up"])
def test_what_seemed_to_be_left_to_a_program_is_yours_once_that_is_read(
    home: Home, since: str
) -> None:
    """The server says only once that it waits, and may have said so before.

    Once the connection has ended, nothing is known of it.
    """

    async def test(desk: MinimalHost) -> None:
        with fake(home, loaded=[FIRST], status={"type": "active"}) as codex:
            await hook(desk, codex, "UserPromptSubmit")
            await hook(desk, codex, "UserPromptSubmit", SECOND)
            await reviewed(desk, "auto_review")
            await desk.until(lambda: heard(desk))
            await hook(desk, codex, "PreToolUse", **ASKED)
            await hook(desk, codex, "PermissionRequest", **PAYLOAD)
            codex.says(state(FIRST, "active", "waitingOnApproval"))
            if since == "granted":
                codex.says(state(FIRST, "active"))
            codex.says(state(SECOND, "idle"))
            await desk.until(lambda: f"{SECOND} idle" in heard(desk))
            assert f"{FIRST} waiting" not in heard(desk)
            if since == "hung up":
                codex.says("hang up")
                await desk.until(lambda: "closed the connection" in str(desk.notes()))
            await reviewed(desk, "user")
            assert (since == "nothing") == (f"{FIRST} waiting" in heard(desk))
            if since == "nothing":
                await desk.until(lambda: desk.statuses()[FIRST] == "blocked")

    run(home, test)


def test_the_states_of_all_threads_are_read_when_a_host_starts(home: Home) -> None:
    """A permission that was granted without a host does not stay blocked."""

    async def test(desk: MinimalHost) -> None:
        with fake(home, loaded=[FIRST, SECOND], status={"type": "active"}) as codex:
            origin = {"agent": "codex", "pid": codex.process.pid, "shared": True}
            for sid in (FIRST, SECOND):
                asked = {**PAYLOAD, "session_id": sid}
                desk.board.fold(from_line({"t": time.time() - 5, "hook": asked, "origin": origin}))
            await desk.settle()
            await desk.until(lambda: {*desk.statuses().values()} == {"working"})
            assert {*heard(desk)} == {f"{FIRST} busy", f"{SECOND} busy"}

    run(home, test)


def test_a_server_that_cannot_be_heard_yet_is_tried_again(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system may refuse one more thread."""

    start = Thread.start

    def refused(thread: Thread) -> None:
        if thread.name == THREADS:
            raise RuntimeError("can't start new thread")
        start(thread)

    async def test(desk: MinimalHost) -> None:
        with fake(home, loaded=[FIRST], status={"type": "active"}) as codex:
            with monkeypatch.context() as full:
                full.setattr(server.Thread, "start", refused)
                await hook(desk, codex, "UserPromptSubmit")
                await desk.until(lambda: "can't start new thread" in str(desk.notes()))
            await desk.rescan()
            await desk.until(lambda: heard(desk))

    run(home, test)


def test_a_server_is_heard_again_and_let_go(home: Home) -> None:
    """After it closed the connection, at the next rescan; not for a session that has ended."""

    async def test(desk: MinimalHost) -> None:
        with fake(home, loaded=[FIRST], status={"type": "active"}) as codex:
            await hook(desk, codex, "UserPromptSubmit")
            await desk.until(lambda: heard(desk))
            await hook(desk, codex, "UserPromptSubmit", SECOND)  # it has been unloaded
            codex.says("hang up")
            await desk.until(lambda: "closed the connection" in str(desk.notes()), "its note")
            count = len(heard(desk))
            await desk.rescan()
            await desk.until(lambda: len(heard(desk)) > count, "again")
            assert "closed the connection" not in str(desk.notes())
            for sid in (FIRST, SECOND):
                await hook(desk, codex, "SessionEnd", sid)
            await desk.until(lambda: listeners() == 0, "let go")

    run(home, test)


@pytest.mark.parametrize("odd", [[], "{", "x" * 9000, {"method": "thread/status/changed"}])
def test_odd_messages_end_a_conversation_at_most(home: Home, odd: Any) -> None:
    """The board stays as it is."""

    async def test(desk: MinimalHost) -> None:
        with fake(home, loaded=[FIRST], status={"type": "active"}) as codex:
            await hook(desk, codex, "UserPromptSubmit")
            await desk.until(lambda: heard(desk))
            codex.says(odd)
            codex.says(state(FIRST, "active", "waitingOnApproval"))
            await desk.until(lambda: desk.notes() or desk.statuses() == {FIRST: "blocked"})
            assert desk.statuses()[FIRST] in ("working", "blocked")

    run(home, test)


def test_codex_without_a_shared_server_is_not_reported(home: Home) -> None:
    """Such as one that an editor has started: it has no socket."""

    async def test(desk: MinimalHost) -> None:
        with fake(home) as codex:
            codex.path.unlink()
            await hook(desk, codex, "UserPromptSubmit")
            await desk.until(lambda: listeners() == 0)
            assert desk.notes() == {}

    run(home, test)


def test_a_mute_server_is_left(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server takes the connection, and never answers."""
    monkeypatch.setattr(server, "JOINING", 0.3)

    async def test(desk: MinimalHost) -> None:
        with fake(home, mute=True) as codex:
            await hook(desk, codex, "UserPromptSubmit")
            await desk.until(lambda: "does not respond in time" in str(desk.notes()))

    run(home, test)


values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers() | st.sampled_from(["active", "idle", "waitingOnApproval", "", "s"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["method", "params", "threadId", "status", "type", "activeFlags"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@pytest.mark.core
@given(status=values, params=values)
def test_nothing_that_a_server_says_raises(status: Any, params: Any) -> None:
    """A message may have any shape; one that is understood names a thread and a state."""
    method = "thread/status/changed"
    for given_ in (params, {"threadId": "t", "status": status}):
        said = Codex().heard({"method": method, "params": given_})
        assert said is None or (said.session_id and said.seen.says in ("idle", "busy", "waiting"))
