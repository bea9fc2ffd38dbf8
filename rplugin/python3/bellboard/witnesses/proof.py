"""Prove that a process runs a session, before anything is done to the process.

The pid in the header of a hook proves nothing: an event may name any process.  The proof is the
session file of the process, if the agent writes one, or else the program that it runs.  Both are
checked again each time, and so is the start time of the process.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final

from msgspec.structs import replace

from ..agents.registry import agent_of, all_agents
from ..core.events import Origin
from ..core.records import Records
from ..core.session import Process, Session, is_listed
from ..core.text import line
from ..system.processes import (
    INTERPRETERS,
    ancestors,
    argv_of,
    environment_of,
    has_proc,
    known_as,
    owner_of,
    program_of,
    started_of,
)

LONGEST_ARGV: Final = 60  # characters of a command line in a message


def objection(s: Session, process: Process, environ: Mapping[str, str]) -> str:
    """Return why a process does not run a session, or "" if it does. Reads files; may hang."""
    pid = process.pid
    if s.through:
        return f"it runs behind {line(s.through, 40)}, where no process can be verified"
    if not process.started:
        return f"the start time of process {pid} is unknown: it may be another process"
    if started_of(pid) != process.started:
        return f"process {pid} is a different process now"
    if owner_of(pid) != os.geteuid():
        return f"process {pid} belongs to another user"
    if runs := agent_of(s.agent).session_of(pid, environ):
        return "" if runs == s.session_id else f"process {pid} runs another session"
    if other := _runner(s, pid, environ):
        return f"process {other} runs that session, and process {pid} only claims to"
    argv = argv_of(pid)
    if not is_agent(s.agent, argv, program_of(pid)):
        shown = line(" ".join(argv), LONGEST_ARGV)
        return f"process {pid} does not run {line(s.agent, 20)}: {shown}"
    return ""


def _runner(s: Session, pid: int, environ: Mapping[str, str]) -> int:
    """Return another process that claims to run the session, or 0."""
    says = agent_of(s.agent).session_of
    return next((x for x in s.processes if x != pid and says(x, environ) == s.session_id), 0)


def is_agent(agent: str, argv: list[str], program: str) -> bool:
    """Return whether a command line or an executable belongs to an agent."""
    if not re.fullmatch(r"[a-z][a-z0-9_-]{1,30}", agent) or not argv:
        return False
    name = rf"{re.escape(agent)}(?:-(?:code|cli))?"
    install = rf"/node_modules/(?:@[\w.-]+/)?{name}(?:-[\w-]+)?/|/{name}/versions/[\w.-]+$"
    called = PurePosixPath(argv[0]).name
    if called in INTERPRETERS or re.fullmatch(r"python[\d.]*", called):
        script = next((arg for arg in argv[1:] if not arg.startswith("-")), "")
        return bool(re.search(rf"(?:^|/){name}$|{install}", script))
    return bool(re.fullmatch(name, called) or re.search(rf"/{name}$|{install}", program))


def agent_above(board: Records | None) -> str:
    """Return the agent that started this process, or what started it, in words, or "".

    It is one that the board knows, or a program of that name.  An agent that is a plugin of an
    editor is none: its process is the editor, in which a person works.
    """
    programs = tuple(cli.program for cli in all_agents() if cli.program)
    for pid in ancestors(os.getpid()):
        there = board.running_in(pid) if board is not None else ()
        known = (s.agent for s in there if is_listed(s) and _is_still(s.processes[pid]))
        argv, program = argv_of(pid), program_of(pid)
        called = next((name for name in programs if is_agent(name, argv, program)), "")
        if agent := next((x for x in known if agent_of(x).program in programs), called):
            return f"{line(agent, 20)}, process {pid}"
    return ""


def _is_still(process: Process) -> bool:
    started = process.started or process.claimed
    return started in ("", started_of(process.pid))


# Find the process of an event whose hook ran in a pid namespace of its own.
#
# Its pid there may be the pid of any process here. The proof is the kernel's own list of pids,
# with the start of the process, which the hook reports; or, if the hook cannot see that, the
# program of the process and the terminal in which it was started.


PLACE = ("TMUX", "TMUX_PANE", "NVIM")


def located(o: Origin, t: float) -> Origin | None:
    """Return an origin with the pid of its process here, or None if the process is not here."""
    pid = o.pid
    if pid is None or not has_proc():
        return o
    if o.started:
        if started_of(pid) == o.started:
            return o
        found = [p for p in known_as(pid, t) if started_of(p) == o.started]
    elif _is_its(pid, o):
        return o
    else:
        found = [p for p in known_as(pid, t) if _is_its(p, o)]
    if len(found) > 1 or not o.started:
        found = [p for p in found if _is_there(p, o)]
    if len(found) == 1:
        return replace(o, pid=found[0], started=started_of(found[0]))
    return None if o.started else o


def _is_its(pid: int, o: Origin) -> bool:
    """Return whether a process of ours runs the agent of an origin."""
    return owner_of(pid) == os.geteuid() and is_agent(o.agent, argv_of(pid), program_of(pid))


def _is_there(pid: int, o: Origin) -> bool:
    """Return whether a process was started in the same terminal as the hook."""
    env = environment_of(pid, PLACE)
    from ..system.tmux import socket_in  # imported here, as it loads much, and few events lead here

    there = socket_in(env), env.get("TMUX_PANE", ""), env.get("NVIM", "")
    return there == (o.tmux or "", o.pane or "", o.nvim or "")
