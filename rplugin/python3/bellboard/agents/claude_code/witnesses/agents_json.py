"""`claude agents --json`, the CLI's documented list of its sessions.

It takes 0.2 s of CPU time, so it runs only if a session file cannot be parsed, such as after a
change of format.  It gives the same information, without times.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ....core.text import ODD
from ....core.untrusted import list_of
from ....system.processes import INTERPRETERS, PROC, argv_of, owner_of
from ....system.programs import run
from .discovery import is_agent

COMMAND: Final = ("agents", "--json")  # since 2.1.145
PATIENCE: Final = 10.0  # seconds; on a busy machine it takes a few
KEPT: Final = ("PATH", "HOME", "LANG", "TMPDIR")


def listed_by(pid: int, config_dir: str, environ: Mapping[str, str]) -> dict[int, dict[str, Any]]:
    """Return what the CLI of a process lists, by process; empty if that fails."""
    program = program_of(pid)
    if not program:
        return {}
    env = {name: environ[name] for name in KEPT if name in environ}
    try:
        done = run([*program, *COMMAND], PATIENCE, {**env, "CLAUDE_CONFIG_DIR": config_dir})
        rows = list_of(json.loads(done.output))
    except (OSError, subprocess.TimeoutExpired, *ODD):
        return {}
    return {r["pid"]: r for r in rows if isinstance(r, dict) and type(r.get("pid")) is int}


def program_of(pid: int) -> list[str]:
    """Return the command that a process of ours runs, if that is the CLI."""
    argv = argv_of(pid) if owner_of(pid) == os.getuid() else []
    if not is_agent(argv):
        return []
    try:
        program = str(Path(f"{PROC}/{pid}/exe").readlink())
    except OSError:
        program = argv[0]
    script = [arg for arg in argv[1:] if not arg.startswith("-")][:1]
    is_script = os.path.basename(argv[0]) in INTERPRETERS  # noqa: PTH119 - of a command line
    return [program, *script] if is_script else [program]
