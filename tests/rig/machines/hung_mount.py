"""A file system that stops answering: raw FUSE, so that no library is needed.

It shows a real folder, read-only, until `hang`: then it accepts requests and answers none, like a
mount whose server is gone.  Processes that wait cannot be killed.  After `answer`, all pending
requests are answered.  Needs root and /dev/fuse.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import stat
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from rig.waiting import eventually

DEVICE: Final = Path("/dev/fuse")
BUFFER: Final = 1 << 17
IN: Final = struct.Struct("<IIQQIIII")  # length, opcode, unique, node, uid, gid, pid, padding
OUT: Final = struct.Struct("<IiQ")
ATTR: Final = struct.Struct("<6Q10I")
LOOKUP, FORGET, GETATTR, READLINK, OPEN, READ, STATFS, RELEASE = 1, 2, 3, 5, 14, 15, 17, 18
INIT, OPENDIR, READDIR, RELEASEDIR, ACCESS, INTERRUPT, BATCH_FORGET = 26, 27, 28, 29, 34, 36, 42
SILENT: Final = frozenset((FORGET, INTERRUPT, BATCH_FORGET))  # no answer is expected
DETACH: Final = 2


class HungMount:
    """Shows `source` at `place`; `hang` and `answer` switch it."""

    def __init__(self, source: Path, place: Path) -> None:
        if not DEVICE.exists() or os.geteuid() != 0:
            pytest.skip("this needs root and /dev/fuse")
        self.source, self.place = source, place
        place.mkdir(exist_ok=True)
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC)
        how = f"fd={self._fd},rootmode=40000,user_id=0,group_id=0,allow_other"
        names = b"hung", os.fsencode(place), b"fuse.hung"
        if self._libc.mount(*names, 0, how.encode()) != 0:
            os.close(self._fd)
            pytest.skip(f"no FUSE here: {os.strerror(ctypes.get_errno())}")
        self._nodes: list[Path] = [source, source]  # by node number; 1 is the root
        self._lock = threading.Lock()
        self._hangs = False
        self._unanswered: list[bytes] = []
        self._end, self._tell_end = os.pipe()
        self._thread = threading.Thread(target=self._serve, name="hung mount", daemon=True)
        self._thread.start()

    @property
    def asked(self) -> int:
        """Return how many requests wait for an answer."""
        return len(self._unanswered)

    def hang(self) -> None:
        """Accept requests without answering."""
        with self._lock:
            self._hangs = True

    def is_asked(self) -> None:
        """Wait until a request hangs."""
        eventually(lambda: self._unanswered, "a request that hangs")

    def answer(self) -> None:
        """Answer again, including pending requests."""
        with self._lock:
            self._hangs = False
            waiting, self._unanswered = self._unanswered, []
            for request in waiting:
                self._reply(request)

    def close(self) -> None:
        """Unmount it: pending requests get an error."""
        self._libc.umount2(os.fsencode(self.place), DETACH)
        os.write(self._tell_end, b"x")
        self._thread.join()
        for fd in (self._fd, self._end, self._tell_end):
            os.close(fd)

    # ------------------------------------------------------------ the protocol

    def _serve(self) -> None:
        while True:
            ready, _, _ = select.select([self._fd, self._end], [], [])
            if self._end in ready:
                return
            try:
                request = os.read(self._fd, BUFFER)
            except OSError as error:
                if error.errno == errno.ENODEV:  # unmounted
                    return
                continue  # it was interrupted before it was read
            with self._lock:
                opcode = IN.unpack_from(request)[1]
                if opcode in SILENT:
                    continue
                if self._hangs and opcode not in (RELEASE, RELEASEDIR):
                    self._unanswered.append(request)
                else:
                    self._reply(request)

    def _reply(self, request: bytes) -> None:
        _, opcode, unique, node, *_ = IN.unpack_from(request)
        body, code = b"", 0
        try:
            answers: dict[int, Callable[[int, bytes], bytes]] = {
                INIT: self._init,
                LOOKUP: self._lookup,
                GETATTR: lambda node, _: struct.pack("<QII", 0, 0, 0) + self._attr(node),
                READLINK: lambda node, _: os.fsencode(self._nodes[node].readlink()),
                OPEN: lambda *_: struct.pack("<QII", 0, 1, 0),  # without caching
                OPENDIR: lambda *_: struct.pack("<QII", 0, 0, 0),
                READ: self._read,
                READDIR: self._readdir,
                STATFS: lambda *_: bytes(80),
                RELEASE: lambda *_: b"",
                RELEASEDIR: lambda *_: b"",
                ACCESS: lambda *_: b"",
            }
            if opcode not in answers:
                raise OSError(errno.ENOSYS, "")
            body = answers[opcode](node, request[IN.size :])
        except OSError as error:
            code = -(error.errno or errno.EIO)
        try:
            os.write(self._fd, OUT.pack(OUT.size + len(body), code, unique) + body)
        except OSError:  # the requester was killed meanwhile
            return

    def _init(self, _: int, given: bytes) -> bytes:
        _, minor = struct.unpack_from("<II", given)
        return struct.pack("<IIIIHHII", 7, min(minor, 31), 0, 0, 12, 9, 1 << 16, 1) + bytes(32)

    def _lookup(self, node: int, given: bytes) -> bytes:
        path = self._nodes[node] / os.fsdecode(given.rstrip(b"\0"))
        path.lstat()
        if path not in self._nodes:
            self._nodes.append(path)
        number = self._nodes.index(path)
        return struct.pack("<QQQQII", number, 0, 0, 0, 0, 0) + self._attr(number)

    def _attr(self, node: int) -> bytes:
        s = self._nodes[node].lstat()
        times = tuple(int(t) for t in (s.st_atime, s.st_mtime, s.st_ctime))
        nanos = tuple(t % 10**9 for t in (s.st_atime_ns, s.st_mtime_ns, s.st_ctime_ns))
        rest = s.st_mode, s.st_nlink, s.st_uid, s.st_gid, 0, 4096, 0
        return ATTR.pack(node, s.st_size, s.st_blocks, *times, *nanos, *rest)

    def _read(self, node: int, given: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", given)
        with self._nodes[node].open("rb") as file:
            file.seek(offset)
            return file.read(size)

    def _readdir(self, node: int, given: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", given)
        out = b""
        names = sorted(os.listdir(self._nodes[node]))  # noqa: PTH208 - names, not paths
        for at, name in enumerate(names[offset:], offset + 1):
            raw = os.fsencode(name)
            kind = stat.S_IFMT((self._nodes[node] / name).lstat().st_mode) >> 12
            entry = struct.pack("<QQII", 1000 + at, at, len(raw), kind) + raw
            entry += bytes(-len(entry) % 8)
            if len(out) + len(entry) > size:
                break
            out += entry
        return out
