"""Prove that a process runs a session, before anything is done to it.

The pid in the header of a hook proves nothing: an event may name any process.  The proof is the
session file of the process, if the agent writes one, or else the program that it runs.  Both are
checked again each time, and so is its start time.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final

from ..agents.clis import cli_of
from ..core.detail import line
from ..core.session import Process, Session
from ..system.processes import INTERPRETERS, argv_of, owner_of, program_of, started_of

LONGEST_ARGV: Final = 60  # characters of a command line in a message


def objection(s: Session, process: Process, environ: Mapping[str, str]) -> str:
    """Return why a process does not run that session, or "" if it does. Reads files; may hang."""
    pid = process.pid
    if not process.started:
        return f"the start time of process {pid} is unknown: it may be another process"
    if started_of(pid) != process.started:
        return f"process {pid} is a different process now"
    if owner_of(pid) != os.geteuid():
        return f"process {pid} belongs to another user"
    if runs := cli_of(s.agent).session_of(pid, environ):
        return "" if runs == s.session_id else f"process {pid} runs another session"
    if other := _runner(s, pid, environ):
        return f"process {other} runs that session, and process {pid} only claims to"
    argv = argv_of(pid)
    if not is_agent(s.agent, argv, program_of(pid)):
        shown = line(" ".join(argv), LONGEST_ARGV)
        return f"process {pid} does not run {line(s.agent, 20)}: {shown}"
    return ""


def _runner(s: Session, pid: int, environ: Mapping[str, str]) -> int:
    """Return another process that says it runs the session, or 0."""
    says = cli_of(s.agent).session_of
    return next((x for x in s.processes if x != pid and says(x, environ) == s.session_id), 0)


def is_agent(agent: str, argv: list[str], program: str) -> bool:
    """Return whether a command line or an executable is that of an agent."""
    if not re.fullmatch(r"[a-z][a-z0-9_-]{1,30}", agent) or not argv:
        return False
    name = rf"{re.escape(agent)}(?:-(?:code|cli))?"
    install = rf"/node_modules/(?:@[\w.-]+/)?{name}(?:-[\w-]+)?/|/{name}/versions/[\w.-]+$"
    called = PurePosixPath(argv[0]).name
    if called in INTERPRETERS or re.fullmatch(r"python[\d.]*", called):
        script = next((arg for arg in argv[1:] if not arg.startswith("-")), "")
        return bool(re.search(rf"(?:^|/){name}$|{install}", script))
    return bool(re.fullmatch(name, called) or re.search(rf"/{name}$|{install}", program))
