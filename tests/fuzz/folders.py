"""Folders that are missing, forbidden or something else; locks held by suspended processes."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

from fuzz.case import Case, Category
from fuzz.files import remove
from fuzz.target import FOLDERS, Target

HOW = (
    "removed",
    "moved away",
    "closed",
    "a file",
    "a link to itself",
    "a link elsewhere",
    "a pipe",
)
FOREIGN = ("sessions", "projects", ".")


def _spoil(path: Path, how: str, away: Path) -> None:
    if how == "closed":
        path.chmod(0)
        return
    if path.exists():
        path.rename(away)
    if how == "removed":
        remove(away)
    elif how == "a file":
        path.write_text("x")
    elif how == "a link to itself":
        path.symlink_to(path)
    elif how == "a link elsewhere":
        (path.parent / "elsewhere").mkdir(exist_ok=True)
        path.symlink_to(path.parent / "elsewhere")
    elif how == "a pipe":
        os.mkfifo(path)


def _mend(path: Path, how: str, away: Path) -> None:
    with contextlib.suppress(OSError):
        if how == "closed":
            path.chmod(0o700)
        elif away.exists():
            if path.is_symlink() or path.exists():
                remove(path)
            away.rename(path)
        elif path.is_symlink() or not path.is_dir():
            remove(path)


def own(_: Random, folder: str, how: str) -> Case:
    """Break a folder of the state; events arrive once it is back."""

    def do(target: Target) -> None:
        path = target.board / folder
        _spoil(path, how, target.home.root / "away")

    def undo(target: Target) -> None:
        path = target.board / folder
        _mend(path, how, target.home.root / "away")
        target.prepare()

    return Case(f"{folder or 'the home'}: {how}", do, undo, folds=False)


def foreign(_: Random, folder: str, how: str) -> Case:
    """Break a folder of the agent or of a project; events still arrive."""

    def do(target: Target) -> None:
        for name in FOREIGN:
            (target.home.claude / name).mkdir(exist_ok=True)
        target.hook("UserPromptSubmit", "f", target.sleeper(), cwd=str(target.home.claude))
        path = Path(os.path.normpath(target.home.claude / folder))
        _spoil(path, how, target.home.root / "away")

    def undo(target: Target) -> None:
        path = Path(os.path.normpath(target.home.claude / folder))
        _mend(path, how, target.home.root / "away")
        target.home.claude.mkdir(exist_ok=True)

    return Case(f"claude/{folder}: {how}", do, undo)


HOLD = """
import fcntl, os, sqlite3, sys
path, how = sys.argv[1:]
if how:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute(how)
else:
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    print("waits", flush=True)
    fcntl.flock(fd, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def lock(_: Random, name: str, how: str) -> Case:
    """Hold a lock in a suspended process; only that of the database delays events."""
    held: list[subprocess.Popen[bytes]] = []

    def do(target: Target) -> None:
        pipe = subprocess.PIPE
        argv = [sys.executable, "-c", HOLD, str(target.board / name), how]
        process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
        held.append(process)
        target.undone.callback(undo, target)
        assert process.stdout is not None
        process.stdout.readline()
        if name == "hooks.lock":  # a host shares the other one, and the sleeper waits for it
            process.stdout.readline()
        process.send_signal(signal.SIGSTOP)
        if name == "hooks.lock":  # a host takes it when it starts
            target.restart()
            target.up()
        target.line(clock={})

    def undo(_: Target) -> None:
        while held:
            process = held.pop()
            process.kill()
            process.communicate()

    return Case(f"{name} {how}", do, undo, folds=name != "board.db")


LOCKS = (
    ("board.db", "BEGIN IMMEDIATE"),
    ("board.db", "BEGIN EXCLUSIVE"),
    ("board.lock", ""),
    ("drain.lock", ""),
    ("hooks.lock", ""),
)
CATEGORIES = (
    Category("folder", own, batch=1, settle=0.3, each=tuple(itertools.product(FOLDERS, HOW))),
    Category("foreign", foreign, batch=1, settle=0.3, each=tuple(itertools.product(FOREIGN, HOW))),
    Category("lock", lock, batch=1, settle=1.5, each=LOCKS),
)
