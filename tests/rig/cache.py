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

CHECKOUT = Path(__file__).resolve().parents[2]
remembered = 3600.0  # how long what could not be had is not tried again: no run of tests is longer


class Missing(Exception):
    """Something the rig needs cannot be had; the message is one line that says what to install."""


def folder() -> Path:
    """Where fetched things live: $BELLBOARD_CACHE, else .cache in the checkout, linked or not."""
    return Path(os.environ.get("BELLBOARD_CACHE") or CHECKOUT / ".cache").resolve()


@contextlib.contextmanager
def lock(name: str) -> Iterator[None]:
    """One process at a time; the kernel frees the lock of one that died."""
    folder().mkdir(parents=True, exist_ok=True)
    with (folder() / f".{name}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def kept(name: str, fill: Callable[[Path, Path], None]) -> Path:
    """The folder `name`, filled at first use by `fill(where to write, where it will live)`.

    What could not be had is Missing at once to whoever asks next, for a while: two hundred tests
    on a machine without a network must not each wait for it.
    """
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
    """The command's output; Missing with its last words if it fails."""
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
