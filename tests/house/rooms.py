"""The rooms that one event enters: `sys.setprofile` over a warm host until it rests again.

Run it to see them: `python -m house.rooms [EVENT]`.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import bellboard
from bellboard.hosting.host import Host
from bellboard.storage.spool import Spool
from rig.host.hosting import put

PACKAGE = f"{Path(bellboard.__file__).parent}/"
REST = 0.7  # seconds in which a host comes to rest: its jobs, and pauses of 1/30 s
LOADED = 2.5  # seconds until a host has loaded what it loads after its start


class Way(NamedTuple):
    """The files and functions through which an event went."""

    files: list[str]
    functions: list[str]  # each with its file, line and number of calls
    calls: int


async def way_of(home: Path, event: str = "Stop") -> Way:
    """Start a host, let it know a session, and follow one more event through it."""
    host = Host(home, lambda message: None, {}, {"PATH": "/usr/bin:/bin"})
    running = asyncio.create_task(host.run())
    spool, place = Spool(home), {"prompt": "go", "cwd": str(home)}
    await asyncio.sleep(REST)
    for last in (event, event, ""):  # the first times, things are loaded and learned
        put(spool, "UserPromptSubmit", **place)
        await asyncio.sleep(REST)
        for name in ("PreToolUse", "PostToolUse"):
            put(spool, name, tool_name="Read", tool_input={"file_path": "/a"}, **place)
        await asyncio.sleep(REST)
        if last:
            put(spool, last, **place)
            await asyncio.sleep(REST)
    await asyncio.sleep(LOADED)
    entered: Counter[CodeType] = Counter()

    def enter(frame: FrameType, what: str, given: Any) -> None:
        if what == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            entered[frame.f_code] += 1

    put(spool, event, **place)
    sys.setprofile(enter)
    await asyncio.sleep(REST)
    sys.setprofile(None)
    host.stop()
    await running
    rooms = {code: code.co_filename.removeprefix(PACKAGE) for code in entered}
    functions = [
        f"{room}:{code.co_firstlineno} {code.co_name} {entered[code]}"
        for code, room in rooms.items()
        if not code.co_name.startswith("<")  # a comprehension belongs to its function
    ]
    return Way(sorted({*rooms.values()}), sorted(functions), entered.total())


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        way = asyncio.run(way_of(Path(folder) / "home", *sys.argv[1:2]))
    for name in way.functions:
        print(name)
    print(f"{len(way.files)} files, {len(way.functions)} functions, {way.calls} calls")


if __name__ == "__main__":
    main()
