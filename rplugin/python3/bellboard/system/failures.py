"""Failures: their words for users, never a Python class, and the pauses until the next try."""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path
from typing import Final

from msgspec import Struct

from ..core.text import line

ROOM: Final = 300  # characters of a reason
OURS: Final = __name__.partition(".")[0]  # the package whose exceptions have a text for users

#: How messages of SQLite begin, in lower case.
DATABASE: Final = {
    "database or disk is full": "no space left on the disk",
    "disk i/o error": "the disk reports an error",
    "attempt to write a readonly": "it is read-only",
    "unable to open": "its file cannot be opened",
    "database is locked": "another process has locked it",
    "database disk image": "its file is damaged",
    "file is not a database": "its file is damaged",
    "string or blob too big": "a value is too large for it",
}
KINDS: Final = (
    (MemoryError, "not enough memory"),
    (RecursionError, "it is nested too deeply"),
    (UnicodeError, "its text is not valid UTF-8"),
    (TimeoutError, "no answer in time"),
)


class Declined(Exception):
    """The request was not carried out; the text says why."""


def described(error: BaseException) -> str:
    """Describe an error in one line; one that nobody expected with where it was raised."""
    return line(_known(error), ROOM) or _unexpected(error)


def is_ours(error: BaseException) -> bool:
    """Return whether it is one of our own, whose text is for the user."""
    return type(error).__module__.partition(".")[0] == OURS


def _known(error: BaseException) -> str:
    text, of = str(error), type(error).__module__.partition(".")[0]
    if is_ours(error):
        return text
    if isinstance(error, OSError) and (error.strerror or text):
        about = "" if error.filename is None else f": {_path(error.filename)}"
        return f"{error.strerror or text}{about}"
    if of == "sqlite3":
        low = text.lower()
        return next((x for start, x in DATABASE.items() if low.startswith(start)), text)
    if of == "msgspec":
        return f"it cannot be read: {text}"
    return next((said for kind, said in KINDS if isinstance(error, kind)), "")


def _unexpected(error: BaseException) -> str:
    where, trace = "", error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        where = f" ({Path(code.co_filename).name}:{trace.tb_lineno})"
        trace = trace.tb_next
    return line(f"internal error: {error}", ROOM) + where


def _path(name: object) -> str:
    if isinstance(name, bytes):
        return name.decode(sys.getfilesystemencoding(), "replace")
    return str(name)


# How long to wait before something that failed is tried again.


class Backoff(Struct):
    """Pauses between tries: a part of the time for which something fails, with jitter.

    So what fails for long is tried rarely, and yet is found well soon, compared with that time.
    With a `share` of 1, the pauses double.
    """

    first: float  # seconds; no pause is shorter
    longest: float
    share: float = 1.0  # part of the time for which it fails
    jitter: float = 0.0  # a pause may be so much longer or shorter
    times: int = 0  # failures in a row
    since: float = 0.0  # when it began to fail, of `time.monotonic`
    until: float = 0.0  # when to try again

    @property
    def is_waiting(self) -> bool:
        """Return whether it is too early to try again."""
        return time.monotonic() < self.until

    def fail(self, least: float = 0.0) -> float:
        """Note a failure; return the seconds until the next try, at least so many."""
        now = time.monotonic()
        if not self.times:
            self.since = now
        self.times += 1
        pause = min(max((now - self.since) / self.share, self.first), self.longest)
        pause = max(pause * random.uniform(1 - self.jitter, 1 + self.jitter), least)
        self.until = now + pause
        return pause

    def succeed(self) -> None:
        """Note a success."""
        self.times, self.until = 0, 0.0
