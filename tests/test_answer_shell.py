"""Answering from a shell and from a popup, without a host; the agent is the demo's."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from bellboard.cli.answer import lacking
from bellboard.screen.prompt import SOON
from rig import tmux as tmuxes
from rig.home import Home
from rig.waiting import eventually
from shell import bellboard

pytestmark = pytest.mark.tmux

ROOT = Path(__file__).resolve().parents[1]
PYTHON = {"PYTHONPATH": str(ROOT / "rplugin/python3")}
COMMAND = "rm -rf build && make all"


class Agent:
    """A simulated agent in a pane, and the shell that answers it."""

    def __init__(self, home: Home, tmux: tmuxes.Server) -> None:
        self.home, self.tmux = home, tmux
        self.bellboard("list")  # makes the spool
        argv = [sys.executable, ROOT / "demo/agent.py", ROOT / "hooks/emit", "api"]
        self.pane = tmux.open(argv, session="agent", columns=90)

    def bellboard(self, *args: str, code: int = 0) -> str:
        return bellboard(self.home, *args, code=code)

    def asks(self) -> dict[str, Any]:
        """Wait until it asks; return its session."""

        def look() -> Any:
            found = json.loads(self.bellboard("list", "--json"))["sessions"]
            return next((s for s in found if s["status"] == "blocked" and s.get("request")), None)

        return dict(eventually(look, "a question"))

    def again(self) -> None:
        """Let it ask again."""
        self.pane.shows("Enter: the same again")
        self.pane.press("Enter")

    def popup(self, *args: str) -> tmuxes.Pane:
        argv = [sys.executable, "-m", "bellboard", "answer", "--popup", *args]
        return self.tmux.open(argv, session="popup", env=PYTHON, columns=90)


def pressed(popup: tmuxes.Pane, key: str, before: str, after: str) -> None:
    """Press a key until it does something: one that follows another too soon is ignored."""

    def look() -> bool:
        shown = popup.text()
        if before in shown:
            popup.press(key)
        return after in shown

    eventually(look, after, pause=SOON * 2)


@pytest.fixture
def agent(home: Home, tmux: tmuxes.Server) -> Agent:
    return Agent(home, tmux)


def test_a_shell_prints_the_whole_request_and_answers_it(agent: Agent) -> None:
    """With a digest, only that request is answered; the outcome is printed."""
    sid = agent.asks()["session_id"]
    printed = agent.bellboard("answer")
    assert COMMAND in printed
    assert "Build from scratch" in printed
    assert "allow " in printed
    request = json.loads(agent.bellboard("answer", sid, "--json"))["request"]
    assert [way["name"] for way in request["ways"]] == ["keys", "go"]
    assert f"bellboard answer {sid} CHOICE --digest {request['digest']}" in printed
    assert "name the session" in agent.bellboard("answer", "allow", code=1)
    other = agent.bellboard("answer", sid, "allow", "--digest", "0" * 16, code=1)
    assert "the request has changed since you read it" in other
    assert "takes no message" in agent.bellboard("answer", sid, "allow", "--message", "x", code=1)
    assert "answered: give --command TEXT" in agent.bellboard("answer", sid, "edit", code=1)
    said = agent.bellboard("answer", sid, "allow", "--digest", request["digest"])
    assert said.startswith("project: it went on after ")
    agent.pane.shows("tests pass")
    again = lambda: agent.bellboard("answer", sid, "allow", code=1)  # noqa: E731
    eventually(lambda: "is not asking anything" in again(), "that it is over")  # hooks may be slow
    again = agent.bellboard("answer", sid, "deny", "--digest", request["digest"], code=1)
    assert "already answered by a shell, process " in again
    history = agent.bellboard("explain", sid)
    for text in (
        "refused: the request has changed since you read it",
        "allow, by keys",
        "it went on after",
        "refused: already answered by a shell",
    ):
        assert text in history


def test_a_popup_shows_the_request_and_takes_a_key(agent: Agent) -> None:
    """The popup asks for a choice's fields, notices other answers, and shows the next request."""
    agent.asks()
    popup = agent.popup()
    assert COMMAND in popup.shows("go terminal · s snooze")
    pressed(popup, "R", before="go terminal", after="Message")
    popup.press("Escape")
    popup.shows("R  No, and say why")
    pressed(popup, "R", before="go terminal", after="Message")
    agent.tmux.run("set-buffer", "no 1\nor 2")
    agent.tmux.run("paste-buffer", "-p", "-t", popup.id)  # as a terminal pastes it
    popup.shows(" > no 1\n   or 2")
    agent.pane.press("1")  # in its terminal
    first = "(answered elsewhere|you answered in the terminal first)"  # by a hook, or its file
    popup.shows(f"project: {first}; not sent: “no 1 or 2”")
    agent.again()
    popup.shows("go terminal · s snooze")
    pressed(popup, "A", before="go terminal", after="“Yes, this once”: it went on after")
    agent.pane.shows("tests pass")
    popup.shows("No more requests.")
    eventually(lambda: popup.dead or popup.press("q"), "the end of the popup", pause=SOON * 2)


def test_going_there_leads_from_the_popup_to_the_pane(agent: Agent) -> None:
    """The popup jumps as `bellboard goto` does; without a request, it says so."""
    agent.asks()
    agent.tmux.attach("agent")
    popup = agent.popup()
    popup.shows("go terminal · s snooze")
    eventually(
        lambda: popup.dead or popup.press("g") or popup.press("o"),
        "the end of the popup",
        pause=SOON * 2,
    )
    agent.pane.press("1")
    agent.pane.shows("tests pass")
    agent.popup().shows("No session is asking anything.")


def test_an_answer_that_lacks_something_says_which_option_to_give() -> None:
    choices = [{"id": "choose", "needs": "answers"}, {"id": "deny", "needs": "message?"}]
    request = {"choices": choices, "questions": [{"text": "Which?"}, {"text": "When?"}]}
    said = lacking({"choice": "choose", "answers": {}}, request)
    assert said == "give --answer QUESTION=TEXT…, for: Which?; When?"
    assert lacking({"choice": "choose", "answers": {"Which?": "one"}}, request) == ""
    assert lacking({"choice": "deny", "message": ""}, request) == ""
    request = {"choices": [{"id": "keep", "needs": "message"}]}
    assert lacking({"choice": "keep", "message": ""}, request) == "give --message TEXT"
