"""Who looks at what: each editor and each tmux client has a view of its own."""

from __future__ import annotations

from typing import Any

import pytest

from bellboard.agents.trace_line import from_line
from bellboard.core.board import Board
from bellboard.core.session import status_of

T = 1_800_000_000.0
HERE = {"tmux": "/tmp/tmux", "pane": "%1"}
THERE = {"tmux": "/tmp/tmux", "pane": "%2"}


class Folded:
    """A board that folds lines, by default one second apart."""

    def __init__(self) -> None:
        self.board = Board()
        self.now = T

    def fold_line(self, after: float = 1.0, **line: Any) -> None:
        self.now += after
        self.board.fold(from_line({"t": self.now, **line}, self.now))

    def look(self, viewer: str, view: dict[str, str] | bool, after: float = 1.0) -> None:
        self.fold_line(after, view=view, viewer=viewer)

    def done(self, sid: str, **origin: str) -> None:
        """Return a session that has ended its turn, in a given terminal."""
        for event in ("UserPromptSubmit", "Stop"):
            hook = {"hook_event_name": event, "session_id": sid, "cwd": f"/srv/{sid}"}
            self.fold_line(hook=hook, origin=origin)

    def after(self, seconds: float) -> dict[str, str]:
        """Return the statuses of the sessions after that time."""
        self.now += seconds
        self.board.advance(self.now)
        return {sid: status_of(s) for sid, s in self.board.sessions.items()}

    def viewers(self, sid: str) -> list[str]:
        return sorted(self.board.sessions[sid].viewers)


def test_a_long_look_clears_and_a_glance_does_not() -> None:
    scene = Folded()
    scene.done("a")
    scene.look("nvim 1", {"session_id": "a"})
    scene.look("nvim 1", False, after=0.8)
    assert scene.after(60) == {"a": "completed"}
    scene.look("nvim 1", {"session_id": "a"})
    assert scene.after(1.1) == {"a": "idle"}


def test_each_editor_has_a_view_of_its_own() -> None:
    """An editor that looks away, or at another session, does not end another's view."""
    scene = Folded()
    scene.done("a")
    scene.done("b")
    scene.look("nvim 1", {"session_id": "a"}, after=0.1)
    scene.look("nvim 2", {"session_id": "a"}, after=0.1)
    assert scene.viewers("a") == ["nvim 1", "nvim 2"]
    scene.look("nvim 1", {"session_id": "b"}, after=0.1)
    assert (scene.viewers("a"), scene.viewers("b")) == (["nvim 2"], ["nvim 1"])
    scene.look("nvim 1", False, after=0.1)
    assert (scene.viewers("a"), scene.viewers("b")) == (["nvim 2"], [])
    assert scene.after(2) == {"a": "idle", "b": "completed"}


def test_each_tmux_client_has_a_view_of_its_own() -> None:
    scene = Folded()
    scene.done("a", **HERE)
    scene.done("b", **THERE)
    scene.look("tmux /tmp/tmux one", HERE, after=0.1)
    scene.look("tmux /tmp/tmux two", THERE, after=0.1)
    assert [scene.viewers(s) for s in "ab"] == [["tmux /tmp/tmux one"], ["tmux /tmp/tmux two"]]
    scene.look("tmux /tmp/tmux two", False, after=0.1)
    assert [scene.viewers(s) for s in "ab"] == [["tmux /tmp/tmux one"], []]


def test_the_same_pane_id_on_another_server_is_another_pane() -> None:
    scene = Folded()
    scene.done("a", **HERE)
    scene.look("tmux", {"tmux": "/tmp/other", "pane": "%1"})
    assert scene.viewers("a") == []


@pytest.mark.parametrize("tty", ["", "/dev/pts/9"])
def test_looking_at_a_neovims_pane_is_not_looking_at_its_hidden_terminals(tty: str) -> None:
    """Hidden terminals only inherit its TMUX_PANE."""
    scene = Folded()
    scene.fold_line(pane={**HERE, "alive": True, "tty": "/dev/pts/1"})
    origin = {**HERE, "nvim": "/run/nvim.1.0", **({"tty": tty} if tty else {})}
    scene.done("hidden", **origin)
    scene.look("tmux", HERE)
    assert scene.viewers("hidden") == []
    assert scene.after(60) == {"hidden": "completed"}
    scene.look("nvim 1", {"session_id": "hidden"})
    assert scene.viewers("hidden") == ["nvim 1"], "its own Neovim shows it"
    assert scene.after(2) == {"hidden": "idle"}


def test_looking_at_a_plain_pane_is_looking_at_its_agent() -> None:
    scene = Folded()
    scene.fold_line(pane={**HERE, "alive": True, "tty": "/dev/pts/1"})
    scene.done("plain", **HERE, tty="/dev/pts/1")
    scene.look("tmux", HERE)
    assert scene.after(2) == {"plain": "idle"}
