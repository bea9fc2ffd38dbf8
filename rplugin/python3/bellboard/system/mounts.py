"""Find the file system of a path in the kernel's mount table, without touching the file system."""

from __future__ import annotations

import contextlib
import os
import re
import select
import threading
from pathlib import Path
from typing import Final, NamedTuple

TABLE: Final = "/proc/self/mountinfo"
#: Changes by other machines cannot be watched, and there is no shared memory for SQLite's WAL.
NETWORK: Final = frozenset(
    (
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "virtiofs", "ceph", "glusterfs", "lustre"),
        *("gpfs", "afs", "davfs", "drvfs", "vboxsf", "fuse.vmhgfs-fuse", "fuse.sshfs"),
        *("fuse.rclone", "fuse.s3fs", "fuse.grpcfuse", "fuse.osxfs", "fuse.glusterfs"),
        *("afpfs", "webdav", "osxfuse", "macfuse"),  # of macOS
    )
)
MOST_LINKS: Final = 40  # the kernel's own limit

_ESCAPED: Final = re.compile(rb"\\([0-7]{3})")


class Mount(NamedTuple):
    """A line of the mount table."""

    place: str
    kind: str
    device: int

    @property
    def may_hang(self) -> bool:
        """Return whether a program or another machine serves it."""
        return self.kind in NETWORK or self.kind == "autofs" or self.is_fuse

    @property
    def is_fuse(self) -> bool:
        """Return whether a program serves it: a process that waits for it cannot be killed."""
        return self.kind.startswith("fuse") or self.kind in ("virtiofs", "9p")


class Mounts:
    """The mount table, read again when the kernel reports a change; it stays open."""

    def __init__(self, table: str = TABLE) -> None:
        self._table = table
        self._poll: select.poll | None = None
        self._one = threading.Lock()  # used from several threads
        self._kinds: dict[int, str] = {}
        self._hanging: dict[str, Mount] = {}

    def kind(self, device: int) -> str:
        """Return the file system type of a device, or "" if the system does not say."""
        self._renew()
        return self._kinds.get(device, "")

    def hanging(self, path: str) -> Mount | None:
        """Return the mount that a path leads to, if that mount may hang.

        Links are followed one by one, so that the mount itself is never touched.  The root never
        counts: nothing works if that hangs.
        """
        self._renew()
        if not self._hanging or not path.startswith("/") or "\0" in path:
            return None
        rest, here, links = path.split("/")[::-1], "", 0
        while rest:
            name = rest.pop()
            if name in ("", "."):
                continue
            if name == "..":
                here = here.rpartition("/")[0]
                continue
            here = f"{here}/{name}"
            if here in self._hanging:
                return self._hanging[here]
            with contextlib.suppress(OSError, ValueError):
                target = os.readlink(here)  # noqa: PTH115 - a string, as in the table
                links += 1
                if links > MOST_LINKS:
                    return None
                here = "" if target.startswith("/") else here.rpartition("/")[0]
                rest += target.split("/")[::-1]
        return None

    def inside(self, folder: str) -> Mount | None:
        """Return a mount below a folder that may hang; the folder itself may be on one."""
        self._renew()
        if not self._hanging:
            return None
        below = f"{os.path.realpath(folder).rstrip('/')}/"
        return next((m for m in self._hanging.values() if m.place.startswith(below)), None)

    def _renew(self) -> None:
        with self._one:
            try:
                if self._poll is not None and not self._poll.poll(0):
                    return
                if self._poll is None and self._table == TABLE:
                    fd = os.open(TABLE, os.O_RDONLY | os.O_CLOEXEC)
                    self._poll = select.poll()
                    self._poll.register(fd, select.POLLPRI)
                mounts = read(self._table)
            except OSError:  # not Linux, or no descriptors are allowed: what is known still counts
                return
            self._kinds = {mount.device: mount.kind for mount in mounts}
            last = {mount.place: mount for mount in mounts}  # a later mount hides earlier ones
            self._hanging = {place: mount for place, mount in last.items() if mount.may_hang}


#: The table of this system, one for the whole process.
MOUNTS: Final = Mounts()


def near(name: str, path: str) -> str | None:
    """Return a program on a PATH, not looked for where that may hang, or in a relative folder.

    A relative one is wherever we are, such as in a repository that somebody else wrote.  A name
    that is a path itself is taken as it is.
    """
    import shutil

    if "/" in name:
        return shutil.which(name)
    folders = (d for d in path.split(os.pathsep) if d.startswith("/"))
    near = (d for d in folders if not MOUNTS.hanging(f"{d}/{name}"))
    return shutil.which(name, path=os.pathsep.join(near))


def read(table: str = TABLE) -> list[Mount]:
    """Read the table; raise OSError if the system has none."""
    found: list[Mount] = []
    for row in Path(table).read_bytes().split(b"\n"):  # a name may hold any other end of line
        head, _, tail = row.partition(b" - ")
        fields = head.split(b" ")
        if len(fields) > 4 and fields[2].count(b":") == 1:
            major, minor = fields[2].split(b":")
            place = _ESCAPED.sub(lambda m: bytes([int(m[1], 8) & 0xFF]), fields[4])
            kind = tail.split(b" ")[0].decode("utf-8", "replace")  # who mounts it may choose it
            device = os.makedev(int(major), int(minor))
            found.append(Mount(os.fsdecode(place), kind, device))
    return found


def network_of(path: Path, table: str = TABLE) -> str:
    """Return the network file system that a path is on, or "" if it is local or unknown."""
    try:
        device = path.stat().st_dev
        kind = {mount.device: mount.kind for mount in read(table)}.get(device, "")
    except OSError:  # no such path, or not Linux
        kind = "" if Path(TABLE).exists() else _kind_elsewhere(path)
    return kind if kind in NETWORK else ""


def _kind_elsewhere(path: Path) -> str:
    """Return the type of a file system as psutil knows it, which does not touch the mounts."""
    try:
        import psutil

        mounts = {m.mountpoint.rstrip("/"): m.fstype for m in psutil.disk_partitions(all=True)}
        place = path.resolve()
    except (OSError, ImportError, RuntimeError):
        return ""
    return next(
        (mounts[here] for p in (place, *place.parents) if (here := str(p).rstrip("/")) in mounts),
        "",
    )
