"""The header of a hook event in the spool, as `hooks/emit` writes it.

It consists of records that each end with a NUL byte.  An empty record follows, then the CLI's
payload, byte for byte:

    bellboard 1                     the format
    agent=claude                    the agent
    event=Stop                      the name of its hook
    pid=4711                        the process of the CLI, 0 if it is not known
    start=122030                    when that started, if there is /proc: see `witnesses/located.py`
    pipe=4711.23                    a pipe in answers/ on which the hook waits, if it does
    TMUX_PANE=%3                    TMUX, TMUX_PANE, NVIM and the names in ENVIRONMENT below, if
                                    set; never any other, because others include tokens

A value may contain anything but NUL; one of more than 4096 bytes is ignored.
"""

from __future__ import annotations

import functools

from ..core.events import AGENT
from ..core.lenient import decimal
from .contents import is_pipe
from .ground import Refused

MAGIC = b"bellboard 1\0"
VALUE_LIMIT = 4096  # bytes of a value: PATH_MAX
ENVIRONMENT = frozenset(
    (
        *("CLAUDE_PID", "CLAUDE_CONFIG_DIR", "CLAUDE_PROJECT_DIR", "CLAUDE_JOB_DIR"),
        *("CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ATTENDED"),
        *("CLAUDE_CODE_PARENT_SESSION_ID", "TERM_PROGRAM", "SSH_CONNECTION"),
        "COPILOT_LOADER_PID",
    )
)


def parse(data: bytes) -> tuple[str, dict[str, object], str, bytes]:
    """Return the event, the origin, the pipe and the payload; raise `Refused` if incomplete."""
    header, end, payload = data.partition(b"\0\0")
    if not end:
        raise Refused("incomplete header")
    if not payload.strip():
        raise Refused("no payload")
    # Nearly all events of a session share a few headers: 0.2 µs instead of 4.
    read = _read if len(header) < VALUE_LIMIT else _read.__wrapped__
    return *read(header), payload


@functools.lru_cache(maxsize=256)
def _read(header: bytes) -> tuple[str, dict[str, object], str]:
    records: dict[str, str] = {}
    for record in header.split(b"\0")[1:]:
        name, _, value = record.partition(b"=")
        if value and len(value) <= VALUE_LIMIT:
            records[name.decode("ascii", "replace")] = value.decode("utf-8", "replace")
    origin: dict[str, object] = {"agent": records.get("agent", AGENT)}
    if (pid := decimal(records.get("pid", ""))) and pid < 1 << 31:
        origin["pid"] = pid
    if decimal(start := records.get("start", "")) is not None:
        origin["started"] = start
    if socket := records.get("TMUX", "").rsplit(",", 2)[0]:  # socket,pid,session
        origin["tmux"] = socket
    if pane := records.get("TMUX_PANE"):
        origin["pane"] = pane
    if server := records.get("NVIM"):
        origin["nvim"] = server
    origin["env"] = {name: value for name, value in records.items() if name in ENVIRONMENT}
    pipe = records.get("pipe", "")
    return records.get("event", ""), origin, pipe if is_pipe(pipe) else ""
