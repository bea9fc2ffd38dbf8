"""The `uninstall` command: hooks go from all files and, with --purge, so does all that we keep."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bellboard.agents.installing.installer import backups
from bellboard.cli.uninstall import REMEMBERED
from bellboard.storage.hosts import Hosts
from rig import ROOT
from rig.home import Home
from rig.shell import run

TEXT = '{"model": "opus"}\n'


@pytest.fixture
def file(home: Home) -> Path:
    """Write a user's settings."""
    path = home.claude / "settings.json"
    path.write_text(TEXT)
    return path


def test_uninstall_removes_all_hooks_and_purge_the_state(home: Home, file: Path) -> None:
    """Other files with our hooks are included; nothing that is not ours is removed."""
    far = home.root / "far.json"
    run(home, "hooks", "install", "--yes")
    run(home, "hooks", "install", "--yes", "--settings", str(far))
    run(home, "list")
    (home.bellboard / "mine.txt").write_text("a user's")
    (home.bellboard / "opencode").mkdir()  # its plugin listens there
    neovim = home.root / "state/nvim"
    for name in ("bellboard/hooks-asked", "swap/mine.swp"):
        (neovim / name).parent.mkdir(parents=True, exist_ok=True)
        (neovim / name).touch()
    said = run(home, "uninstall", "--yes")
    assert file.read_text() == TEXT
    assert not far.exists()
    assert f"kept: {home.bellboard}; `bellboard uninstall --purge`" in said
    said = run(home, "uninstall", "--purge", "--yes")
    assert "\nkept: " in said
    assert said.endswith("\ndeleted; now remove the plugin\n")
    assert "which also contains mine.txt" in said
    assert list(home.bellboard.iterdir()) == [home.bellboard / "mine.txt"]
    assert [path.name for path in neovim.rglob("*")] == ["swap", "mine.swp"]
    assert backups(file) == []


def test_purge_changes_nothing_while_a_host_runs(home: Home, file: Path) -> None:
    """The host's Neovim would lose the hooks, and then hear that nothing can be deleted."""
    run(home, "hooks", "install", "--yes")
    installed_text = file.read_text()
    Hosts(str(home.bellboard / "hosts")).announce(os.getpid())
    said = run(home, "uninstall", "--purge", "--yes", code=1)
    assert f"still running ({os.getpid()})" in said
    assert "hooks" not in said
    assert file.read_text() == installed_text


def test_purge_works_without_a_state_folder(home: Home, file: Path) -> None:
    """Somebody has deleted the folder by hand; the rest is still there."""
    run(home, "hooks", "install", "--yes")
    shutil.rmtree(home.bellboard)
    neovim = home.root / "state/nvim/bellboard"
    neovim.mkdir(parents=True, exist_ok=True)
    (neovim / "answers").touch()
    assert backups(file)
    link = home.root / ".local/bin/bellboard"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to("/gone/.venv/bin/bellboard")  # as `bellboard path` makes it
    assert f"- {link}\n" in run(home, "uninstall", "--purge", "--yes")
    assert not link.is_symlink()
    assert (backups(file), neovim.exists(), home.bellboard.exists()) == ([], False, False)
    assert "nothing of bellboard is left" in run(home, "uninstall", "--purge", "--yes")


def test_purge_finds_what_every_neovim_remembers(home: Home) -> None:
    """Empty files of ours go, of any NVIM_APPNAME; a file with text, or of another user, stays."""
    state = home.root / "state"
    shutil.rmtree(state)
    kept = [
        state / name for name in ("a/bellboard/mine", "b/bellboard/answers/1", "c/swap/answers")
    ]
    gone = [state / name for name in ("a/bellboard/answers", "d/bellboard/hooks-asked")]
    for path in (*kept, *gone):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (filled := state / "e/bellboard/answers").parent.mkdir(parents=True)
    filled.write_text("what another program keeps")
    (empty := state / "f/bellboard").mkdir(parents=True)
    (far := home.root / "far/bellboard/answers").parent.mkdir(parents=True)
    far.touch()
    (state / "g").symlink_to(far.parents[1])
    (state / "h").mkdir()
    (state / "h/bellboard").symlink_to(far.parent)
    kept += [filled, *([theirs(state / "i/bellboard/answers")] if os.geteuid() == 0 else [])]
    said = run(home, "uninstall", "--purge", "--yes")
    assert f"- {gone[0]}\n- {gone[1].parent}\n" in said
    assert empty.exists() and far.exists()
    assert sorted(kept) == sorted(path for path in state.rglob("*") if path.is_file())
    assert "nothing of bellboard is left" in run(home, "uninstall", "--purge", "--yes")


def theirs(path: Path) -> Path:
    """Make an empty file of another user, in a folder of that user."""
    path.parent.mkdir(parents=True)
    path.touch()
    for place in (path, path.parent):
        os.chown(place, 65534, 65534)
    return path


def test_purge_goes_on_after_what_it_cannot_delete(home: Home) -> None:
    """The message names the whole path of the file."""
    run(home, "list")
    stuck = home.bellboard / "spool/tmp"
    (stuck / "x").touch()
    stuck.chmod(0o500)
    argv = [sys.executable, "-m", "bellboard", "uninstall", "--purge", "--yes"]
    if os.geteuid() == 0:  # modes do not stop root, only its capabilities let it pass
        argv[:0] = ["setpriv", "--bounding-set=-all"]
    done = subprocess.run(argv, env=home.env, cwd=home.project, capture_output=True, text=True)
    assert "now remove" not in done.stdout
    why = f"cannot delete {home.bellboard / 'spool'}: x: Permission denied; delete it by hand"
    assert (done.returncode, done.stderr) == (1, f"bellboard: {why}\n")
    assert [path.name for path in home.bellboard.iterdir()] == ["spool"]


def test_purge_knows_what_neovim_remembers() -> None:
    """Each name that the Lua gives to `remembered` is known."""
    names = set()
    for text in (path.read_text() for path in (ROOT / "lua").rglob("*.lua")):
        for given in re.findall(r"\bremembered\.(?:is|note|forget)\((.+?)\)", text):
            value = re.search(rf"^local {given} = (.+)$", text, re.MULTILINE)
            names.add((value[1] if value else given).strip("'"))
    assert names == REMEMBERED


def test_purge_says_what_is_left_in_tmux_conf(home: Home) -> None:
    """The file is the user's; a line there would set everything up again when tmux starts."""
    conf = home.root / "config/tmux/tmux.conf"
    conf.parent.mkdir()
    conf.write_text("set -g mouse on\n  # bellboard\nrun-shell -b ': bellboard; exec x tmux'\n")
    (home.root / ".tmux.conf").write_text("set -ga status-right ' #{@bellboard-status}'\n" * 2)
    left = [
        "kept: ~/.tmux.conf; to finish, remove its lines 1, 2 by hand",
        "kept: ~/config/tmux/tmux.conf; to finish, remove its line 3 by hand",
    ]
    run(home, "list")
    for _ in range(2):
        said = run(home, "uninstall", "--purge", "--yes")
        assert left == [line for line in said.splitlines() if "tmux.conf" in line]
        assert "nothing of bellboard is left" not in said


def test_purge_removes_a_link_to_the_state_folder(home: Home) -> None:
    """The folder that the link leads to goes, too."""
    place = home.root / "elsewhere"
    place.mkdir(mode=0o700)
    home.bellboard.symlink_to(place)
    run(home, "list")
    run(home, "uninstall", "--purge", "--yes")
    assert not place.exists()
    assert not home.bellboard.is_symlink()
