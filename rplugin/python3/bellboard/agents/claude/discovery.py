"""Find agents among the processes that neither a hook nor a session file reported.

This is for CLIs before 2.1.76, which write no session files, and for disabled hooks.  A search
finds processes in terminals; a command line may name the session.

An agent whose environment points to another board, such as one in a sandbox, belongs to that board.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import subprocess
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

from ...core.clock import is_recent
from ...core.evidence import Evidence, TraceLine
from ...core.session import nameless
from ...core.text import ODD
from ...core.untrusted import decimal, list_of
from ...storage.spool import Refused, default_home
from ...system import processes
from ...system.files import is_file
from ...system.places import Place, place_of
from ...system.processes import INTERPRETERS, PROC, argv_of, innermost, owner_of
from ...system.programs import run
from ...system.tmux import socket_in
from .hooks import CONFIG
from .session_files import begun_in

EVERY: Final = 30.0  # seconds; a search takes 10 µs for each process of ours
GRACE: Final = 5.0  # seconds for a new agent to report itself, with its session id
#: Arguments of the CLI that start no session, although it may have a terminal.
NO_SESSION: Final = frozenset({"-v", "--version", "-h", "--help", "-p", "--print", "--bg"})
#: A first argument that may be a command of some version. It may also be a prompt of one word;
#: the session then has a file or hooks, which show it, except with very old CLIs.
_COMMAND: Final = re.compile(r"[a-z]+(?:-[a-z]+)*")
TERMINAL: Final = ("TMUX", "TMUX_PANE")
BOARD: Final = ("BELLBOARD_HOME", "XDG_STATE_HOME", "HOME")

_ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SCRIPT: Final = re.compile(r"/@anthropic-ai/claude-code/cli\.[cm]?js$|(?:^|/)claude$")


class FoundProcess(NamedTuple):
    """An agent's process in a terminal."""

    pid: int
    started: str
    tty: str
    cwd: str
    session_id: str  # if the command line or transcript names one
    config: str  # the config directory, if the environment names one
    is_new: bool  # the session may still report itself, with its id
    has_file: bool = False  # whether it has a session file, which says more once read
    tmux: str = ""  # the socket and the pane in the environment
    pane: str = ""

    def evidence(self, now: float, generation: str = "") -> Evidence:
        """Return evidence like a session file without a status; a hook later names the session."""
        sid = self.session_id or nameless(self.pid, self.started)
        record = {"pid": self.pid, "sessionId": sid, "cwd": self.cwd, "procStart": self.started}
        line = TraceLine(pid=self.pid, record=record, discovered=True).line(now, "registry")
        return Evidence(line, f"discovered {record} {generation}")


class Attached(NamedTuple):
    """A process that shows a background session in its terminal."""

    pid: int
    started: str
    named: str  # the start of the session's id, or a part of its name
    place: Place


class Discovery:
    """Searches the processes of this user, at most every 30 s."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._board = _board_of(environ)
        self._begun = -math.inf  # when the last search began
        self._search: Search | None = None  # the running search
        self._passed: set[int] = set()  # processes on which a search hung

    def hasten(self) -> None:
        """Allow a search at once: an agent may have started."""
        self._begun = -math.inf

    def begin(
        self, now: float, known: Collection[int] = (), taken: Collection[str] = ()
    ) -> Search | None:
        """Return a search, to be run where it may hang, or None if it is too early.

        `taken` are the sessions that are known to run in other processes.
        """
        if is_recent(self._begun, now, EVERY):
            return None
        self._begun = now
        if self._search is not None:
            self._passed.add(self._search.at)
        self._search = Search(now, frozenset(known) | self._passed, frozenset(taken), self._board)
        return self._search

    def end(self, found: list[FoundProcess | Attached]) -> list[FoundProcess | Attached]:
        """End a search; return its result."""
        self._search = None
        self._passed.clear()
        return found


class Search:
    """A search of all processes; `at` is the current one."""

    def __init__(
        self, now: float, known: Collection[int], taken: Collection[str], board: Path | None
    ) -> None:
        self._now, self._known, self._taken, self._board = now, known, taken, board
        self.at = 0

    def where(self) -> str:
        """Return the file that the search is reading."""
        return f"{processes.PROC}/{self.at}/cmdline"

    def __call__(self) -> list[FoundProcess | Attached]:
        """Return the agents that are not known, and the processes that show background sessions."""
        found: list[FoundProcess | Attached] = []
        for pid in _mine():
            with contextlib.suppress(OSError, ValueError):  # the environment may name anything
                if pid not in self._known and (agent := self._agent(pid)):
                    found.append(agent)
        return found

    def _agent(self, pid: int) -> FoundProcess | Attached | None:
        self.at = pid
        argv = processes.argv_of(pid)
        if named := attached_to(argv):
            return Attached(pid, processes.started_of(pid), named, place_of(pid))
        if not starts_session(argv):
            return None
        tty, started = processes.tty_of(pid), processes.started_of(pid)
        began = processes.began_at(pid)
        if not tty or began is None or not processes.is_alive(pid):
            return None
        env = processes.environment_of(pid, (*BOARD, *TERMINAL, CONFIG))
        if (board := _board_of(env)) and board != self._board:
            return None
        cwd, config = processes.cwd_of(pid), env.get(CONFIG, "")
        kept = config or (f"{env['HOME']}/.claude" if "HOME" in env else "")
        sid = session_in(argv) or begun_in(kept, cwd, began, self._taken)
        socket = socket_in(env)
        is_new = began > self._now - GRACE
        has_file = bool(kept) and is_file(Path(kept, "sessions", f"{innermost(pid)}.json"))
        pane = env.get("TMUX_PANE", "")
        return FoundProcess(pid, started, tty, cwd, sid, config, is_new, has_file, socket, pane)


def _board_of(environ: Mapping[str, str]) -> Path | None:
    """Return the state folder that an environment selects; None if it is unknown."""
    try:
        return default_home(environ) if any(map(environ.get, BOARD)) else None
    except Refused:
        return None


def starts_session(argv: list[str]) -> bool:
    """Return whether a command line starts an interactive session of Claude Code."""
    given = _given(argv)
    if given is None:
        return False
    first = given[0] if given else ""
    is_other = first in NO_SESSION or _COMMAND.fullmatch(first)
    return not is_other and not {"-p", "--print"}.intersection(given)


def attached_to(argv: list[str]) -> str:
    """Return the background session that a command line shows in its terminal, or ""."""
    match _given(argv):
        case ["attach", named, *_] if not named.startswith("-"):
            return named
    return ""


def _given(argv: list[str]) -> list[str] | None:
    """Return the arguments of the CLI, or None if another program runs."""
    if not argv:
        return None
    name = PurePosixPath(argv[0]).name
    if name in processes.INTERPRETERS:
        script = next((n for n, arg in enumerate(argv[1:], 1) if not arg.startswith("-")), 0)
        return argv[script + 1 :] if script and _SCRIPT.search(argv[script]) else None
    return argv[1:] if name == "claude" else None


def session_in(argv: list[str]) -> str:
    """Return the session that a command line names, if that session runs."""
    if "--fork-session" in argv:
        return ""
    for n, arg in enumerate(argv):
        option, _, value = arg.partition("=")
        if option in ("--session-id", "--resume", "-r"):
            value = value or (argv[n + 1] if n + 1 < len(argv) else "")
            return value if _ID.fullmatch(value) else ""
    return ""


def _mine() -> Iterator[int]:
    if not processes.has_proc():
        import psutil

        yield from (p.pid for p in psutil.process_iter(["uids"]) if _is_mine(p.info["uids"]))
        return
    with os.scandir("/proc") as entries:
        for entry in entries:
            if (pid := decimal(entry.name)) is not None:
                try:
                    if entry.stat().st_uid == os.geteuid():
                        yield pid
                except OSError:
                    continue


def _is_mine(uids: object) -> bool:
    return getattr(uids, "effective", None) == os.geteuid()


# `claude agents --json`, the CLI's documented list of its sessions.
#
# It takes 0.2 s of CPU time, so it runs only if a session file cannot be parsed, such as after
# a change of format. It gives the same information, without times.


COMMAND: Final = ("agents", "--json")  # since 2.1.145
PATIENCE: Final = 10.0  # seconds; on a busy machine it takes a few
KEPT: Final = ("PATH", "HOME", "LANG", "TMPDIR")


def listed_by(pid: int, config_dir: str, environ: Mapping[str, str]) -> dict[int, dict[str, Any]]:
    """Return the sessions that the CLI of a process lists, by process; empty if that fails."""
    program = own_command(pid)
    if not program:
        return {}
    env = {name: environ[name] for name in KEPT if name in environ}
    try:
        done = run([*program, *COMMAND], PATIENCE, {**env, CONFIG: config_dir})
        rows = list_of(json.loads(done.output))
    except (OSError, subprocess.TimeoutExpired, *ODD):
        return {}
    return {r["pid"]: r for r in rows if isinstance(r, dict) and type(r.get("pid")) is int}


def own_command(pid: int) -> list[str]:
    """Return the command that a process of ours runs, if it is the CLI."""
    argv = argv_of(pid) if owner_of(pid) == os.getuid() else []
    if not starts_session(argv):
        return []
    try:
        program = str(Path(f"{PROC}/{pid}/exe").readlink())
    except OSError:
        program = argv[0]
    script = [arg for arg in argv[1:] if not arg.startswith("-")][:1]
    is_script = os.path.basename(argv[0]) in INTERPRETERS  # noqa: PTH119 - of a command line
    return [program, *script] if is_script else [program]
