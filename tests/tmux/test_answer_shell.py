"""Answering from a shell and from a popup, without a host; the agent is the demo's."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys

import pytest

from bellboard.cli.answer import lacking
from bellboard.screen.prompt import SOON
from rig import ROOT, warm
from rig import tmux as tmuxes
from rig.home import Home
from rig.shell import EMIT, bellboard, simulated
from rig.waiting import eventually

PYTHON = {"PYTHONPATH": str(ROOT / "rplugin/python3")}
COMMAND = "rm -rf build && make all"


class AskedInShell:
    """A simulated agent that asks, and the shell that answers it."""

    def __init__(self, home: Home, tmux: tmuxes.Server) -> None:
        self.home, self.tmux = home, tmux
        self.bellboard("list")  # makes the spool
        self.pane = simulated(tmux)
        self.sid = eventually(self._asks, "a question")

    def bellboard(self, *args: str, code: int = 0) -> str:
        return bellboard(self.home, *args, code=code)

    def popup(self, *args: str, command: tuple[str, ...] = ("answer", "--popup")) -> tmuxes.Pane:
        argv = [sys.executable, "-m", "bellboard", *command, *args]
        return self.tmux.open(argv, session="popup", env=PYTHON, columns=90)

    def _asks(self) -> str:
        found = json.loads(self.bellboard("list", "--json"))["sessions"]
        asks = (s["session_id"] for s in found if s["status"] == "blocked" and s.get("request"))
        return str(next(asks, ""))


def pressed(popup: tmuxes.Pane, key: str, before: str, after: str) -> None:
    """Press a key until it does something: one that follows another too soon is ignored."""

    def look() -> bool:
        shown = popup.text()
        if before in shown:
            popup.press(key)
        return after in shown

    eventually(look, after, pause=SOON * 2)


@pytest.fixture
def agent(home: Home, tmux: tmuxes.Server) -> AskedInShell:
    return AskedInShell(home, tmux)


def test_a_shell_prints_the_whole_request_and_answers_it(agent: AskedInShell) -> None:
    """With a digest, only that request is answered; the outcome is printed, and in the history."""
    sid = agent.sid
    request = json.loads(agent.bellboard("answer", sid, "--json"))["request"]
    assert [way["name"] for way in request["ways"]] == ["keys", "go"]
    read = f"--digest {request['digest']}"
    for words, code, said in (
        ("", 0, (COMMAND, "Build from scratch", "allow ", f"answer {sid} CHOICE {read}")),
        ("allow", 1, ("name the session",)),
        (f"{sid} allow --digest {'0' * 16}", 1, ("the request has changed since you read it",)),
        (f"{sid} allow --message x", 1, ("takes no message",)),
        (f"{sid} edit", 1, ("answered: give --command TEXT",)),
        (f"{sid} allow {read}", 0, ("project: it went on after ",)),
    ):
        printed = agent.bellboard("answer", *words.split(), code=code)
        assert [] == [text for text in said if text not in printed], printed
    agent.pane.shows("tests pass")
    over = lambda: agent.bellboard("answer", sid, "allow", code=1)  # noqa: E731
    eventually(lambda: "is not asking anything" in over(), "that it is over")  # hooks may be slow
    again = agent.bellboard("answer", sid, "deny", *read.split(), code=1)
    assert "already answered by a shell, process " in again
    history = agent.bellboard("explain", sid)
    for text in (
        "refused: the request has changed since you read it",
        "allow, by keys",
        "it went on after",
        "refused: already answered by a shell",
    ):
        assert text in history


#: Trees of processes around `bellboard answer`, which $SCRIPT runs; $EMIT reports the process.
AGENTS = {
    "an agent": """exec -a claude bash "$SCRIPT" """,
    "further up": """exec -a codex bash -c 'sh "$SCRIPT"; exit $?'""",
    "by what the board knows": """eval "$EMIT claude"; sh "$SCRIPT"; exit $?""",
}
#: A person works in an editor with chats.
PERSON = """eval "$EMIT codecompanion"; sh "$SCRIPT"; exit $?"""
RUN = "import subprocess, sys; sys.exit(subprocess.call(['bash', '-c', sys.argv[1]]))"


def tree(agent: AskedInShell, shape: str) -> subprocess.CompletedProcess[str]:
    """Run `bellboard answer SESSION allow` in a tree of real processes, below no test."""
    started = {"session_id": "above", "hook_event_name": "UserPromptSubmit", "cwd": "/w/up"}
    command = shlex.join([sys.executable, "-m", "bellboard", "answer", agent.sid, "allow"])
    emit = f"echo {shlex.quote(json.dumps(started))} | sh {EMIT} UserPromptSubmit $$"
    script = agent.home.file("script.sh", f"{command}\nexit $?\n")
    env = {**agent.home.env, **PYTHON, "SCRIPT": str(script), "EMIT": emit}
    return warm.run([agent.home.file("run.py", RUN), shape], env=env, cwd=agent.home.project)


@pytest.mark.parametrize("shape", AGENTS.values(), ids=AGENTS)
def test_an_agent_does_not_answer_for_the_user(agent: AskedInShell, shape: str) -> None:
    """What it has started is refused, with the reason, which is logged."""
    done = tree(agent, shape)
    assert done.returncode == 1
    why = r"only a person answers, and (claude|codex), process \d+, has started this command "
    why += r"\(what is typed after ! as well\); answer in Neovim or in a terminal of your own\n"
    assert re.search(rf"project was not answered: {why}", done.stderr), done.stderr
    assert "refused: only a person answers" in agent.bellboard("explain", agent.sid)
    assert COMMAND in agent.pane.text()


def test_an_agent_does_not_answer_through_a_feed(agent: AskedInShell) -> None:
    """It takes answers for who follows this machine; ssh starts that one, and no agent."""
    request = json.loads(agent.bellboard("answer", agent.sid, "--json"))["request"]
    ask = {"id": 1, "do": "answer", "session_id": agent.sid, "choice": "allow"}
    ask |= {"request": request["id"], "digest": request["digest"]}
    feed = shlex.join([sys.executable, "-m", "bellboard", "feed", "--quiet"])
    asks = f"(echo {shlex.quote(json.dumps(ask))}; sleep 9)"
    reads = 'while read -r line; do case $line in *reply*) echo "$line"; kill 0;; esac; done'
    done = tree(
        agent, f"exec -a claude bash -c {shlex.quote(f'set -m; {asks} | {feed} | {reads}')}"
    )
    assert "only a person answers, and claude, process " in json.loads(done.stdout)["why"]


def test_a_person_answers_in_an_editor_with_chats(agent: AskedInShell) -> None:
    """The process of a chat is that of the editor, in which the person has a terminal."""
    done = tree(agent, PERSON)
    assert done.returncode == 0, done.stderr
    assert "codecompanion" in agent.bellboard("record", "--session", "above")


def test_a_popup_shows_the_request_and_takes_a_key(agent: AskedInShell) -> None:
    """The popup asks for a choice's fields, notices other answers, and shows the next request."""
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
    agent.pane.shows("Enter: the same again")
    agent.pane.press("Enter")
    popup.shows("go terminal · s snooze")
    pressed(popup, "A", before="go terminal", after="“Yes, this once”: it went on after")
    agent.pane.shows("tests pass")
    popup.shows("No more requests.")
    eventually(lambda: popup.dead or popup.press("q"), "the end of the popup", pause=SOON * 2)


def test_a_key_of_the_picker_leads_to_the_request(agent: AskedInShell) -> None:
    picker = agent.popup(command=("pick",))
    picker.shows("M-a to answer")
    picker.press("M-a")
    assert COMMAND in picker.shows("go terminal · s snooze")


def test_going_there_leads_from_the_popup_to_the_pane(agent: AskedInShell) -> None:
    """The popup jumps as `bellboard goto` does; without a request, it says so."""
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
