"""Ask the kernel which two Unix sockets are connected to each other; /proc does not say.

Linux answers over netlink (sock_diag), if it was built with that.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator
from typing import Final

PATIENCE: Final = 1.0  # seconds; an answer takes 1 ms
CHUNK: Final = 1 << 16
MOST: Final = 4 << 20  # bytes of an answer

# From <linux/netlink.h>, <linux/sock_diag.h> and <linux/unix_diag.h>.
NETLINK_SOCK_DIAG: Final = 4
BY_FAMILY, FAILED, DONE, UNIX = 20, 2, 3, 1
REQUEST_DUMP: Final = 0x301
SHOW_PEER, PEER = 0x4, 2
_HEAD: Final = struct.Struct("=IHHII")  # length, type, flags, sequence, port
_ASKED: Final = struct.Struct("=BBHIIIII")  # family, protocol, -, states, inode, show, cookie
_TOLD: Final = struct.Struct("=BBBBIII")  # family, type, state, -, inode, cookie
_ATTRIBUTE: Final = struct.Struct("=HH")  # length, type


def peers() -> dict[str, str]:
    """Return the other end of each socket such as `socket:[4711]`, as far as that is known."""
    found: dict[str, str] = {}
    with contextlib.suppress(OSError, AttributeError, struct.error):
        for inode, peer in _pairs(_dumped()):
            found[f"socket:[{inode}]"] = f"socket:[{peer}]"
    return found


def peer_of(name: str) -> str:
    """Return the other end of one, or "" if that is not known."""
    return peers().get(name, "")


def _dumped() -> Iterator[bytes]:
    """Yield the kernel's messages about each Unix socket."""
    asked = _ASKED.pack(UNIX, 0, 0, 0xFFFFFFFF, 0, SHOW_PEER, 0, 0)
    head = _HEAD.pack(_HEAD.size + len(asked), BY_FAMILY, REQUEST_DUMP, 1, 0)
    kind = socket.SOCK_RAW | socket.SOCK_CLOEXEC
    with socket.socket(socket.AF_NETLINK, kind, NETLINK_SOCK_DIAG) as kernel:
        kernel.settimeout(PATIENCE)
        kernel.send(head + asked)
        left = MOST
        while left > 0:
            data = kernel.recv(CHUNK)
            left -= len(data)
            while len(data) >= _HEAD.size:
                length, told, *_ = _HEAD.unpack_from(data)
                if told in (DONE, FAILED) or length < _HEAD.size:
                    return
                yield data[_HEAD.size : length]
                data = data[_aligned(length) :]


def _pairs(messages: Iterator[bytes]) -> Iterator[tuple[int, int]]:
    """Yield the inode of each connected socket, and that of its peer."""
    for message in messages:
        inode, at = _TOLD.unpack_from(message)[4], _TOLD.size
        while at + _ATTRIBUTE.size <= len(message):
            length, kind = _ATTRIBUTE.unpack_from(message, at)
            if kind == PEER and length == _ATTRIBUTE.size + 4:
                yield inode, struct.unpack_from("=I", message, at + _ATTRIBUTE.size)[0]
            at += max(_aligned(length), _ATTRIBUTE.size)


def _aligned(length: int) -> int:
    return (length + 3) & ~3
