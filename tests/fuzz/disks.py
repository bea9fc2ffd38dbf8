"""Disks that are full, out of inodes or read-only; mounts that do not respond."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import subprocess
from pathlib import Path
from random import Random

from fuzz.case import Case, Category, no_root
from fuzz.files import remove
from fuzz.target import Target
from rig import tools

MOUNTED = "size=8m,nr_inodes=400,mode=0700"


def _mount(*args: str) -> None:
    subprocess.run([tools.executable("mount"), *args], check=True, capture_output=True)


def disk(_: Random, how: str, early: bool) -> Case:
    """Put the state folder on a full or read-only disk; events arrive once there is room again."""

    def do(target: Target) -> None:
        target.stop()
        _mount("-t", "tmpfs", "-o", MOUNTED, "tmpfs", str(target.board))
        target.undone.callback(_unmount, target.board)
        target.prepare()
        if not early:
            target.start()
            target.up()
            target.canary()
        spoil(target)
        if early:
            target.start()

    def spoil(target: Target) -> None:
        for n in range(5):
            target.hook("UserPromptSubmit" if n % 2 else "Stop", f"d{n}")
        if how == "read-only":  # made elsewhere: a mount that the host writes to is busy
            aside = target.home.root / target.unique()
            aside.mkdir()
            _mount("--bind", str(target.board), str(aside))
            target.undone.callback(_unmount, aside)
            _mount("-o", "remount,bind,ro", str(aside))
            _mount("--bind", str(aside), str(target.board))
            target.undone.callback(_unmount, target.board)
        filler = target.board / "filler"
        with contextlib.suppress(OSError):
            if how == "full":
                with filler.open("wb") as file:
                    while True:
                        file.write(b"x" * 4096)
                        file.flush()
            elif how == "without inodes":
                filler.mkdir()
                for n in range(10_000):
                    (filler / str(n)).touch()

    def undo(target: Target) -> None:
        if how == "read-only":
            _unmount(target.board)
        subprocess.run(["rm", "-rf", str(target.board / "filler")], check=True)

    when = "before the start" if early else "while it runs"
    return Case(f"a disk {how} {when}", do, undo, folds=False)


def _unmount(path: Path) -> None:
    subprocess.run([tools.executable("umount"), "-l", str(path)], check=False, capture_output=True)


class Hung:
    """A file system that does not respond: access waits until it is `over`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(exist_ok=True)
        self.fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={self.fd},rootmode=40000,user_id=0,group_id=0".encode()
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"bellboard", os.fsencode(path), b"fuse", 6, options):
            os.close(self.fd)
            raise OSError(ctypes.get_errno(), "mount")

    def over(self) -> None:
        """Release everything that waits."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
            _unmount(self.path)


def hung(_: Random, which: str) -> Case:
    """Put a folder of an event, git or the agent on a hanging mount; events still arrive."""
    mounts: list[Hung] = []

    def do(target: Target) -> None:
        root = target.home.root / "hung"
        if which in ("sessions", "settings"):
            (target.home.claude / "projects").mkdir(exist_ok=True)
            root = target.home.claude / ("sessions" if which == "sessions" else "projects")
        mounts.append(Hung(root))
        target.undone.callback(mounts[-1].over)
        fields = {"cwd": f"{root}/a"} if which == "cwd" else {}
        if which == "transcript_path":
            fields = {"transcript_path": f"{root}/a/t.jsonl"}
        if which == "git":
            project = target.home.project / target.unique()
            project.mkdir()
            (project / ".git").write_text(f"gitdir: {root}/git\n")
            fields = {"cwd": str(project)}
        if which == "config":
            head = f"agent=claude\0event=Stop\0pid={target.sleeper()}\0CLAUDE_CONFIG_DIR={root}\0\0"
            body = '{"session_id":"h","hook_event_name":"UserPromptSubmit","cwd":"/srv"}'
            target.put(f"bellboard 1\0{head}{body}".encode())
        if which == "settings":
            remove(target.home.claude / "settings.json")
            (target.home.claude / "settings.json").symlink_to(root / "settings.json")
        target.hook("UserPromptSubmit", "hung", target.sleeper(), **fields)

    def undo(target: Target) -> None:
        while mounts:
            mounts.pop().over()
        (target.home.claude / "settings.json").unlink(missing_ok=True)

    return Case(f"a mount that hangs: {which}", do, undo)


def no_fuse() -> str:
    """Return why no mount can hang here, or ""."""
    if why := no_root():
        return why
    return "" if os.access("/dev/fuse", os.R_OK | os.W_OK) else "there is no /dev/fuse"


FULL = tuple(itertools.product(("full", "without inodes", "read-only"), (False, True)))
WHERE = ("cwd", "transcript_path", "config", "git", "sessions", "settings")
CATEGORIES = (
    Category("disk", disk, batch=1, lacks=no_root, settle=0.5, spent=True, each=FULL),
    Category("hung", hung, batch=1, lacks=no_fuse, settle=2.5, each=tuple((x,) for x in WHERE)),
)
