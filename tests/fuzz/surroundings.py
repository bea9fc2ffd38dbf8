"""Inherited by a process: limits, which may change while it runs, and PYTHON… variables."""

from __future__ import annotations

import itertools
import os
import resource
import subprocess
import sys
from pathlib import Path
from random import Random

from bellboard.system import files
from fuzz.case import Case, Category
from fuzz.target import ANSWER, Fallen, Target

#: Name → the limit, and what it is set to; the hard limit stays, so that it can be undone.
LIMITS = {
    "files open": (resource.RLIMIT_NOFILE, 0),
    "hardly more files than now": (resource.RLIMIT_NOFILE, -1),
    "size of a file": (resource.RLIMIT_FSIZE, 0),
    "processes": (resource.RLIMIT_NPROC, 0),
    "memory": (resource.RLIMIT_AS, -1),
}
DAMAGED = "board.db.damaged-*"
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


def limit(random: Random, name: str) -> Case:
    """Lower a limit of the running host; what came meanwhile is folded once it is lifted.

    One that may hardly open files has to open the database again, and must not take it for damaged.
    Without memory Python itself may end, and an editor starts it again.
    """
    which, most = LIMITS[name]
    before: list[tuple[int, int]] = []
    aside: set[Path] = set()

    def do(target: Target) -> None:
        aside.update(target.board.glob(DAMAGED))
        pid = target.process.pid
        before.append(resource.prlimit(pid, which))
        soft = most
        if most < 0 and which == resource.RLIMIT_NOFILE:
            now = len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208
            soft = now + random.randrange(6)
            (target.board / "board.db-wal").unlink(missing_ok=True)
        elif most < 0:
            target._rests()
            soft = target.process_memory()
            target.may_end = True
        resource.prlimit(pid, which, (soft, before[-1][1]))
        for n in range(20):
            target.hook("UserPromptSubmit", f"l{n}", prompt="x" * 50_000)

    def undo(target: Target) -> None:
        while before:
            target.may_end = False
            if target.has_ended():
                target.start()
                target.up()
            else:
                resource.prlimit(target.process.pid, which, before[-1])
            before.pop()
        target.folded("l19")
        if more := {*target.board.glob(DAMAGED)} - aside:
            notes = target.health().get("notes", {})
            raise Fallen(f"a sound database was set aside: {min(more)} {notes}")

    return Case(f"a limit: {name}", do, undo, folds=False)


def variables(_: Random, poison: dict[str, str], command: str) -> Case:
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

    return Case(f"{command} with {poison}", do)


def not_linux() -> str:
    """Return why limits of another process cannot be set here, or ""."""
    return "" if sys.platform == "linux" else "it needs Linux"


CATEGORIES = (
    Category(
        "limit", limit, batch=1, lacks=not_linux, settle=2.5, each=tuple((x,) for x in LIMITS)
    ),
    Category(
        "variable",
        variables,
        batch=4,
        each=tuple(itertools.product(POISON, ("list", "doctor", "status"))),
    ),
)
