"""A folder that is filled once, completely or not at all, and works offline afterwards.

Standard library only: the rig's commands run before any environment of the project exists.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rig import ROOT

remembered = 3600.0  # seconds in which a failure is not tried again: longer than a test run
is_closed = False  # while tests are collected: then not even what is there may be asked for


class Missing(Exception):
    """Something is not available; the message is one line that says what to install."""


def folder() -> Path:
    """Return the folder of fetched things: $BELLBOARD_CACHE, or .cache in the checkout."""
    return Path(os.environ.get("BELLBOARD_CACHE") or ROOT / ".cache").resolve()


@contextlib.contextmanager
def lock(name: str) -> Iterator[None]:
    """Hold a lock; the kernel releases it if the process dies."""
    folder().mkdir(parents=True, exist_ok=True)
    with (folder() / f".{name}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def kept(name: str, fill: Callable[[Path, Path], None]) -> Path:
    """Return the folder `name`, filled at first use by `fill(where to write, final path)`.

    After a failure, Missing is raised at once for a while: without a network, hundreds of tests
    must not each wait for it.
    """
    assert not is_closed, f"{name} is fetched while tests are collected"
    target = folder() / name
    if target.is_dir():
        return target
    with lock(name):
        if target.is_dir():
            return target
        note = folder() / f".{name}.missing"
        if note.exists() and time.time() - note.stat().st_mtime < remembered:
            raise Missing(note.read_text())
        try:
            _fill(name, target, fill)
        except Missing as missing:
            note.write_text(str(missing))
            raise
        note.unlink(missing_ok=True)
    return target


def _fill(name: str, target: Path, fill: Callable[[Path, Path], None]) -> None:
    for left in folder().glob(f".{name}.draft-*"):  # by a process that was killed
        shutil.rmtree(left)
    draft = Path(tempfile.mkdtemp(prefix=f".{name}.draft-", dir=folder()))
    try:
        fill(draft, target)
        draft.chmod(0o755)
        draft.rename(target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def run(*command: str | Path, env: dict[str, str] | None = None) -> str:
    """Return the output of a command; raise Missing with its last line if it fails."""
    try:
        done = subprocess.run(
            [str(part) for part in command],
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        raise Missing(f"{command[0]} does not run: {error.strerror}") from None
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        errors = (
            [line for line in said if line.startswith(("E:", "npm error"))]
            or said[-1:]
            or ["it said nothing"]
        )
        raise Missing(f"{Path(command[0]).name} failed: {errors[0]}")
    return done.stdout
