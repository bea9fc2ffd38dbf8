"""On which kind of file system something lies, from the kernel's table of mounts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

TABLE: Final = "/proc/self/mountinfo"
#: What other machines change too: no notification of that, no shared memory for SQLite's WAL.
NETWORK: Final = frozenset(
    (
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "virtiofs", "ceph", "glusterfs", "lustre"),
        *("gpfs", "afs", "davfs", "drvfs", "vboxsf", "fuse.vmhgfs-fuse", "fuse.sshfs"),
        *("fuse.rclone", "fuse.s3fs", "fuse.grpcfuse", "fuse.osxfs", "fuse.glusterfs"),
    )
)


def kinds(table: str = TABLE) -> dict[int, str]:
    """The kind of file system on each device; OSError where the system does not say."""
    found: dict[int, str] = {}
    for line in Path(table).read_text(errors="replace").splitlines():
        head, _, tail = line.partition(" - ")
        major, minor = head.split(" ", 3)[2].split(":")
        found[os.makedev(int(major), int(minor))] = tail.partition(" ")[0]
    return found


def network_of(path: Path, table: str = TABLE) -> str:
    """The network file system that this is on; empty if it is local, or the system does not say."""
    try:
        kind = kinds(table).get(path.stat().st_dev, "")
    except OSError:  # not there, not Linux
        return ""
    return kind if kind in NETWORK else ""
