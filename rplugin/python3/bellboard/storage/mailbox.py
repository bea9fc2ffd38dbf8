"""Requests to another machine: a file for each, and one for its reply.

Any program of ours may ask; the host that keeps the link passes it on (`machines.py` names the
files).  A file appears by rename, so it is whole; its reader removes it, or it expires.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from ..system.files import decoded, put, read
from . import machines
from .aside import remove
from .contents import is_letter
from .ground import listing
from .item import OF_THE_SYSTEM

OLD: Final = 60.0  # seconds after which nobody waits for a file
LARGEST: Final = 1 << 20  # bytes

_NAME: Final = re.compile(r"[0-9]{1,20}\.[0-9]{1,10}\.[0-9]{1,10}")
_serial = itertools.count()


class Mailbox:
    """The requests to one machine, and its replies."""

    def __init__(self, home: Path, machine: str) -> None:
        folder = machines.prepare(home, machine)
        self.asked, self.replied = folder / "ask", folder / "reply"

    # ------------------------------------------------------------ who asks

    def ask(self, request: Mapping[str, Any]) -> str:
        """Ask for something; return the name of the request.  Raise OSError or ValueError."""
        data = msgspec.json.encode(request)
        if len(data) > LARGEST // 2:
            raise ValueError(f"a request of {len(data)} bytes is too long")
        name = f"{time.time_ns()}.{os.getpid()}.{next(_serial)}"
        put(self.asked / name, data)
        return name

    def take_reply(self, name: str) -> dict[str, Any] | None:
        """Return the reply and remove it; None while there is none."""
        return _take(self.replied / name)

    def withdraw(self, name: str) -> bool:
        """Take a request back; return False if somebody has read it already."""
        with contextlib.suppress(OSError):
            (self.asked / name).unlink()
            return True
        return False

    # ------------------------------------------------------------ who keeps the link

    def take(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the requests that wait, oldest first; remove them, and whatever has expired."""
        with contextlib.suppress(OSError):
            self._sweep()
        for name in _names(self.asked):
            request = _take(self.asked / name)
            if request is not None:
                yield name, request

    def reply(self, name: str, reply: Mapping[str, Any]) -> None:
        """Reply to a request."""
        with contextlib.suppress(OSError):  # the asker gives up after a while
            put(self.replied / name, msgspec.json.encode(reply))

    def _sweep(self) -> None:
        """Remove what nobody is waiting for."""
        for folder in (self.asked, self.replied):
            for name in filter(is_letter, listing(folder)):
                with contextlib.suppress(OSError):
                    if (folder / name).lstat().st_mtime < time.time() - OLD:
                        remove(f"{folder}/{name}")


def _names(folder: Path) -> list[str]:
    with contextlib.suppress(OSError):
        return sorted(n for n in listing(folder) if _NAME.fullmatch(n))
    return []


def _take(path: Path) -> dict[str, Any] | None:
    try:
        data, status = read(path, LARGEST)
        path.unlink()
    except FileNotFoundError:  # nothing to remove: it may come at this very moment
        return None
    except OSError as error:
        if error.errno not in OF_THE_SYSTEM:  # a folder, for example: others wait behind it
            remove(str(path))
        return None
    return decoded(data) if status.st_mtime > time.time() - OLD else None
