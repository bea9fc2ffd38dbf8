"""Who looks at what: each editor and each tmux client has a view of its own."""

from __future__ import annotations

from typing import Any

import pytest

from bellboard.agents.evidence import from_line
from bellboard.core.board import Board
from bellboard.core.session import status_of

pytestmark = pytest.mark.pure

T = 1_800_000_000.0
HERE = {"tmux": "/tmp/tmux", "pane": "%1"}
THERE = {"tmux": "/tmp/tmux", "pane": "%2"}


class Told:
    """A board that is told lines, a second after the other unless said."""

    def __init__(self) -> None:
        self.board = Board()
        self.now = T

    def tell(self, after: float = 1.0, **line: Any) -> None:
        self.now += after
        self.board.fold(from_line({"t": self.now, **line}, self.now))

    def look(self, viewer: str, view: dict[str, str] | bool, after: float = 1.0) -> None:
        self.tell(after, view=view, viewer=viewer)

    def done(self, sid: str, **origin: str) -> None:
        """A session that has ended its turn, somewhere."""
        for event in ("UserPromptSubmit", "Stop"):
            hook = {"hook_event_name": event, "session_id": sid, "cwd": f"/srv/{sid}"}
            self.tell(hook=hook, origin=origin)

    def after(self, seconds: float) -> dict[str, str]:
        """What the sessions show, so much later."""
        self.now += seconds
        self.board.advance(self.now)
        return {sid: status_of(s) for sid, s in self.board.sessions.items()}

    def viewers(self, sid: str) -> list[str]:
        return sorted(self.board.sessions[sid].viewers)


def test_a_long_look_clears_and_a_glance_does_not() -> None:
    told = Told()
    told.done("a")
    told.look("nvim 1", {"session_id": "a"})
    told.look("nvim 1", False, after=0.8)
    assert told.after(60) == {"a": "completed"}
    told.look("nvim 1", {"session_id": "a"})
    assert told.after(1.1) == {"a": "idle"}


def test_each_editor_has_a_view_of_its_own() -> None:
    """One that looks away, or at another session, does not end the other's view."""
    told = Told()
    told.done("a")
    told.done("b")
    told.look("nvim 1", {"session_id": "a"}, after=0.1)
    told.look("nvim 2", {"session_id": "a"}, after=0.1)
    assert told.viewers("a") == ["nvim 1", "nvim 2"]
    told.look("nvim 1", {"session_id": "b"}, after=0.1)
    assert (told.viewers("a"), told.viewers("b")) == (["nvim 2"], ["nvim 1"])
    told.look("nvim 1", False, after=0.1)
    assert (told.viewers("a"), told.viewers("b")) == (["nvim 2"], [])
    assert told.after(2) == {"a": "idle", "b": "completed"}


def test_each_tmux_client_has_a_view_of_its_own() -> None:
    told = Told()
    told.done("a", **HERE)
    told.done("b", **THERE)
    told.look("tmux /tmp/tmux one", HERE, after=0.1)
    told.look("tmux /tmp/tmux two", THERE, after=0.1)
    assert [told.viewers(s) for s in "ab"] == [["tmux /tmp/tmux one"], ["tmux /tmp/tmux two"]]
    told.look("tmux /tmp/tmux two", False, after=0.1)
    assert [told.viewers(s) for s in "ab"] == [["tmux /tmp/tmux one"], []]


def test_the_same_pane_id_on_another_server_is_another_pane() -> None:
    told = Told()
    told.done("a", **HERE)
    told.look("tmux", {"tmux": "/tmp/other", "pane": "%1"})
    assert told.viewers("a") == []


@pytest.mark.parametrize("tty", ["", "/dev/pts/9"])
def test_looking_at_a_neovims_pane_is_not_looking_at_its_hidden_terminals(tty: str) -> None:
    """They only inherit its TMUX_PANE."""
    told = Told()
    told.tell(pane={**HERE, "alive": True, "tty": "/dev/pts/1"})
    origin = {**HERE, "nvim": "/run/nvim.1.0", **({"tty": tty} if tty else {})}
    told.done("hidden", **origin)
    told.look("tmux", HERE)
    assert told.viewers("hidden") == []
    assert told.after(60) == {"hidden": "completed"}
    told.look("nvim 1", {"session_id": "hidden"})
    assert told.viewers("hidden") == ["nvim 1"], "its own Neovim shows it"
    assert told.after(2) == {"hidden": "idle"}


def test_looking_at_a_plain_pane_is_looking_at_its_agent() -> None:
    told = Told()
    told.tell(pane={**HERE, "alive": True, "tty": "/dev/pts/1"})
    told.done("plain", **HERE, tty="/dev/pts/1")
    told.look("tmux", HERE)
    assert told.after(2) == {"plain": "idle"}
