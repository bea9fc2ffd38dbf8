"""No file in the current folder is imported or run, whatever the environment says."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bellboard.agents.claude.versions import cli_version
from bellboard.cli.wiring import Wiring
from bellboard.diagnosis.fact import program as advised
from bellboard.system import files, gate
from rig.home import Home
from rig.waiting import PATIENCE

pytestmark = pytest.mark.files

MODULES = ("json", "typing", "contextlib", "msgspec", "sqlite3", "bellboard", "sitecustomize")
PROGRAMS = ("tmux", "claude", "gh", "env", "python3")
POISON = {
    "nothing": {},
    "an empty folder on PYTHONPATH": {"PYTHONPATH": ":/nonexistent"},
    "a relative folder on PYTHONPATH": {"PYTHONPATH": "."},
    "PYTHONHOME": {"PYTHONHOME": "/nonexistent"},
    "PYTHONINSPECT": {"PYTHONINSPECT": "1"},
    "PYTHONSTARTUP": {"PYTHONSTARTUP": "json.py"},
    "PYTHONWARNINGS": {"PYTHONWARNINGS": "error"},
}


@pytest.fixture
def trap(home: Home) -> Path:
    """Make a project of modules and programs that write to this file when they run."""
    trace = home.root / "trace"
    for name in MODULES:
        home.file(f"{name}.py", f"open({str(trace)!r}, 'a').write({name!r})\n")
    for name in PROGRAMS:
        home.file(name, f"#!/bin/sh\necho {name} >>{trace}\n").chmod(0o755)
    return trace


def run(home: Home, command: list[str], env: dict[str, str]) -> None:
    done = subprocess.run(
        [*command, "list"],
        env=home.env | env,
        cwd=home.project,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert 0 == done.returncode, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("poison", POISON)
def test_what_runs_us_unasked_imports_nothing_of_a_project(
    home: Home, trap: Path, poison: str
) -> None:
    """tmux and the advice of doctor use this command line, in any folder."""
    run(home, files.program(), POISON[poison])
    assert not trap.exists(), trap.read_text()


@pytest.mark.parametrize("poison", POISON)
@pytest.mark.editor
def test_what_neovim_runs_imports_nothing_of_a_project(
    nvim: Callable[..., Any], home: Home, trap: Path, poison: str
) -> None:
    """Neovim's current folder is the project."""
    editor = nvim(config={"auto_start": False}, ui=False)
    run(home, editor.lua("return require('bellboard.process.program').command()"), POISON[poison])
    assert not trap.exists(), trap.read_text()


def test_everything_that_is_to_run_us_later_has_that_command_line(home: Home) -> None:
    """The configuration of tmux, and the advice of doctor."""
    command = shlex.join(files.program())
    assert (
        command
        in Wiring(home.bellboard, dict.fromkeys(("pick", "answer", "next", "back"), "x")).printed()
    )
    assert advised({"PATH": ""}) in (
        command,
        str(Path(files.program()[0]).with_name("bellboard")),
    )


@pytest.mark.parametrize("path", ["", ".", ":/bin", "/bin:", "./bin:."])
def test_programs_are_not_looked_up_in_relative_folders(
    home: Home, trap: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The current folder may be a repository that somebody else wrote."""
    monkeypatch.chdir(home.project)
    monkeypatch.setenv("PATH", path)
    assert (gate.program() or "/").startswith("/")
    assert cli_version(None, {"PATH": path}) is None
    assert not trap.exists(), trap.read_text()
