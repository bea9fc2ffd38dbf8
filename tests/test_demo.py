"""`make try`: what a newcomer sees first must always work."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rig import neovim

pytestmark = [pytest.mark.editor, pytest.mark.timeout(240)]

ROOT = Path(__file__).resolve().parents[1]


def test_the_demo_shows_every_status_and_leaves_nothing() -> None:
    """It shows a count of each status, the float and the board in time, and exits with 0."""
    neovim.executable("stable")
    done = subprocess.run(
        ["make", "try", "HEADLESS=1"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for text in ("!1 ?1", "x1", "+1", "&1", "2 need you", "rm -rf build && make all", "6 sessions"):
        assert text in done.stdout
    assert "every status was on the screen after" in done.stdout


def test_the_demo_fails_when_it_shows_nothing(tmp_path: Path) -> None:
    """A check counts only after it was seen failing: a hook that does nothing is noticed."""
    editor = neovim.executable("0.12")
    for name in ("lua", "plugin", "rplugin", "tests"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("traces"))
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks/emit").symlink_to("/bin/true")
    done = subprocess.run(
        [sys.executable, "tests/demo/run.py", "--headless", "--patience", "4"],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{editor.parent}{os.pathsep}{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "the statusline lacks" in done.stderr  # its session files alone show most of it
