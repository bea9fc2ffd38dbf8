"""A second user of this machine: sockets, folders, files and links that are traps.

`STOLEN` has what others own or may change of our state folder: no host starts there, no command and
no hook writes there. `FILES_OF_OTHERS` has what they put in the place of each of its files.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import socket
import stat
import struct
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from bellboard.storage import state_folder
from faults.fault import SESSIONS, Do, Fault, Kind, no_root
from faults.files import remove
from faults.target import HEAL, Fallen, Target
from rig import warm

STRANGER = 54_321  # no account is needed; nobody's files are those of a container
#: What an event may name → its header or field of the payload.
LURES = ("TMUX", "NVIM", "cwd", "transcript_path", "CLAUDE_CONFIG_DIR", "CLAUDE_JOB_DIR", "home")


class Trap:
    """A folder of another user in /tmp, with a socket that records who connects."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="bb-trap-", dir="/tmp"))
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(self.root / "sock"))
        self.socket.listen(8)
        self.socket.setblocking(False)
        git = self.root / ".git"
        (git / "objects").mkdir(parents=True)
        (git / "HEAD").write_text("ref: refs/heads/stolen\n")
        (git / "config").write_text(f"[core]\n\tfsmonitor = touch {self.root}/ran\n")
        (self.root / "sessions").mkdir()
        (self.root / "t.jsonl").write_text('{"type":"custom-title","customTitle":"stolen"}\n')
        for path in (self.root, *self.root.rglob("*")):
            os.chown(path, STRANGER, STRANGER, follow_symlinks=False)
        self.root.chmod(0o755)
        (self.root / "sock").chmod(0o777)
        self.before = self._there()

    def sprung(self) -> str:
        """Return what was touched, or ""."""
        with contextlib.suppress(BlockingIOError):
            self.socket.accept()[0].close()
            return "somebody connected to the stranger's socket"
        after = self._there()
        return f"something was written for the stranger: {after}" if after != self.before else ""

    def _there(self) -> list[tuple[str, int]]:
        found = [(path, path.lstat()) for path in self.root.rglob("*")]
        return sorted((str(p), s.st_size) for p, s in found if not stat.S_ISDIR(s.st_mode))

    def close(self) -> None:
        """Remove it."""
        self.socket.close()
        shutil.rmtree(self.root, ignore_errors=True)


def stranger(lure: str, pid: str) -> Fault:
    """An event that names a stranger's files: none of them is run, read or written."""
    traps: list[Trap] = []

    def do(target: Target) -> None:
        trap = Trap()
        traps.append(trap)
        target.undone.callback(trap.close)
        if lure == "home":
            with contextlib.suppress(FileExistsError):
                (target.board / "hosts" / "trap").symlink_to(trap.root)
                (target.board / "spool" / "bad" / "trap").symlink_to(trap.root)
        values = {"TMUX": f"{trap.root}/sock,1,0", "NVIM": f"{trap.root}/sock"}
        values |= dict.fromkeys(("CLAUDE_CONFIG_DIR", "CLAUDE_JOB_DIR"), str(trap.root))
        payload = {"session_id": "s", "hook_event_name": "UserPromptSubmit", "cwd": "/srv"}
        if lure in ("cwd", "transcript_path"):
            payload[lure] = str(trap.root) if lure == "cwd" else f"{trap.root}/t.jsonl"
        head = f"agent=claude\0event=UserPromptSubmit\0pid={pid}\0TMUX_PANE=%0\0"
        head += f"{lure}={values[lure]}\0\0" if lure in values else "\0"
        head = head.replace("PID", str(target.sleeper()))
        target.put(f"bellboard 1\0{head}{json.dumps(payload)}".encode())

    def undo(target: Target) -> None:
        for path in (target.board / "hosts/trap", target.board / "spool/bad/trap"):
            path.unlink(missing_ok=True)
        while traps:
            trap = traps.pop()
            sprung = trap.sprung()
            trap.close()
            if sprung:
                raise Fallen(sprung)

    return Fault(f"{lure} with pid {pid}", do, undo)


# ------------------------------------------------------------------ the state folder

Take = Callable[[Path], object]  # home
SHELLS = ("dash", "bash", "busybox sh", "zsh", "ksh", "mksh")
COMMANDS = (["list"], ["set", "s", "idle"], ["hooks", "install", "--yes", "--user"], ["serve"])


def own(path: Path) -> None:
    """Give a path to the stranger."""
    os.chown(path, STRANGER, STRANGER, follow_symlinks=False)


def give(path: Path) -> None:
    """Give a path and its contents to the stranger, open to all."""
    own(path)
    if path.is_dir() and not path.is_symlink():
        path.chmod(0o777)
        for below in path.iterdir():
            give(below)


def behind_a_link(name: str, theirs: str) -> Take:
    """Put a link there; the stranger owns one of: folder, link, both."""

    def take(home: Path) -> None:
        path, there = Path(os.path.normpath(home / name)), home.with_name("there")
        path.rename(there)
        path.symlink_to(there)
        if theirs != "link":
            give(there)
        if theirs != "folder":
            give(path)

    return take


def above(change: Take) -> Take:
    """Change the folder above."""
    return lambda home: change(home.parent)


def with_what_is_above(home: Path) -> None:
    give(home)
    own(home.parent)


#: An access control list that lets the stranger write: a version, then tag, rights and id of each.
LISTED = struct.pack("<I", 2) + b"".join(
    struct.pack("<HHI", *entry)
    for entry in (
        *((1, 7, 2**32 - 1), (2, 7, STRANGER), (4, 0, 2**32 - 1), (16, 7, 2**32 - 1)),
        (32, 0, 2**32 - 1),
    )
)
USERS = 100  # the group of all users on some distributions


def open_to_a_group(path: Path) -> None:
    os.chown(path, 0, USERS)
    path.chmod(0o770)


def open_by_a_list(path: Path) -> None:
    path.chmod(0o770)
    os.setxattr(path, "system.posix_acl_access", LISTED)


def stolen(take: Take, hooks_too: bool = True) -> tuple[Do, Do]:
    """While no host runs, let others own or change something; nothing is written there."""

    def there(target: Target) -> dict[str, tuple[int, int, int]]:
        found = {}
        for path in (target.board, target.home.root / "there"):
            for below in (path, *path.rglob("*")):
                with contextlib.suppress(FileNotFoundError):
                    status = below.lstat()
                    found[str(below)] = (status.st_mode, status.st_size, status.st_mtime_ns)
        return found

    def do(target: Target) -> None:
        target.stop()
        target.may_end = True
        target.home.root.chmod(0o1777)  # as /tmp is
        take(target.board)
        before = there(target)
        for words in COMMANDS:
            how = {"env": target.home.env, "cwd": target.home.root, "timeout": HEAL}
            done = warm.run(["-m", "bellboard", *words], **how)
            if done.returncode != 1 or state_folder.ADVICE not in done.stderr.splitlines()[-1]:
                raise Fallen(f"`bellboard {' '.join(words)}` does not refuse: {done}")
        for shell in SHELLS if hooks_too else ():
            if shutil.which(shell.split()[0]):
                target.emit(*shell.split())
        if (after := there(target)) != before:
            raise Fallen(f"something was written there: {after.items() ^ before.items()}")

    def mend(target: Target) -> None:
        board, moved = target.board, target.home.root / "there"
        for path in (board, board / "spool", board / "spool/new") if moved.exists() else ():
            if path.is_symlink():
                path.unlink()
                moved.rename(path)
        with contextlib.suppress(OSError):
            os.removexattr(target.home.root, "system.posix_acl_access")
        target.home.root.chmod(0o700)
        for path in (target.home.root, board, *board.rglob("*")):
            os.chown(path, 0, 0)
            path.chmod(0o700 if path.is_dir() else 0o600)
        target.may_end = False
        target.start()
        target.up()

    return do, mend


def no_lists() -> str:
    """Return why there are no access control lists here, or ""."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            os.setxattr(folder, "system.posix_acl_access", LISTED)
        except OSError as error:
            return f"no access control lists in /tmp: {error.strerror}"
    return ""


def rows() -> Iterator[Fault]:
    others, made, no_folder = "to another user", "that another user made", "not a directory"
    for name, take, why, doctor in (
        ("the home", give, others, others),
        ("the home alone", own, others, others),
        ("the folder behind the home", behind_a_link("", "both"), made, others),
        ("the link to the home", behind_a_link("", "link"), made, made),
        ("the folder above, too,", with_what_is_above, others, others),
        ("spool", lambda home: give(home / "spool"), others, others),
        ("spool alone", lambda home: own(home / "spool"), others, others),
        ("the link to spool", behind_a_link("spool", "link"), no_folder, "is a link"),
        ("the folder behind spool", behind_a_link("spool", "both"), no_folder, "is a link"),
        ("spool/tmp", lambda home: give(home / "spool/tmp"), others, others),
        ("the folder behind spool/new", behind_a_link("spool/new", "folder"), no_folder, "a link"),
        ("the link to spool/new", behind_a_link("spool/new", "link"), no_folder, "is a link"),
    ):
        yield Fault(f"{name} is theirs", *stolen(take), refuses=why, doctor=doctor, folds=False)
    for name, take in (
        ("to all", lambda path: path.chmod(0o777)),
        ("to a group of several", open_to_a_group),
        *([] if no_lists() else [("by a list", open_by_a_list)]),
    ):
        why = "others may write to "
        do = stolen(above(take), hooks_too=False)
        yield Fault(f"the folder above is open {name}", *do, refuses=why, doctor=why, folds=False)


def in_place_of(name: str, make: Callable[[Path, Path], object]) -> tuple[Do, Do]:
    """Put a link to something precious, or a stranger's file, in the place of a file."""

    def do(target: Target) -> None:
        precious = target.home.root / "precious"
        precious.write_text("precious")
        with target.paused():
            target.put_aside(target.board / name)
            make(target.board / name, precious)

    def mend(target: Target) -> None:
        with target.paused():
            remove(target.board / name)
            target.put_back(target.board / name)
        if (said := (target.home.root / "precious").read_text()) != "precious":
            raise Fallen(f"{name} was written through a link: {said!r}")

    return do, mend


def link_to(path: Path, precious: Path) -> None:
    path.symlink_to(precious)


def file_of(path: Path, precious: Path) -> None:
    path.touch()
    give(path)


FILES_OF_OTHERS = tuple(
    Fault(
        f"{name} is {what}",
        *in_place_of(name, make),
        refuses=why,
        doctor=f"/{name}",
        survives=SESSIONS,
        folds=False,
    )
    for what, make, why in (
        ("a link", link_to, "a link where a file belongs"),
        ("theirs", file_of, "belongs to another user"),
    )
    for name in state_folder.FILES
)

EACH = itertools.product(LURES, ("0", "1", "PID"))
KINDS = (
    Kind(
        "stranger",
        tuple(itertools.starmap(stranger, EACH)),
        batch=len(LURES),
        lacks=no_root,
        settle=2.5,
    ),
    Kind("stolen", tuple(rows()), lacks=no_root),
    Kind("file of others", FILES_OF_OTHERS, batch=len(state_folder.FILES), lacks=no_root),
)
