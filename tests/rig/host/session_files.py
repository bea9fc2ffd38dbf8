"""Write a session file as the CLI does, for one process or the one that runs the tests."""

from __future__ import annotations

import os
import time

import msgspec

from bellboard.system.processes import started_of
from rig.home import Home


def write_session_file(
    home: Home, status: str, sid: str = "one", pid: int = 0, version: str = "2.1.332"
) -> None:
    """Replace the session file of a process atomically, with the current time."""
    pid = pid or os.getpid()
    folder = home.claude / "sessions"
    folder.mkdir(exist_ok=True)
    now = int(time.time() * 1000)
    record = {
        "pid": pid,
        "sessionId": sid,
        "cwd": str(home.project),
        "startedAt": now,
        "procStart": started_of(pid),
        "version": version,
        "kind": "interactive",
        "entrypoint": "cli",
        "status": status,
        "statusUpdatedAt": now,
        "updatedAt": now,
        **({"waitingFor": "permission prompt"} if status == "waiting" else {}),
    }
    path = folder / f"{pid}.json"
    new = path.with_suffix(".new")
    new.write_bytes(msgspec.json.encode(record))
    new.replace(path)
