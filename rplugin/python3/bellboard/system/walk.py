"""Follow a path part by part and through its links, so that each part can be judged in turn."""

# ruff: noqa: PTH115
# Paths are strings here: a link may hold anything.

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from typing import NamedTuple


class TooManyLinks(OSError):
    """A path leads through more links than allowed."""


class Part(NamedTuple):
    """A folder or link on the way to a path, or what is there."""

    path: str  # with no link on the way to it
    status: os.stat_result
    is_last: bool  # nothing follows, unless it is a link


def parts_of(
    path: str, most_links: int, look: Callable[[str], os.stat_result] = os.lstat
) -> Iterator[Part]:
    """Yield the parts of a path, from the root on; each is looked at only when it is asked for.

    Raise OSError where there is nothing, or what `look` raises.
    """
    yield Part("/", look("/"), False)
    waiting, here, links = _names(path), "", 0
    while waiting:
        name = waiting.pop()
        if name == "..":
            here = here.rpartition("/")[0]
            continue
        at = f"{here}/{name}"
        status = look(at)
        yield Part(at, status, not waiting)
        if not stat.S_ISLNK(status.st_mode):
            here = at
            continue
        links += 1
        if links > most_links:
            raise TooManyLinks(errno.ELOOP, "too many links", path)
        target = os.readlink(at)
        here = "" if target.startswith("/") else here
        waiting += _names(target)


def _names(path: str) -> list[str]:
    """Return the names in a path, last one first."""
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]
