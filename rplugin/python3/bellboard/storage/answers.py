"""The folder answers/: what is asked, who answers it, and the pipes on which hooks wait.

    answers/NAME                the event that asked, while its question is open (`questions.py`)
    answers/NAME.answer         who answers it (`claims.py`)
    answers/PID.SERIAL          a pipe on which the hook that asked waits (`pipes.py`)
    answers/PID.SERIAL.taken    whose hook has taken that pipe, so that no other waits on it: NAME
    answers/PID.SERIAL.reply    the answer, for a few seconds

Only we may write to it.  A file in it that is not ours, or not what its name says, is not used.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from typing import Final

FOLDER: Final = "answers"
CLAIM: Final = ".answer"
TAKEN: Final = ".taken"
REPLY: Final = ".reply"

_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Unusable(OSError):
    """The folder, or a file in it, is not what it should be; the text says why."""


def is_ours(status: os.stat_result) -> bool:
    """Return whether a file belongs to us."""
    return status.st_uid == os.geteuid()


def write(folder: str, name: str, data: bytes) -> None:
    """Write a file in a folder of ours, instead of any that has this name."""
    with opened(folder) as inside:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=inside)
        fd = os.open(name, _CREATE, 0o600, dir_fd=inside)
        try:
            while data:
                data = data[os.write(fd, data) :]
        except OSError:
            os.unlink(name, dir_fd=inside)
            raise
        finally:
            os.close(fd)


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
