"""Who answers a request: the first to claim it in answers/, for a few seconds."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from ..system.flocks import take
from .answers import CLAIM, FOLDER, Unusable, is_ours, opened
from .ground import briefly, listing
from .item import NAME, OPEN

COUNTS: Final = 3.0  # seconds; a claimant that has sent nothing by then has died
PATIENCE: Final = 1.0  # seconds: others hold the lock for less than a millisecond
LARGEST: Final = 4096  # bytes of a claim

_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


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
            if known is not None and abs(time.time() - known[1]) <= COUNTS:
                return known[0]
            with contextlib.suppress(FileNotFoundError):
                os.unlink(file, dir_fd=folder)
            data = msgspec.json.encode(claim)
            fd = os.open(file, _CREATE, 0o600, dir_fd=folder)
            try:
                if os.write(fd, data) < len(data):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            except OSError:
                os.unlink(file, dir_fd=folder)  # otherwise it would count as a claim
                raise
            finally:
                os.close(fd)
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
        """Return who answered the request with that digest, if that is still known."""
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
                claim = msgspec.json.decode(os.read(fd, LARGEST), type=Claim)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                claim = Claim()
            return claim, status.st_mtime
        finally:
            os.close(fd)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[int]:
        """Hold the lock of the folder, which ends with the process that holds it."""
        with opened(self._path) as folder:
            if not take(folder, PATIENCE):
                raise Unusable(f"{self._path} is locked by another process")
            yield folder


def _file(name: str) -> str:
    if not NAME.fullmatch(name):
        raise Unusable("not the name of a request")
    return f"{name}{CLAIM}"
