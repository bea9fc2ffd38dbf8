"""Whether a process is the one that runs a session, before anything is done to it.

The number in the header of a hook proves nothing: an event may name any process.  What proves it
is the process itself: its own session file, where the agent keeps one, else the program that it
runs.  Both are looked at anew, together with when it started.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Final

from ..agents.claude_code.witnesses.discovery import CONFIG, INTERPRETERS
from ..agents.claude_code.witnesses.registry import config_of, look_at
from ..core.detail import line
from ..core.session import Process
from ..system.processes import argv_of, environment_of, owner_of, program_of, started_of

LONGEST: Final = 60  # of a command line that is said


def objection(session_id: str, agent: str, process: Process, configs: Iterable[Path]) -> str:
    """Why a process is not that session's; empty if it is."""
    pid = process.pid
    if not process.started:
        return f"it is not known since when process {pid} runs: it may be another's"
    if started_of(pid) != process.started:
        return f"process {pid} is another one now"
    if owner_of(pid) != os.geteuid():
        return f"process {pid} is another user's"
    own = config_of(environment_of(pid, (CONFIG, "HOME")))
    for config in dict.fromkeys((own, *configs)):
        record = look_at(config / "sessions", pid).record
        if record is not None:
            is_its = record["sessionId"] == session_id
            return "" if is_its else f"process {pid} runs another session"
    argv = argv_of(pid)
    if not is_agent(agent, argv, program_of(pid)):
        return f"process {pid} does not run {line(agent, 20)}: {line(' '.join(argv), LONGEST)}"
    return ""


def is_agent(agent: str, argv: list[str], program: str) -> bool:
    """Whether a command line, or the program itself, is that of an agent."""
    if not re.fullmatch(r"[a-z][a-z0-9_-]{1,30}", agent) or not argv:
        return False
    name = rf"{re.escape(agent)}(?:-(?:code|cli))?"
    install = rf"/node_modules/(?:@[\w.-]+/)?{name}(?:-[\w-]+)?/|/{name}/versions/[\w.-]+$"
    called = PurePosixPath(argv[0]).name
    if called in INTERPRETERS or re.fullmatch(r"python[\d.]*", called):
        script = next((arg for arg in argv[1:] if not arg.startswith("-")), "")
        return bool(re.search(rf"(?:^|/){name}$|{install}", script))
    return bool(re.fullmatch(name, called) or re.search(rf"/{name}$|{install}", program))
