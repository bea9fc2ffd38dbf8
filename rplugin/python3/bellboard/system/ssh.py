"""ssh connections: which local terminal is connected to which port, and where that is shown."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from ..core.connection import end_at, end_of
from .places import SSH, Place, place_of
from .processes import (
    CONNECTED,
    PROC,
    children_of,
    connections_elsewhere,
    descriptors,
    environment_of,
    has_proc,
    lines_of,
    owner_of,
    pids,
    program_of,
    tcp_sockets,
    tty_of,
)
from .tmux import Tmux

# Ask the kernel which two Unix sockets are connected to each other; /proc does not say.
#
# Linux answers over netlink (sock_diag), if it was built with that.


PATIENCE: Final = 1.0  # seconds; an answer takes 1 ms
CHUNK: Final = 1 << 16
LONGEST_ANSWER: Final = 4 << 20  # bytes of an answer

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
    """Return the other end of a socket, or "" if nothing shows it."""
    return peers().get(name, "")


def _dumped() -> Iterator[bytes]:
    """Yield the kernel's messages about each Unix socket."""
    asked = _ASKED.pack(UNIX, 0, 0, 0xFFFFFFFF, 0, SHOW_PEER, 0, 0)
    head = _HEAD.pack(_HEAD.size + len(asked), BY_FAMILY, REQUEST_DUMP, 1, 0)
    kind = socket.SOCK_RAW | socket.SOCK_CLOEXEC
    with socket.socket(socket.AF_NETLINK, kind, NETLINK_SOCK_DIAG) as kernel:
        kernel.settimeout(PATIENCE)
        kernel.send(head + asked)
        left = LONGEST_ANSWER
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


# ssh connections: which local terminal is connected to which port, and where that is shown.
#
# The terminal of a session on another machine names its connection in SSH_CONNECTION. The
# process here that holds the same connection is the ssh in whose terminal that session is
# shown. Nothing is guessed: behind NAT, or where several terminals share a connection, none is
# found.


PAIRED: Final = "03"  # the state of a connected socket in /proc/net/unix
MOST_CONNECTIONS: Final = 200  # connections to look at


def ends_of(pid: int) -> str:
    """Return the client's end of the connection that a process was started in, or ""."""
    return end_of(environment_of(pid, (SSH,)).get(SSH, ""))


def own() -> dict[str, int]:
    """Return this user's ssh processes that have a terminal, by the local end of their connection.

    A connection that several terminals share, or may share, is left out (ControlMaster).
    """
    held = {pid: {*descriptors(pid)} for pid in _programs()}
    holders: dict[str, list[int]] = {}
    for pid, names in held.items():
        for end in _ends(pid, names):
            holders.setdefault(end, []).append(pid)
    found = {end: _terminals(pids, held) for end, pids in holders.items()}
    single = {end: pids.pop() for end, pids in found.items() if len(pids) == 1}
    return dict([*single.items()][:MOST_CONNECTIONS])


def connection_of(pid: int) -> str:
    """Return the local end of the connection of an ssh, or "" if it shares that.

    Also of the one that a program such as sshpass has started in a terminal of its own.
    """
    meant = [pid] if _is_ssh(pid) else [*filter(_is_ssh, children_of(pid))]
    held = own() if len(meant) == 1 else {}
    return next((end for end, own_pid in held.items() if own_pid in meant), "")


def _terminals(pids: Iterable[int], held: Mapping[int, Collection[str]]) -> set[int]:
    """Return which of these processes, and of those that use their connection, have a terminal.

    Return nothing if somebody unknown uses it.
    """
    found = {pid for pid in pids if tty_of(pid)}
    for accepted in {name for pid in pids for name in _accepted(pid, held[pid])}:
        peer = peer_of(accepted)
        guest = next((pid for pid, names in held.items() if peer in names), 0) if peer else 0
        if not guest:
            return set()
        found |= {guest} if tty_of(guest) else set()
    return found


def terminal_at(pid: int) -> Place:
    """Return where the terminal of a process is shown on this machine."""
    said, pane = place_of(pid), ""
    if said.tmux.startswith("/"):
        panes = [p for p in Tmux(said.tmux).panes() or () if not p.dead]
        if own := next((p.id for p in panes if p.tty == said.tty), ""):
            return Place(said.tty, said.tmux, own)
        pane = said.pane if said.nvim and any(p.id == said.pane for p in panes) else ""
    kitty = said.kitty if not (pane or said.nvim) else ""
    return Place(said.tty, said.tmux if pane else "", pane, said.nvim, kitty)


# ---------------------------------------------------------------- reading the system


def _programs() -> Iterator[int]:
    """Yield this user's processes whose program is ssh."""
    for pid in pids():
        if _is_ssh(pid) and owner_of(pid) == os.getuid():
            yield pid


def _is_ssh(pid: int) -> bool:
    return program_of(pid).rpartition("/")[2] == "ssh"


def _ends(pid: int, held: Collection[str]) -> list[str]:
    """Return the local ends of the connections that a process holds."""
    if not has_proc():
        connected = (c.laddr for c in connections_elsewhere(pid) if c.raddr)
        return [end_at(local.ip, str(local.port)) for local in connected]
    found = []
    for (local, _), state, name in tcp_sockets(pid):
        if state == CONNECTED and name in held:
            address, _, port = local.rpartition(":")
            found.append(end_at(_address(address), str(int(port, 16))))
    return found


def _accepted(pid: int, held: Collection[str]) -> list[str]:
    """Return the sockets on which other processes use the connection of an ssh."""
    rows = (line.split() for line in lines_of(f"{PROC}/{pid}/net/unix")[1:])
    connected = (f"socket:[{row[6]}]" for row in rows if len(row) == 8 and row[5] == PAIRED)
    return [name for name in connected if name in held]


def _address(hexed: str) -> str:
    """Return an address of /proc/net/tcp, whose words are in the order of the machine."""
    words = [int(hexed[at : at + 8], 16) for at in range(0, len(hexed), 8)]
    return str(ipaddress.ip_address(struct.pack(f"={len(words)}I", *words)))
