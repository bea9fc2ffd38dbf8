"""Look at a fleet once, for a command: can we connect, and which machines are there."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

from msgspec.structs import replace

from .followed import Followed
from .member import Joined, Unusable, credentials
from .reader import TRIES, Reader
from .streams import ensure
from .subjects import Subjects
from .wire import Denied, Down, Refused, Wire

PATIENCE: Final = 15.0  # seconds for the server to send what it has
SLOW: Final = f"the server has not sent everything within {PATIENCE:.0f} s; this list may be short"


async def attempt(j: Joined) -> str:
    """Connect, and create what is missing; return why that fails, or ""."""
    try:
        wire = await _connected(j)
    except (Down, Unusable) as e:
        return str(e)
    await wire.close()
    return ""


async def look(j: Joined) -> tuple[dict[str, Any], str]:
    """Return each machine with its counts and the age of its beat, and why that fails, or ""."""
    followed = Followed(replace(j, machine="", agents=(), repositories=()))
    why = SLOW
    for left in range(TRIES + 1)[::-1]:
        try:
            wire = await _connected(j)
            try:
                why = "" if await _read(wire, j, followed) else SLOW
                break
            finally:
                await wire.close()
        except Denied:
            return {}, "these credentials may not read all machines of this team"
        except (Down, Refused, Unusable) as e:
            if not (followed.tries and left):  # a list that breaks it is left out in the end
                return {}, str(e)
    now = time.monotonic()
    machines = followed.machines.values()
    return {m.name: {"counts": m.counts, "age": max(0.0, now - m.heard)} for m in machines}, why


async def _connected(j: Joined) -> Wire:
    wire = Wire(j, credentials(j.creds), lambda subject: None)
    await wire.open()
    try:
        await ensure(wire, Subjects(j.team))
    except BaseException:
        await wire.close()
        raise
    return wire


async def _read(wire: Wire, j: Joined, followed: Followed) -> bool:
    """Read all rows; return whether that succeeded in time."""
    read = asyncio.Event()
    running = asyncio.ensure_future(Reader(wire, Subjects(j.team), followed).run(read.set))
    tasks = [running, asyncio.ensure_future(wire.breaks()), asyncio.ensure_future(read.wait())]
    try:
        await asyncio.wait(tasks, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks[:2]:
            if task.done():
                task.result()
        return read.is_set()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
