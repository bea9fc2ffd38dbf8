"""Describe failures in words for users, never by a Python class."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Final

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


SHORTEST: Final = 1.0  # seconds from one try to the next
LONGEST = 60.0  # seconds; the longest such pause, but for the jitter
SOONEST: Final = 0.1  # seconds until the next try, if the last one took longer than that


def apart(down: float, share: float) -> float:
    """Return the seconds from one try to the next, after `down` seconds without success.

    They are a part of that time, with jitter.  So what is down for long is tried rarely, and yet is
    found soon, compared with the time for which it was down.
    """
    return min(max(down / share, SHORTEST), LONGEST) * random.uniform(0.75, 1.25)


def pause(begun: float, now: float, since: float, share: float) -> float:
    """Return the seconds to wait after a try that began then; it has failed since `since`."""
    return max(begun + apart(now - since, share) - now, SOONEST)
