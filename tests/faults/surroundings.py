"""Inherited by a process: limits, which may change while it runs, and PYTHON… variables."""

from __future__ import annotations

import itertools
import subprocess

from bellboard.system import files
from faults.fault import Fault, Kind
from faults.target import ANSWER, Fallen, Target

MODULES = ("json", "typing", "contextlib", "sqlite3", "msgspec", "bellboard", "sitecustomize")
POISON = (
    {"PYTHONPATH": ":/nonexistent"},
    {"PYTHONPATH": "."},
    {"PYTHONHOME": "/nonexistent"},
    {"PYTHONINSPECT": "1"},
    {"PYTHONWARNINGS": "error"},
    {"PYTHONDEVMODE": "1"},
    {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
    {"LC_ALL": "tr_TR.UTF-8"},
    {"TMPDIR": "tmp", "XDG_RUNTIME_DIR": "", "XDG_CONFIG_HOME": "..", "CLAUDE_CONFIG_DIR": "x"},
    {"HOME": "", "PATH": ""},
    {"PATH": ".:/usr/bin"},
)


def variables(poison: dict[str, str], command: str) -> Fault:
    """Run a command in a project whose files have the names of modules and programs."""

    def do(target: Target) -> None:
        project = target.home.project
        trace = target.home.root / "ran"
        for name in MODULES:
            (project / f"{name}.py").write_text(f"open({str(trace)!r}, 'a').write({name!r})\n")
        for name in ("tmux", "claude", "gh", "git"):
            (project / name).write_text(f"#!/bin/sh\necho {name} >>{trace}\n")
            (project / name).chmod(0o755)
        try:
            done = subprocess.run(
                [*files.program(), command],
                env=target.home.env | poison,
                cwd=project,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=2 * ANSWER,
            )
        except subprocess.TimeoutExpired:
            raise Fallen(f"`bellboard {command}` did not respond") from None
        words = (done.stdout + done.stderr).decode("utf-8", "replace")
        if trace.exists():
            raise Fallen(f"it ran {trace.read_text()} of the project")
        if "Traceback" in words or done.returncode not in (0, 1):
            raise Fallen(f"`bellboard {command}` ended with {done.returncode}: {words[-300:]}")

    return Fault(f"{command} with {poison}", do)


KINDS = (
    Kind(
        "variable",
        tuple(
            itertools.starmap(variables, itertools.product(POISON, ("list", "doctor", "status")))
        ),
        batch=len(POISON),
    ),
)
