"""The popup in which requests are answered, without a terminal: what its keys send."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from threading import Thread

import pytest

from bellboard.agents.agent import Press
from bellboard.cli.popup import EVERY, Flow
from bellboard.cli.runner import Runner
from bellboard.core.published import publish
from bellboard.hosting import keyboard
from bellboard.screen.prompt import SOON
from bellboard.storage.answers import TAKEN
from bellboard.storage.event_file import MAGIC
from bellboard.storage.spool import Spool
from bellboard.system.processes import started_of
from hosting import made, opened, put_raw
from rig.home import Home
from rig.waiting import PATIENCE, rest
from session_files import write_session_file
from test_answering import SCREEN

pytestmark = pytest.mark.files

ASKS = {"tool_name": "Bash", "tool_input": {"command": "make"}}
SUBAGENT = {"agent_id": "a1", "agent_type": "Explore"}
DRAWN = {"notification_type": "permission_prompt", "message": "Claude needs your permission"}


def hook(spool: Spool, pid: int, event: str, session: str, pipe: str = "", **fields: object) -> str:
    head = f"agent=claude\0event={event}\0pid={pid}\0pipe={pipe}\0\0"
    payload = {"session_id": session, "hook_event_name": event, "cwd": "/srv", **fields}
    return put_raw(spool, MAGIC + head.encode() + json.dumps(payload).encode())


def here(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run commands in this process as in a shell of that home."""
    for name, value in home.env.items():
        monkeypatch.setenv(name, value)


def lives(pid: int) -> dict[str, object]:
    return {"process": {"pid": pid, "alive": True, "started": started_of(pid)}}


def permission(spool: Spool, pid: int, session: str = "one", pipe: str = "") -> str:
    """Have a session ask for one, in a dialog; return the name of the event."""
    hook(spool, pid, "UserPromptSubmit", session, prompt="go")
    name = hook(spool, pid, "PermissionRequest", session, pipe, **ASKS)
    hook(spool, pid, "Notification", session, **DRAWN)
    spool.write({"t": time.time(), **lives(pid)})
    return name


def test_a_request_is_answered_in_the_session_that_has_it_now(
    home: Home, processes: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A background subagent asked, and its session goes on under another id."""
    here(home, monkeypatch)
    spool, pid = made(home.bellboard), processes()
    hook(spool, pid, "SessionStart", "old", source="startup")
    hook(spool, pid, "UserPromptSubmit", "old", prompt="go")
    hook(spool, pid, "SubagentStart", "old", **SUBAGENT)
    hook(spool, pid, "PermissionRequest", "old", **SUBAGENT, **ASKS)
    hook(spool, pid, "Notification", "old", **DRAWN)
    spool.write({"t": time.time(), **lives(pid)})
    with opened(home.bellboard) as shared:
        flow, now = Flow(shared, Runner(shared, "a popup"), ""), time.time()

        def shown() -> str:
            return "\n".join(line.plain for line in flow.lines(now, 100, 40))

        assert "A  Yes, this once" in shown()
        hook(spool, pid, "SessionEnd", "old", reason="clear")
        hook(spool, pid, "SessionStart", "new", source="clear")
        hook(spool, pid, "Notification", "new", **DRAWN)
        spool.write({"t": time.time(), **lives(pid)})
        now = time.time() + 2 * SOON
        assert "answered elsewhere" not in shown()
        flow.press("A", now)
        assert "srv: “Yes, this once”: its terminal is neither in tmux nor in a Neovim" in shown()


def test_what_it_has_answered_is_not_shown_again(
    home: Home, processes: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent has gone on, and no hook has reported it yet: the outcome is what is shown last."""
    here(home, monkeypatch)
    spool, pid = made(home.bellboard), processes()
    pipe = spool.home / "answers" / "1.1"
    os.mkfifo(pipe, 0o600)
    file = os.fdopen(os.open(pipe, os.O_RDWR), encoding="utf-8")
    name = permission(spool, pid, pipe=pipe.name)
    (spool.home / "answers" / f"1.1{TAKEN}").write_text(f"{name}\n")

    def agent() -> None:
        with file:
            file.readline()
        rest(0.05)  # its file has milliseconds only
        write_session_file(home, "busy", pid=pid)

    agents = Thread(target=agent, daemon=True)
    agents.start()
    with opened(home.bellboard) as shared:
        flow, now = Flow(shared, Runner(shared, "a popup"), ""), time.time()
        assert "A  Yes, this once" in "\n".join(line.plain for line in flow.lines(now, 100, 40))
        flow.press("A", time.time() + 2 * SOON)
        agents.join(PATIENCE)
        shown = [line.plain for line in flow.lines(time.time() + 3 * SOON, 100, 40)]
        assert shared.board.sessions["one"].blocks
    assert "“Yes, this once”: it went on after" in shown[0]
    assert "No more requests." in shown[1]


def test_a_key_right_after_a_skip_is_ignored(
    home: Home, processes: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key was meant for the request before; the next one is shown."""
    here(home, monkeypatch)
    spool = made(home.bellboard)
    for session in ("one", "two"):
        pid = processes()
        permission(spool, pid, session)
    with opened(home.bellboard) as shared:
        flow, now = Flow(shared, Runner(shared, "a popup"), ""), time.time()
        assert flow.lines(now, 100, 40)[0].plain.startswith("2 left · srv: Run a command  ")
        now += 2 * SOON
        flow.press("tab", now)
        flow.press("A", now)
        assert not flow.over
        assert flow.lines(now, 100, 40)[0].plain.startswith("srv: Run a command  ")


def test_a_snooze_shows_the_next_one(
    home: Home, processes: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same key in the editor does so, too."""
    here(home, monkeypatch)
    spool = made(home.bellboard)
    permission(spool, processes(), "one")
    with opened(home.bellboard) as shared:
        flow, now = Flow(shared, Runner(shared, "a popup"), ""), time.time()
        assert "Run a command" in flow.lines(now, 100, 40)[0].plain
        now += 2 * SOON
        flow.press("s", now)
        shown = [line.plain for line in flow.lines(now, 100, 40)]
        assert shared.board.sessions["one"].snoozed_until > now
    assert "srv: snoozed until " in shown[0]
    assert "No more requests." in shown[1]


def test_what_is_answered_in_the_terminal_ends_a_message_that_is_being_written(
    home: Home, processes: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No host need run, and no hook comes soon: the allowed tool may run for long."""
    here(home, monkeypatch)
    spool, pid = made(home.bellboard), processes()
    permission(spool, pid)
    with opened(home.bellboard) as shared:
        flow, now = Flow(shared, Runner(shared, "a popup"), ""), time.time()
        shown = [line.plain for line in flow.lines(now, 100, 40)]
        assert any("  R  No, and say why" in row for row in shown)
        now += 2 * SOON
        for each in "Rno":
            flow.press(each, now)
        now += 2 * EVERY
        assert " > no█" in [line.plain for line in flow.lines(now, 100, 40)]
        rest(0.05)  # its file has milliseconds only
        write_session_file(home, "busy", pid=pid)
        now += 2 * EVERY
        shown = [line.plain for line in flow.lines(now, 100, 40)]
        assert shown[0] == " srv: you answered in the terminal first; not sent: “no”"
        assert shown[1] == " No more requests."
        flow.press("t", now)  # of that message
        assert not flow.over


def test_a_key_that_was_pressed_before_a_request_is_shown_does_not_answer_it(
    home: Home, processes: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A terminal that shows no dialog yet is looked at for a while."""
    here(home, monkeypatch)
    spool, pid = made(home.bellboard), processes()
    permission(spool, pid)

    class Terminal:
        def rows(self) -> list[str]:
            rest(2 * SOON)
            return SCREEN.replace("make all", "make").splitlines()

    monkeypatch.setattr(keyboard, "terminal_of_run", lambda run: Terminal())
    with opened(home.bellboard) as shared:
        flow = Flow(shared, Runner(shared, "a popup"), "")
        assert "A  Yes" in "\n".join(line.plain for line in flow.lines(time.time(), 100, 40))
        flow.press("A", time.time())
        assert "“Yes, this once”: " not in "\n".join(
            line.plain for line in flow.lines(time.time(), 100, 40)
        )


@pytest.mark.parametrize("how", ["taken", "silent", "busy", "elsewhere"])
def test_the_one_that_waits_behind_what_its_terminal_shows_is_asked_next(
    home: Home, processes: Callable[..., int], monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """The board names the first of two, and the CLI may show the second one first.

    Whether no hook reports that it took the answer, it is busy before it shows the next dialog, or
    the user answers there.
    """
    here(home, monkeypatch)
    spool, pid = made(home.bellboard), processes()
    hook(spool, pid, "UserPromptSubmit", "one", prompt="go")
    asks = {}
    for agent, command in (("a1", "make all"), ("a2", "make docs")):
        tool = {"command": command, "description": "Build it"}
        asks[agent] = {"agent_id": agent, "agent_type": "Explore", "tool_name": "Bash"}
        asks[agent]["tool_input"] = tool
        hook(spool, pid, "SubagentStart", "one", agent_id=agent, agent_type="Explore")
        hook(spool, pid, "PermissionRequest", "one", **asks[agent])
    hook(spool, pid, "Notification", "one", **DRAWN)
    spool.write({"t": time.time(), **lives(pid)})

    class Terminal:
        screen = SCREEN.replace("make all", "make docs")

        def rows(self) -> list[str]:
            return self.screen.splitlines()

        def type(self, press: Press) -> bool:
            if "make docs" in self.screen:
                self.go_on()
            return True

        def go_on(self) -> None:
            if how == "busy":
                rest(0.05)  # its file has milliseconds only
                write_session_file(home, "busy", pid=pid)
            elif how != "silent":
                hook(spool, pid, "PostToolUse", "one", **asks["a2"], tool_response={})
            self.screen = SCREEN

    terminal = Terminal()
    monkeypatch.setattr(keyboard, "terminal_of_run", lambda run: terminal)
    with opened(home.bellboard) as shared:
        flow, now = Flow(shared, Runner(shared, "a popup"), ""), time.time()

        def shown() -> str:
            return "\n".join(line.plain for line in flow.lines(now, 100, 40))

        assert "make docs" in shown()
        now = time.time() + 2 * SOON
        if how == "elsewhere":
            terminal.go_on()
            assert ": answered elsewhere" in shown()
        else:
            flow.press("A", now)
        assert flow.answered == (how in ("taken", "busy"))
        if how == "busy":
            assert "Waiting for the next request" in shown()
            write_session_file(home, "waiting", pid=pid)
        assert "make all" in shown()
        assert "in the terminal first" not in shown()


def test_replies_come_after_what_is_asked(
    home: Home, processes: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If told to, or of the chosen session; each is seen, skipped or left with a key."""
    here(home, monkeypatch)
    spool, pids = made(home.bellboard), {name: processes() for name in ("done", "fine")}
    for name, pid in pids.items():
        hook(spool, pid, "UserPromptSubmit", name, prompt=f"make it {name}")
        hook(spool, pid, "Stop", name, last_assistant_message=f"It is {name}\x1b[2J now.")
    permission(spool, processes())
    with opened(home.bellboard) as shared:
        flow, now = Flow(shared, Runner(shared, "a popup"), "", True), time.time()

        def shown() -> str:
            return "\n".join(line.plain for line in flow.lines(now, 100, 40))

        assert "A  Yes, this once" in shown()
        now += 10 * SOON
        flow.press("d", now)  # of a reply
        flow.press("tab", now)
        first = shown()
        assert "srv: completed" in first
        assert "r write · go terminal · d seen · s snooze · Tab next · q close" in first
        now += 10 * SOON
        for key in ("r", *"go on", "take"):
            flow.press(key, now)
        assert "srv: “Write to it”: " in shown()
        assert "It is" in shown(), "what was refused can be sent again"
        flow.press("r", now)
        assert " > go on" in shown()
        flow.press("leave", now)
        flow.press("d", now)
        second = shown()
        assert {"It is done now." in first, "It is done now." in second} == {True, False}
        assert "It is fine now." in first + second
        name = "done" if "done now" in second else "fine"
        hook(spool, pids[name], "UserPromptSubmit", name, prompt="x")
        assert "srv: it has gone on" in shown()
        assert "No more requests." in shown()
        seen = "done" if "done now" in first else "fine"
        assert "unseen" not in publish(shared.board.sessions[seen])["markers"]
        chosen = Flow(shared, Runner(shared, "a popup"), seen)
        assert f"It is {seen} now." in "\n".join(x.plain for x in chosen.lines(now, 100, 40))
        assert "A  Yes, this once" not in "\n".join(x.plain for x in chosen.lines(now, 100, 40))
