"""The folder answers/: what is asked, who answers it, and the pipes on which hooks wait.

    answers/NAME                the event that asked, while its question is open (`Questions`)
    answers/NAME.answer         who answers it (`Claims`)
    answers/PID.SERIAL          a pipe on which the hook that asked waits (`Pipes`)
    answers/PID.SERIAL.taken    whose hook has taken that pipe, so that no other waits on it: NAME
    answers/PID.SERIAL.reply    the answer, for a few seconds

Only we may write to it.  A file in it that is not ours, or not what its name says, is not used.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import stat
import time
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from ..system.files import created
from ..system.locks import lock_folder
from .event_file import NAME, OPEN, Item, read_item
from .state_folder import briefly, is_event, is_pipe, listing

FOLDER: Final = "answers"
CLAIM: Final = ".answer"
TAKEN: Final = ".taken"
REPLY: Final = ".reply"

_OPEN: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Unusable(OSError):
    """The folder answers/, or a file in it, cannot be used; the text says why."""


def is_ours(status: os.stat_result) -> bool:
    """Return whether a file belongs to us."""
    return status.st_uid == os.geteuid()


def write(folder: str, name: str, data: bytes) -> None:
    """Write a file in a folder of ours, instead of any that has this name."""
    with opened(folder) as inside:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=inside)
        with created(name, data, inside):
            pass


@contextlib.contextmanager
def opened(path: str) -> Iterator[int]:
    """Open the folder; raise `Unusable` if somebody else could put something into it."""
    try:
        folder = os.open(path, _OPEN)
    except NotADirectoryError:
        raise Unusable(f"{path} is a link or a file; remove it") from None
    except OSError as error:
        raise Unusable(f"{path}: {error.strerror}") from None
    try:
        status = os.fstat(folder)
        if not is_ours(status) or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise Unusable(f"others may write to {path}; make it private")
        yield folder
    finally:
        os.close(folder)


# Who answers a request: the first to claim it in answers/, for a few seconds.


CLAIM_COUNTS: Final = 3.0  # seconds; a claimant that has sent nothing by then has died
CLAIM_PATIENCE: Final = 1.0  # seconds: others hold the lock for less than a millisecond
LARGEST_CLAIM: Final = 4096  # bytes of a claim


class Claim(Struct, frozen=True):
    """Who answers a request, and how."""

    by: str = "somebody"
    t: float = 0.0
    choice: str = ""
    pid: int = 0
    digest: str = ""


class Claims:
    """All claims in a state folder."""

    def __init__(self, home: Path) -> None:
        self._path = f"{home}/{FOLDER}"

    def claim(self, name: str, claim: Claim) -> Claim | None:
        """Claim a request, or return the claim of somebody else that counts."""
        file = _file(name)
        with self._locked() as folder:
            known = self._known(folder, file)
            if known is not None and abs(time.time() - known[1]) <= CLAIM_COUNTS:
                return known[0]
            with contextlib.suppress(FileNotFoundError):
                os.unlink(file, dir_fd=folder)
            with created(file, msgspec.json.encode(claim), folder):
                pass  # one that was cut would count as a claim
        return None

    def renew(self, name: str, claim: Claim) -> bool:
        """Let a claim count for longer; return False if it is no longer ours."""
        file = _file(name)
        with self._locked() as folder:
            known = self._known(folder, file)
            if known is None or known[0] != claim:
                return False
            os.utime(file, dir_fd=folder, follow_symlinks=False)
        return True

    def release(self, name: str, claim: Claim) -> None:
        """Withdraw a claim: that answer did not count."""
        file = _file(name)
        with self._locked() as folder:
            known = self._known(folder, file)
            if known is not None and known[0] == claim:
                os.unlink(file, dir_fd=folder)

    def claimed(self, name: str) -> Claim | None:
        """Return who answered a request last."""
        with contextlib.suppress(OSError), opened(self._path) as folder:
            known = self._known(folder, _file(name))
            return known[0] if known else None
        return None

    def of(self, digest: str) -> Claim | None:
        """Return who answered the request with that digest; None if nothing records it any more."""
        with contextlib.suppress(OSError), opened(self._path) as folder:
            for file in briefly(listing(self._path)):
                known = self._known(folder, file) if file.endswith(CLAIM) else None
                if known and known[0].digest == digest:
                    return known[0]
        return None

    def _known(self, folder: int, file: str) -> tuple[Claim, float] | None:
        """Return a claim and when it was made; one that cannot be read counts as well."""
        try:
            fd = os.open(file, OPEN, dir_fd=folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno == errno.ELOOP:  # a link: not ours
                return None
            raise
        try:
            status = os.fstat(fd)
            if stat.S_ISDIR(status.st_mode):
                raise Unusable(f"{self._path}/{file} is a directory; remove it")
            if not stat.S_ISREG(status.st_mode) or not is_ours(status):
                return None
            try:
                claim = msgspec.json.decode(os.read(fd, LARGEST_CLAIM), type=Claim)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                claim = Claim()
            return claim, status.st_mtime
        finally:
            os.close(fd)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[int]:
        """Hold the lock of the folder, which ends with the process that holds it."""
        with opened(self._path) as folder:
            if not lock_folder(folder, CLAIM_PATIENCE):
                raise Unusable(f"{self._path} is locked by another process")
            yield folder


def _file(name: str) -> str:
    if not NAME.fullmatch(name):
        raise Unusable("not the name of a request")
    return f"{name}{CLAIM}"


# The events that asked, in answers/ (`answers.py`) while their question is open.


# ruff: noqa: PTH104, PTH108
# Paths are strings here, as in spool.py.


#: The most that is kept; people answer a few, of some kB.
KEPT_FILES: Final = 1000
KEPT_BYTES: Final = 64 << 20
KEPT_AGE: Final = 10.0  # seconds until a file that no question needs was left by a killed host


class Questions:
    """The events that are kept in a folder."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def read(self, name: str) -> Item | None:
        """Read an event by the rules of the spool; return None if it is not kept."""
        return read_item(self._folder, name)

    def holds(self, name: str) -> bool:
        """Return whether an event is kept."""
        return os.path.lexists(f"{self._folder}/{name}")

    def keep(self, path: str, name: str) -> None:
        """Move the file of an event here."""
        os.rename(path, f"{self._folder}/{name}")

    def drop(self, names: Iterable[str]) -> None:
        """Remove the events of questions that are no longer open."""
        for name in names:
            if NAME.fullmatch(name) is not None:
                with contextlib.suppress(OSError):  # `drop_all_but` tries again
                    os.unlink(f"{self._folder}/{name}")

    def drop_all_but(self, standing: Collection[str]) -> None:
        """Remove files that killed hosts left in answers/."""
        old = time.time() - KEPT_AGE
        for name in briefly(listing(self._folder)):
            if name not in standing and is_event(name.removesuffix(CLAIM)):
                with contextlib.suppress(OSError):
                    status = os.lstat(path := f"{self._folder}/{name}")
                    if stat.S_ISREG(status.st_mode) and status.st_ctime < old:
                        os.unlink(path)

    def drop_oldest(self) -> None:
        """Keep no more than the newest events."""
        found: list[tuple[int, int, str]] = []
        for name in listing(self._folder):
            if is_event(name):
                with contextlib.suppress(OSError):
                    status = os.lstat(f"{self._folder}/{name}")
                    found.append((status.st_mtime_ns, status.st_size, name))
        files = size = 0
        for _, length, name in sorted(found, reverse=True):
            if files + 1 > KEPT_FILES or size + length > KEPT_BYTES:
                self.drop([name])
            else:
                files, size = files + 1, size + length


# The pipes on which the hooks of permissions wait for their answers.
#
# A host offers pipes in answers/ (`answers.py`), and a hook takes one: its mark names the
# event. The header of that event names the pipe, its `pipe`. A host holds the write end of
# those it offers, and of those whose question it shows, so that reading ends once the last such
# host is gone.
#
# A pipe only wakes its hook. Linux lets any process of ours that sees it write into it, even
# where the folder is mounted read-only, as in a sandbox. So what the hook obeys is a file
# beside it, which only a host can make. It says which event it answers, then in one line what
# to print, then what that event asks, byte for byte: the hook prints nothing that was meant for
# anything else. A hook whose mark is gone leaves.
#
# Nothing here waits for a hook: no open and no write blocks.


# ruff: noqa: PTH108
# Paths are strings here, as in spool.py.


WAKE: Final = b"\n"
REPLY_COUNTS: Final = (
    10.0  # seconds; the host that wrote an older reply has died before it took it back
)
LARGEST_MARK: Final = 256  # bytes of a mark
_WRITE: Final = os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_BOTH: Final = os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


class Pipes:
    """The pipes in a folder; this process holds the write ends of `held`."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._held: dict[str, int] = {}

    @property
    def held(self) -> frozenset[str]:
        return frozenset(self._held)

    def offer(self) -> None:
        """Make a pipe for a hook to take, and hold it."""
        name = f"{os.getpid()}.{time.time_ns()}"
        path = self._path(name)
        os.mkfifo(path, 0o600)
        try:
            both = os.open(path, _BOTH)  # without a reader, it cannot be opened for writing only
            try:
                self._held[name] = os.open(path, _WRITE)
            finally:
                os.close(both)
        except OSError:
            self.remove(name)
            raise

    def hold(self, name: str) -> bool:
        """Keep a hook waiting even if the host that offered its pipe ends; return if one waits."""
        if name not in self._held:
            if (fd := self._open(name)) is None:
                return False
            self._held[name] = fd
        return True

    def is_read(self, name: str) -> bool:
        """Return whether a hook waits on a pipe."""
        fd = self._open(name)
        if fd is not None:
            os.close(fd)
        return fd is not None

    def owner(self, name: str) -> str:
        """Return the name of the event whose hook has taken a pipe, or ""."""
        mark = self._read(f"{name}{TAKEN}", LARGEST_MARK) if is_pipe(name) else b""
        return mark.decode("ascii", "replace").removesuffix("\n")

    def send(self, name: str, event: str, asks: bytes, line: bytes) -> bool:
        """Write the answer to what an event asks, and wake its hook; return whether it waits."""
        data = _reply(event, asks, line)
        if self.owner(name) != event or not self.is_read(name):
            return False
        write(self._folder, f"{name}{REPLY}", data)
        return self._wake(name)

    def take_back(self, name: str, event: str, asks: bytes, line: bytes) -> None:
        """Remove an answer: a hook that has not obeyed it yet never will."""
        data, path = _reply(event, asks, line), f"{name}{REPLY}"
        if self._read(path, len(data) + 1) == data:
            self._unlink(path)

    def dismiss(self, name: str) -> None:
        """Send away the hook that waits, if any, and remove the pipe."""
        fd = self._open(name)
        self.remove(name)
        if fd is not None:
            _write(fd)

    def remove(self, name: str) -> None:
        """Remove a pipe."""
        self.let_go(name)
        if is_pipe(name):
            for mark in (REPLY, TAKEN, ""):
                self._unlink(f"{name}{mark}")

    def let_go(self, name: str) -> None:
        """No longer hold a pipe; others may."""
        if (fd := self._held.pop(name, None)) is not None:
            os.close(fd)

    def found(self) -> dict[str, bool]:
        """Return all pipes, and whether a hook has taken them."""
        names = listing(self._folder)
        taken = {name.removesuffix(TAKEN) for name in names if name.endswith(TAKEN)}
        pipes = {*taken, *(name.removesuffix(REPLY) for name in names)}
        return {name: name in taken for name in pipes if is_pipe(name)}

    def expire(self) -> float:
        """Remove the answers that killed hosts left; return the seconds until the next is old."""
        wait = math.inf
        for name in listing(self._folder):
            if name.endswith(REPLY):
                with contextlib.suppress(OSError):
                    age = time.time() - os.lstat(self._path(name)).st_mtime
                    if 0.0 <= age < REPLY_COUNTS:
                        wait = min(wait, REPLY_COUNTS - age)
                    else:
                        os.unlink(self._path(name))
        return wait

    def _wake(self, name: str) -> bool:
        """Wake a hook; return whether it waits."""
        fd = self._open(name)
        return fd is not None and _write(fd)

    def _read(self, name: str, most: int) -> bytes:
        """Read a file of ours; return b"" if it is anything else."""
        try:
            fd = os.open(self._path(name), OPEN)
        except OSError:
            return b""
        with os.fdopen(fd, "rb") as file:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode) or not is_ours(status):
                return b""
            return file.read(most)

    def _unlink(self, name: str) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._path(name))

    def _open(self, name: str) -> int | None:
        """Open a pipe to write; return None if nobody reads it, or it is not ours."""
        if not is_pipe(name):
            return None
        try:
            fd = os.open(self._path(name), _WRITE)
        except OSError:
            return None
        status = os.fstat(fd)
        if stat.S_ISFIFO(status.st_mode) and is_ours(status):
            return fd
        os.close(fd)
        return None

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}"


def _write(fd: int) -> bool:
    """Wake whoever reads a pipe, and close it; return whether somebody does."""
    try:
        os.write(fd, WAKE)
    except OSError as error:  # EAGAIN: it is full, so its hook is awake
        return error.errno == errno.EAGAIN
    finally:
        os.close(fd)
    return True


def _reply(event: str, asks: bytes, line: bytes) -> bytes:
    """Return an answer as its hook reads it: no shell keeps a NUL, or newlines at the end."""
    if not line or b"\n" in line or b"\0" in line:
        raise ValueError("an answer is one line of text")
    return b"\n".join((event.encode(), line, asks.replace(b"\0", b"").rstrip(b"\n"), b""))
