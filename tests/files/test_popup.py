"""The popup in which requests are answered, without a terminal: what its keys send."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from threading import Thread
from typing import Any

import pytest

from bellboard.agents.agent import Press
from bellboard.cli.popup import EVERY, Flow
from bellboard.cli.runner import Runner
from bellboard.core.published import publish
from bellboard.core.session import Session
from bellboard.hosting import keyboard
from bellboard.hosting.turn import SharedBoard
from bellboard.screen.prompt import SOON
from bellboard.storage.answers import TAKEN
from bellboard.system.processes import started_of
from files.test_answering import SCREEN
from rig.home import Home
from rig.host.hosting import made, opened, put
from rig.host.session_files import write_session_file
from rig.waiting import PATIENCE, rest

ASKS = {"tool_name": "Bash", "tool_input": {"command": "make"}}
SUBAGENT = {"agent_id": "a1", "agent_type": "Explore"}
YES = "A  Yes, this once"


class Popup:
    """A popup, and the processes of the sessions that it is about."""

    def __init__(self, home: Home, processes: Callable[..., int]) -> None:
        self.home, self.spool, self._processes = home, made(home.bellboard), processes
        self._pids: dict[str, int] = {}
        self._left = contextlib.ExitStack()
        self.now = 0.0  # once it is open; it goes on when a test says so

    @cached_property
    def shared(self) -> SharedBoard:
        """The board; it is opened with what has happened until then."""
        self.now = time.time()
        return self._left.enter_context(opened(self.home.bellboard))

    @cached_property
    def flow(self) -> Flow:
        return self.open()

    def open(self, session: str = "", replies: bool = False) -> Flow:
        return Flow(self.shared, Runner(self.shared, "a popup"), session, replies)

    def session(self, sid: str) -> Session:
        return self.shared.board.sessions[sid]

    def shown(self, flow: Flow | None = None) -> str:
        """Return what it shows now."""
        lines = (flow or self.flow).lines(self.now, 100, 40)
        return "\n".join(line.plain.strip() for line in lines)

    def press(self, *keys: str, after: float = 2 * SOON) -> None:
        """Press keys, some seconds after what was before."""
        assert self.flow
        self.now += after
        for key in keys:
            self.flow.press(key, self.now)

    def pid(self, process: str) -> int:
        self._pids[process] = self._pids.get(process) or self._processes()
        return self._pids[process]

    def hook(self, event: str, sid: str = "one", process: str = "", **more: Any) -> str:
        """Write what a hook reports of a session; return the name of the file."""
        return put(self.spool, event, sid, pid=self.pid(process or sid), cwd="/srv", **more)

    def draws(self, sid: str = "one", process: str = "") -> None:
        """Report that the terminal shows its dialog, and that the process lives."""
        drawn = {
            "notification_type": "permission_prompt",
            "message": "Claude needs your permission",
        }
        self.hook("Notification", sid, process, **drawn)
        pid = self.pid(process or sid)
        known = {"pid": pid, "alive": True, "started": started_of(pid)}
        self.spool.write({"t": time.time(), "process": known})

    def asks(self, sid: str = "one", pipe: str = "") -> str:
        """Have a session ask for a permission; return the name of the event."""
        self.hook("UserPromptSubmit", sid, prompt="go")
        name = self.hook("PermissionRequest", sid, pipe=pipe, **ASKS)
        self.draws(sid)
        return name

    def goes_on(self, status: str = "busy", sid: str = "one") -> None:
        """Write the session file, as the CLI does before any hook."""
        rest(0.05)  # it has milliseconds only
        write_session_file(self.home, status, pid=self.pid(sid))

    def close(self) -> None:
        self._left.close()


@pytest.fixture
def popup(
    home: Home, processes: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Popup]:
    for name, value in home.env.items():
        monkeypatch.setenv(name, value)
    made = Popup(home, processes)
    yield made
    made.close()


def test_a_request_is_answered_in_the_session_that_has_it_now(popup: Popup) -> None:
    """A background subagent asked, and its session goes on under another id."""
    popup.hook("SessionStart", "old", source="startup")
    popup.hook("UserPromptSubmit", "old", prompt="go")
    popup.hook("SubagentStart", "old", **SUBAGENT)
    popup.hook("PermissionRequest", "old", **SUBAGENT, **ASKS)
    popup.draws("old")
    assert YES in popup.shown()
    popup.hook("SessionEnd", "old", reason="clear")
    popup.hook("SessionStart", "new", "old", source="clear")
    popup.draws("new", "old")
    popup.now = time.time() + 2 * SOON
    assert "answered elsewhere" not in popup.shown()
    popup.press("A", after=0)
    assert "srv: “Yes, this once”: its terminal is neither in tmux nor in a Neovim" in popup.shown()


def test_what_it_has_answered_is_not_shown_again(popup: Popup) -> None:
    """The agent has gone on, and no hook has reported it yet: the outcome is what is shown last."""
    pipe = popup.spool.home / "answers" / "1.1"
    os.mkfifo(pipe, 0o600)
    file = os.fdopen(os.open(pipe, os.O_RDWR), encoding="utf-8")
    name = popup.asks(pipe=pipe.name)
    pipe.with_name(f"1.1{TAKEN}").write_text(f"{name}\n")

    def agent() -> None:
        with file:
            file.readline()
        popup.goes_on()

    agents = Thread(target=agent, daemon=True)
    agents.start()
    assert YES in popup.shown()
    popup.press("A")
    agents.join(PATIENCE)
    popup.now = time.time() + 3 * SOON
    first, last = popup.shown().split("\n")[:2]
    assert "“Yes, this once”: it went on after" in first
    assert "No more requests." in last
    assert popup.session("one").blocks


def test_a_key_right_after_a_skip_is_ignored(popup: Popup) -> None:
    """The key was meant for the request before; the next one is shown."""
    for sid in ("one", "two"):
        popup.asks(sid)
    assert popup.shown().startswith("2 left · srv: Run a command  ")
    popup.press("tab", "A")
    assert not popup.flow.over
    assert popup.shown().startswith("srv: Run a command  ")


def test_a_snooze_shows_the_next_one(popup: Popup) -> None:
    """The same key in the editor does so, too."""
    popup.asks()
    assert "Run a command" in popup.shown()
    popup.press("s")
    first, last = popup.shown().split("\n")[:2]
    assert "srv: snoozed until " in first
    assert "No more requests." in last
    assert popup.session("one").snoozed_until > popup.now


def test_what_is_answered_in_the_terminal_ends_a_message_that_is_being_written(
    popup: Popup,
) -> None:
    """No host need run, and no hook comes soon: the allowed tool may run for long."""
    popup.asks()
    assert "R  No, and say why" in popup.shown()
    popup.press(*"Rno")
    popup.now += 2 * EVERY
    assert "> no█" in popup.shown().split("\n")
    popup.goes_on()
    popup.now += 2 * EVERY
    assert popup.shown().split("\n")[:2] == [
        "srv: you answered in the terminal first; not sent: “no”",
        "No more requests.",
    ]
    popup.press("t", after=0)  # of that message
    assert not popup.flow.over


class Dialog:
    """A terminal that shows a question, until it gets a key."""

    def __init__(self, command: str, then: Callable[[], object]) -> None:
        self.command, self._then = command, then

    def rows(self) -> list[str]:
        return SCREEN.replace("make all", self.command).splitlines()

    def type(self, press: Press) -> bool:
        self._then()
        return True


def test_a_key_that_was_pressed_before_a_request_is_shown_does_not_answer_it(
    popup: Popup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A terminal that shows no dialog yet is looked at for a while."""
    popup.asks()

    class Late(Dialog):
        def rows(self) -> list[str]:
            rest(2 * SOON)
            return super().rows()

    late = Late("make", lambda: None)
    monkeypatch.setattr(keyboard, "terminal_of_run", lambda run: late)
    assert YES in popup.shown()
    popup.now = time.time()
    popup.press("A", after=0)
    assert "“Yes, this once”: " not in popup.shown()


@pytest.mark.parametrize("how", ["taken", "silent", "busy", "elsewhere"])
def test_the_one_that_waits_behind_what_its_terminal_shows_is_asked_next(
    popup: Popup, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """The board names the first of two, and the CLI may show the second one first.

    Whether no hook reports that it took the answer, it is busy before it shows the next dialog, or
    the user answers there.
    """
    popup.hook("UserPromptSubmit", prompt="go")
    asks = {}
    for agent, command in (("a1", "make all"), ("a2", "make docs")):
        tool = {"command": command, "description": "Build it"}
        about = {"agent_id": agent, "agent_type": "Explore"}
        asks[agent] = {**about, "tool_name": "Bash", "tool_input": tool}
        popup.hook("SubagentStart", **about)
        popup.hook("PermissionRequest", **asks[agent])
    popup.draws()

    def answered() -> None:
        if how == "busy":
            popup.goes_on()
        elif how != "silent":
            popup.hook("PostToolUse", **asks["a2"], tool_response={})
        dialog.command = "make all"

    dialog = Dialog("make docs", answered)
    monkeypatch.setattr(keyboard, "terminal_of_run", lambda run: dialog)
    assert "make docs" in popup.shown()
    popup.now = time.time() + 2 * SOON
    if how == "elsewhere":
        answered()
        assert ": answered elsewhere" in popup.shown()
    else:
        popup.press("A", after=0)
    assert popup.flow.answered == (how in ("taken", "busy"))
    if how == "busy":
        assert "Waiting for the next request" in popup.shown()
        popup.goes_on("waiting")
    assert "make all" in popup.shown()
    assert "in the terminal first" not in popup.shown()


@pytest.fixture
def replies(popup: Popup) -> Popup:
    """A popup told to show replies, of two that are done; one session asks."""
    for name in ("done", "fine"):
        popup.hook("UserPromptSubmit", name, prompt=f"make it {name}")
        popup.hook("Stop", name, last_assistant_message=f"It is {name}\x1b[2J now.")
    popup.asks()
    popup.flow = popup.open(replies=True)
    assert YES in popup.shown()
    popup.press("d", "tab", after=10 * SOON)  # d is a key of a reply only
    assert "srv: completed" in popup.shown()
    return popup


def test_replies_come_after_what_is_asked_and_are_seen_or_skipped_with_a_key(
    replies: Popup,
) -> None:
    first = replies.shown()
    assert "r write · go terminal · d seen · s snooze · Tab next · q close" in first
    replies.press("d", after=10 * SOON)
    second = replies.shown()
    seen, left = ("done", "fine") if "It is done now." in first else ("fine", "done")
    assert (f"It is {seen} now." in first, f"It is {left} now." in second) == (True, True)
    assert "unseen" not in publish(replies.session(seen))["markers"]
    replies.hook("UserPromptSubmit", left, prompt="x")
    assert "srv: it has gone on" in replies.shown()
    assert "No more requests." in replies.shown()
    chosen = replies.shown(replies.open(seen))
    assert f"It is {seen} now." in chosen
    assert YES not in chosen


def test_a_prompt_that_was_refused_can_be_sent_again(replies: Popup) -> None:
    replies.press("r", *"go on", "take", after=10 * SOON)
    assert "srv: “Write to it”: " in replies.shown()
    assert "It is" in replies.shown()
    replies.press("r", after=0)
    assert "> go on" in replies.shown()
