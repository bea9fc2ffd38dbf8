"""Complete a request: by the transcript if no hook reported it, and by the file that it is about.

The file may be another one than its path says, hold what would be lost, or change after somebody
has read the request.  So the request shows that, and its digest covers what the file holds.

All of this reads foreign files, so it may hang.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from ..agents.clis import cli_of
from ..agents.dialect import About, OnDisk
from ..agents.dialects import dialect_of
from ..agents.parts import part
from ..core.events import Origin
from ..core.request import Part, Request, digest_of
from ..core.visible import marked
from ..system.files import read, touch
from .standing import THERE, Asked

LARGEST: Final = 1 << 20  # bytes of a file to show
LINKED: Final = "Through a link, this is"
REPLACED: Final = "In place of all that it holds now"
TOO_LARGE: Final = "In place of what it holds now, which is too large to show"


def completed(asked: Asked, environ: Mapping[str, str]) -> Asked:
    """Return the request with all that it is about."""
    payload = asked.payload
    if not asked.block.request:
        asked, payload = _by_transcript(asked, environ)
    disk = dialect_of(asked.session.agent).on_disk(payload) if payload else None
    if disk is None or not asked.request.complete:
        return asked
    return asked._replace(request=_bound(asked.request, disk, asked.about.folders))


def _by_transcript(asked: Asked, environ: Mapping[str, str]) -> tuple[Asked, bytes]:
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
    return asked._replace(request=made, about=about), payload


def _bound(request: Request, disk: OnDisk, folders: Iterable[str]) -> Request:
    """Bind a request to the file that it is about, as that is now."""
    if not disk.path.startswith("/"):
        return request
    touch(disk.path)
    if disk.holds is not None:
        held = _held(disk.path)
        if isinstance(held, bytes) and held.strip() == disk.holds.strip().encode(errors="replace"):
            return request
        why = f"{marked(disk.path)} no longer holds what you were asked about{THERE}"
        return replace(request, complete=False, choices=(), why=why)
    parts, facts = request.parts, []
    if (real := os.path.realpath(disk.path)) != _expected(disk.path, folders):
        parts = (*parts, part("file", "", LINKED, path=real))
        facts.append(real)
    if disk.how != "read":
        held = _held(disk.path)
        facts.append("" if held is None else digest_of(held))
        if disk.how == "replaced" and held is not None:
            parts = (_replacing(parts[0], held), *parts[1:])
    digest = digest_of(request.digest, *facts) if any(facts) else request.digest
    return replace(request, parts=parts, digest=digest)


def _expected(path: str, folders: Iterable[str]) -> str:
    """Return where a file is if no link leads from its project to elsewhere."""
    for folder in folders:
        if path.startswith(f"{folder}/"):
            return os.path.normpath(os.path.realpath(folder) + path.removeprefix(folder))
    return os.path.normpath(path)


def _held(path: str) -> bytes | str | None:
    """Return what a file holds, or when it was changed if that cannot be shown; None: no file."""
    try:
        return read(path, LARGEST, ours=False)[0]
    except FileNotFoundError:
        return None
    except OSError:
        with suppress(OSError):
            return f"changed at {Path(path).stat().st_mtime_ns}"
        return None


def _replacing(whole: Part, held: bytes | str) -> Part:
    """Return a part that also shows what a file loses."""
    if isinstance(held, str):
        return replace(whole, label=TOO_LARGE)
    old, new = marked(held.decode(errors="backslashreplace")), whole.text
    return replace(whole, kind="diff", label=REPLACED, text="", old=old, new=new)
