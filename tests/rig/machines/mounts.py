"""Mounts and namespaces for a test; where this machine permits none, the test is skipped."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from rig.fetched import tools
from rig.waiting import eventually


class Mounts:
    """The mounts of a test, unmounted at its end."""

    def __init__(self) -> None:
        self.made: list[Path] = []

    def __call__(self, *arguments: str, at: Path, again: bool = False) -> None:
        """Mount something; `again`: it is mounted already, and only its options change."""
        command = [tools.executable("mount"), *arguments, str(at)]

        def tried() -> subprocess.CompletedProcess[str] | None:
            done = subprocess.run(command, capture_output=True, text=True)
            return None if again and "busy" in done.stderr else done  # a file is open for writing

        done = eventually(tried, "a mount that is not busy")
        if done.returncode != 0:
            pytest.skip(f"this needs a mount: {done.stderr.strip()}")
        if not again:
            self.made.append(at)

    def close(self) -> None:
        for path in reversed(self.made):
            subprocess.run([tools.executable("umount"), "-l", str(path)], check=True)
        self.made.clear()


def unshared(*which: str) -> list[str]:
    """Return the command that runs another one in namespaces of its own, such as `--mount`."""
    if "--mount" in which:
        tools.executable("mount")  # which that one runs
    command = [str(tools.executable("unshare")), *which]
    if os.geteuid() != 0:
        command += ["--user", "--map-root-user"]
    tried = subprocess.run([*command, "--fork", "true"], capture_output=True, text=True)
    if tried.returncode != 0:
        pytest.skip(f"this needs a namespace of its own: {tried.stderr.strip()}")
    return command


def sandboxed(kind: str, home: Path) -> list[str]:
    """Return what runs a command in a sandbox that can change nothing in the home."""
    if kind == "bwrap":
        own = ("--unshare-pid", "--unshare-user", "--proc", "/proc")
        made = [str(tools.executable("bwrap")), "--ro-bind", "/", "/", *own]
        tried = subprocess.run([*made, "true"], capture_output=True, text=True)
        if tried.returncode != 0:
            pytest.skip(f"this needs bubblewrap: {tried.stderr.strip()}")
        return made
    bound = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
    return [*unshared("--mount", "--pid", "--fork"), "sh", "-c", bound, str(home)]
