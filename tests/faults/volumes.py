"""Very many files, very deep folders, very many lines: what takes long, though each is harmless."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from bellboard.storage.answers import KEPT_FILES
from faults.fault import Fault, Kind
from faults.files import EVENT
from faults.target import Target
from rig import warm

DEEP = ("hosts", "spool/new", "spool/slot", "spool/bad", "spool/tmp")
ENTRY = '{"type":"user","uuid":"%d","timestamp":"%s","message":{"role":"user","content":"x"}}\n'


def names(target: Target) -> None:
    """Make files that no hook would name so."""
    for n in range(5000):
        (target.board / "spool/new" / f".{n}").write_bytes(EVENT)


def slots(target: Target) -> None:
    """Make files in slots that are no events."""
    for n in range(10_000):
        (target.board / "spool/slot" / str(n)).write_bytes(b"junk")


def pipes(target: Target) -> None:
    """Make files with the names of pipes that hosts offered."""
    warm.run(["-m", "bellboard", "answers", "on"], env=target.home.env, cwd=target.home.root)
    for n in range(10_000):
        (target.board / f"answers/{n + 1}.1").touch()


def nest(folder: Path, depth: int) -> None:
    """Make folders within folders; their path may be longer than any that can be opened."""
    folder.mkdir()
    here = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("x", dir_fd=here)
        there = os.open("x", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = there
    os.close(here)


def depths(target: Target) -> None:
    """Put such folders where files belong, and start a host."""
    for name in DEEP:
        nest(target.board / name / "0", 1500)
    os.utime(target.board / "spool/tmp/0", (1, 1))
    target.restart()
    target.up()


def dug_out(target: Target) -> None:
    """Remove them, wherever the host has put them: they are too deep for Python."""
    folders = [str(target.board / name) for name in DEEP]
    command = ["find", *folders, "-mindepth", "1", "-maxdepth", "1", "-type", "d"]
    subprocess.run([*command, "-exec", "rm", "-rf", "{}", "+"], check=True)


def lines(target: Target) -> None:
    """Add 4 MB to a transcript at once."""
    path = target.home.root / "long.jsonl"
    path.write_text("{}\n")
    target.hook("UserPromptSubmit", "long", target.sleeper(), transcript_path=str(path))
    target.canary()
    added = "".join(ENTRY % (n, "2030-01-01T00:00:00.000Z") for n in range(36_000))
    with path.open("a") as file:
        file.write(added)


def sessions(target: Target) -> None:
    """Start very many, each in a directory of its own, and end them."""
    for event in ("UserPromptSubmit", "SessionEnd"):
        for n in range(500):
            target.hook(event, f"v{n}", cwd=f"/srv/{n}")


def threads(target: Target) -> None:
    """Start very many in one process and directory, each in place of the one before."""
    pid = target.sleeper()
    for n in range(1500):
        target.hook("UserPromptSubmit", f"t{n}", pid)
    target.canary(within=30)
    for n in range(150):
        target.hook("UserPromptSubmit", f"u{n}", pid)


def questions(target: Target) -> None:
    """Ask very much, without an answer."""
    for n in range(80):
        asked = {"tool_name": "Write", "tool_input": {"file_path": "/x", "content": "x" * 10**6}}
        target.hook("PermissionRequest", f"q{n}", **asked)


def short_questions(target: Target) -> None:
    """Ask more often than is kept."""
    for n in range(KEPT_FILES + 30):
        target.hook("PermissionRequest", f"r{n}", tool_name="Bash", tool_input={"command": "ls"})


def answered(target: Target) -> None:
    """End the sessions that ask."""
    for n in range(KEPT_FILES + 30):
        target.hook("SessionEnd", f"r{n}")


VOLUMES = (
    *(Fault(f"very many {f.__name__}", f) for f in (names, slots, pipes, lines, sessions, threads)),
    Fault("very deep folders", depths, dug_out, alone=True),
    Fault("very long questions", questions),
    Fault("very many questions", short_questions, answered, says="requests that were not kept: "),
)
KINDS = (Kind("volume", VOLUMES, settle=0.3),)
