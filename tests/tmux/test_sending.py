"""A prompt goes into the empty input of the session that is meant, and nowhere else."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from bellboard.hosting.keyboard import PaneTerminal
from bellboard.storage.spool import Spool
from rig import ROOT, warm
from rig.home import Home
from rig.tmux import Pane, Server

pytestmark = pytest.mark.timeout(120)
REST = r"\? for shortcuts"
TEXT = "tidy that, too:\r\n  'a' \"b\" $(x) `y` \\ é 漢"


class Session:
    """A simulated agent at rest, in a pane of tmux, and what `bellboard` says of it."""

    def __init__(
        self, home: Home, tmux: Server, scene: str = "dotfiles", shows: str = REST
    ) -> None:
        self.home, self.tmux = home, tmux
        Spool(home.bellboard).prepare()
        agent = (sys.executable, ROOT / "demo/agent.py", ROOT / "hooks/emit", scene)
        env = {"CLAUDE_CONFIG_DIR": home.env["CLAUDE_CONFIG_DIR"]}
        self.pane: Pane = tmux.open(agent, env=env)
        self.pane.shows(shows)
        (row,) = self.listed()
        self.id = str(row["session_id"])

    def run(self, *args: str) -> dict[str, Any]:
        done = warm.run(["-m", "bellboard", *args, "--json"], env=self.home.env, cwd=self.home.root)
        return dict(json.loads(done.stdout)) if done.stdout else {"ok": False, "why": done.stderr}

    def listed(self) -> list[dict[str, Any]]:
        return list(self.run("list")["sessions"])

    def send(self, text: str, *more: str) -> dict[str, Any]:
        return self.run("send", self.id, text, *more)

    def refuses(self, why: str, text: str = "more") -> None:
        """Check that a text is refused for that reason, and that its terminal is as it was."""
        before = self.pane.text()
        reply = self.send(text, "--submit")
        assert not reply["ok"]
        assert why in reply["why"]
        assert self.pane.text() == before


@pytest.fixture
def session(home: Home, tmux: Server) -> Session:
    return Session(home, tmux)


def test_a_prompt_is_submitted_once_and_as_it_was_written(session: Session) -> None:
    assert session.send(TEXT, "--submit")["outcome"] == "taken"
    shown = session.pane.shows("this one only plays")
    assert shown.count("> tidy that, too:") == 1
    assert "'a' \"b\" $(x) `y` \\ é 漢" in shown
    (row,) = session.listed()
    assert row["words"]["title"].startswith("tidy that, too:")
    told = warm.run(["-m", "bellboard", "explain", session.id], env=session.home.env).stdout
    assert "You submitted a prompt" in told  # so `wait` does not take what was before for a reply


def test_a_prompt_is_not_submitted_unless_that_is_wanted(session: Session) -> None:
    """Then it stands there as if somebody had typed it, and nothing is added to it."""
    assert session.send("half a thought")["outcome"] == "kept"
    session.refuses("its prompt holds “half a thought”; go there")
    assert "❯ half a thought" in session.pane.text()


def test_keys_that_would_not_reach_the_agent_are_not_pressed(session: Session) -> None:
    session.tmux.run("copy-mode", "-t", session.pane.id)
    session.refuses("is in copy mode, which would take the keys; go there")
    session.tmux.run("send-keys", "-t", session.pane.id, "-X", "cancel")
    session.tmux.run("set-option", "-g", "synchronize-panes", "on")
    session.refuses("shares its keys with other panes")


def test_nothing_is_sent_to_a_session_that_asks(home: Home, tmux: Server) -> None:
    """Nor is it interrupted: Esc would answer its dialog."""
    session = Session(home, tmux, "api", "Do you want to proceed")
    session.refuses("it asks something: answer that first")
    assert session.run("interrupt", session.id)["why"] == "it asks something: answer that first"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a\x1b[201~b", "the text has the control character U+001B"),
        ("right \u202eto left", "the text has the invisible character U+202E; remove it"),
        ("  !touch x", "it begins with “!”, which would run it as a shell command there"),
        (" \n ", "there is nothing to send"),
        ("x" * 66_000, "the text is longer than 64 kB"),
    ],
)
def test_a_text_that_would_be_more_than_a_text_is_refused(
    session: Session, text: str, why: str
) -> None:
    session.refuses(why, text)


def test_what_is_faint_is_a_hint_and_nobody_typed_it(tmux: Server) -> None:
    """The cursor is on its first character; a text may have the same words."""
    row = r"printf '\033[7mF\033[0;2mix the tests\033[0m\nFix the docs\n'; sleep 100"
    pane = tmux.open(("sh", "-c", row))
    pane.shows("Fix the docs")
    terminal = PaneTerminal(str(tmux.socket), pane.id, pane.tty)
    assert terminal.is_hint("Fix the tests")
    assert not terminal.is_hint("Fix the docs")
    assert not terminal.is_hint("F")
