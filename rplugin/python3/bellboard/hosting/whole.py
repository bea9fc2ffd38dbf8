"""Complete a request: by the transcript if no hook reported it, and by the files that it is about.

A file may not be the one that its path suggests, may hold what would be lost, or may change after
somebody has read the request.  So the request shows that, and its digest covers the contents.

All of this reads foreign files, so it may hang.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from msgspec.structs import replace

from ..agents.clis import cli_of
from ..agents.dialect import About, OnDisk
from ..agents.dialects import dialect_of
from ..agents.parts import at_end, part
from ..core.events import Origin
from ..core.request import Part, Request, digest_of
from ..core.visible import marked
from ..system.files import read, real, status_of
from .standing import THERE, Asked, placed

Environ = Mapping[str, str]

LARGEST: Final = 1 << 20  # bytes of a file to show
MOST_FILES: Final = 100  # that are read for one request, each time it is shown or answered
LINKED: Final = "Through a link, this is"
SHORT: Final = "This is"
REPLACED: Final = "In place of all that it holds now"
TOO_LARGE: Final = "In place of what it holds now, which is too large to show"
READS: Final = "in this fleet you may look, but not answer; ask whoever set it up"
UNREADABLE: Final = "In place of what it holds now, which cannot be read"
WITHHELD: Final = "In place of what it holds now, which only a member that may answer can see"


class Unshown(NamedTuple):
    """The contents of a file that cannot be shown."""

    label: str
    changed: int  # when, in nanoseconds


def completed(asked: Asked, environ: Environ) -> Asked:
    """Return the request with everything that it is about."""
    payload = asked.payload
    if not asked.block.request:
        asked, payload = _by_transcript(asked, environ)
    files = dialect_of(asked.session.agent).on_disk(payload) if payload else ()
    request = asked.request
    if len(files) > MOST_FILES and request.complete:
        request = _refused(request, f"it changes more than {MOST_FILES} files")
    for disk in files:
        if request.complete:
            request = _bound(request, disk, _path_of(disk, environ), asked.about.folders)
    return asked._replace(request=request)


def withheld(request: Request) -> Request:
    """Return a request for who may only look: without choices, and without what its file holds."""
    parts = tuple(_alone(part) if part.label == REPLACED else part for part in request.parts)
    return replace(request, parts=parts, complete=False, choices=(), why=READS)


def _alone(part: Part) -> Part:
    """Return a part without what a file loses."""
    hidden = tuple(words for words in part.warnings if words not in at_end(part.old, part.new))
    alone = replace(part, old="", new="", text=part.new, warnings=hidden)
    return replace(alone, kind="file", label=WITHHELD)


def _by_transcript(asked: Asked, environ: Environ) -> tuple[Asked, bytes]:
    """Return what the transcript says that the main thread asks, and what a hook would report."""
    s, block, pid = asked.session, asked.block, asked.request.pid
    dialect, origin = dialect_of(s.agent), Origin(s.agent, pid)
    payload = b"" if block.agent else cli_of(s.agent).asking(s, environ)
    made = dialect.request(payload, "", block.since, origin) if payload else None
    if made is None or made.tool != (block.tool or made.tool) or made.kind != block.asks:
        return asked, b""
    made = replace(made, digest=digest_of(made.digest, block.since))  # it may be asked again
    event = dialect.event(payload, block.since, block.since, origin)
    about = About(event.detail, event.shown_digest, asked.about.folders)
    return asked._replace(request=placed(made, event.cwd, s), about=about), payload


def _bound(request: Request, disk: OnDisk, path: str, folders: Iterable[str]) -> Request:
    """Bind a request to the file that it is about, as that is now."""
    if not path.startswith("/") or "\0" in path:
        return _refused(request, f"it is not known which file “{marked(disk.path)}” is")
    if disk.holds is not None:
        held = _held(path)
        if isinstance(held, bytes) and held.strip() == disk.holds.strip().encode(errors="replace"):
            return request
        return _refused(request, f"{marked(path)} no longer holds what you were asked about")
    parts, facts = request.parts, []
    if (there := real(path)) != _expected(path, folders):
        parts = (*parts, part("file", "", LINKED, path=there))
        facts.append(there)
    elif (plain := os.path.normpath(path)) != disk.path:
        parts = (*parts, part("file", "", SHORT, path=plain))
        facts.append(plain)
    if disk.how != "read":
        held = _held(path)
        facts.append("" if held is None else digest_of(held))
        if disk.how == "replaced" and held is not None:
            parts = (_replacing(parts[0], held), *parts[1:])
    if any(facts):
        request = replace(request, digest=digest_of(request.digest, *map(os.fsencode, facts)))
    return replace(request, parts=parts)


def _refused(request: Request, why: str) -> Request:
    return replace(request, complete=False, choices=(), why=f"{why}{THERE}")


def _path_of(disk: OnDisk, environ: Environ) -> str:
    """Return the whole path of a file; it does not start with a slash if that is not known."""
    if disk.path.startswith("~/") and (home := environ.get("HOME")):
        return home + disk.path[1:]
    is_below = disk.folder and not disk.path.startswith(("/", "~"))
    return os.path.join(disk.folder, disk.path) if is_below else disk.path  # noqa: PTH118


def _expected(path: str, folders: Iterable[str]) -> str:
    """Return where a file is if no link leads from its project to elsewhere."""
    for folder in folders:
        if path.startswith(f"{folder}/"):
            return os.path.normpath(real(folder) + path.removeprefix(folder))
    return os.path.normpath(path)


def _held(path: str) -> bytes | Unshown | None:
    """Return what a file holds; None if there is none."""
    try:
        return read(path, LARGEST, ours=False)[0]
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        label = TOO_LARGE if error.errno == errno.EFBIG else UNREADABLE
    with suppress(OSError):
        return Unshown(label, status_of(path).st_mtime_ns)
    return Unshown(label, 0)


def _replacing(whole: Part, held: bytes | Unshown) -> Part:
    """Return a part that also shows what a file loses."""
    if isinstance(held, Unshown):
        return replace(whole, label=held.label)
    old, new = marked(held.decode(errors="backslashreplace")), whole.text
    hidden = (*whole.warnings, *at_end(old, new))
    return replace(whole, kind="diff", label=REPLACED, text="", old=old, new=new, warnings=hidden)
