"""The rig's tmux: a server of the test's own."""

from __future__ import annotations

import psutil
import pytest

from bellboard.system.processes import tty_of
from rig import reaper
from rig.fixtures import Editors
from rig.home import Home
from rig.reaper import lives
from rig.tmux import Server

pytestmark = pytest.mark.tmux


def test_a_pane_runs_what_it_is_given(tmux: Server, home: Home) -> None:
    """Typed text arrives, the screen is read, tty and pid are the pane's own."""
    pane = tmux.open(["sh"])
    pane.shows(r"(?m)^[#$]")  # it may print its prompt after what is typed early
    pane.type("echo $((6 * 7)) $HOME")
    pane.press("Enter")
    pane.shows(rf"(?m)^42 {home.root}$")
    # psutil caches the terminals at its first use
    assert (pane.tty, "sh") == (tty_of(pane.pid), psutil.Process(pane.pid).name())


def test_the_server_inherits_nothing(
    tmux: Server, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pane's environment is the home's and what tmux adds."""
    monkeypatch.setenv("BELLBOARD_CANARY", "of the test run")
    # tmux may lose what a command prints that ends at once
    pane = tmux.open(["sh", "-c", "env; exec sleep 600"], env={"EXTRA": "1"})
    pane.shows("EXTRA=1")
    names = {line.partition("=")[0] for line in pane.text().splitlines() if "=" in line}
    added = {"EXTRA", "TMUX", "TMUX_PANE", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "PWD"}
    added |= {"OLDPWD", "SHLVL", "_"}  # of the shell
    assert names - added <= set(home.env)


def test_closing_ends_what_ignores_a_hang_up(tmux: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """No process outlives its server, and closing twice does no harm."""
    monkeypatch.setattr(reaper, "GRACE", 0.2)  # it ignores that, however long
    pane = tmux.open(["sh", "-c", "trap '' HUP TERM; echo deaf; sleep 600 & wait; sleep 600"])
    pane.shows("deaf")
    process = psutil.Process(pane.pid)
    tmux.close()
    assert not lives(process)
    assert tmux.pid == 0
    tmux.close()


def test_a_neovim_lives_in_a_pane(tmux: Server, nvim: Editors, home: Home, version: str) -> None:
    """The terminal interface works too; it starts its server through its own path."""
    from rig.editor import command

    pane = tmux.open([*command(version, home)], columns=60, lines=10)
    pane.shows(r"\[No Name\]|~")
    pane.type("ihello from a pane")
    pane.shows("hello from a pane")
