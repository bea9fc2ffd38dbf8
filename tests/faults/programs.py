"""Programs that a host runs: a tmux that answers junk, hangs, floods or dies; callbacks."""

from __future__ import annotations

import contextlib
import shlex
import socket
from collections.abc import Mapping
from pathlib import Path
from random import Random

from faults.fault import Fault, Kind
from faults.junk import brief, text
from faults.target import Target

GOOD = "%1 1 0 1 1 1 $0 @0 /dev/pts/9|s:0.0 sh"


def _scripts(random: Random) -> Mapping[str, str]:
    said = text(random).replace("\0", "").encode("utf-8", "replace").decode()[:5000]
    row = GOOD.replace(random.choice(GOOD.split()), said[:200])
    return {
        "says": f"printf '%s\\n' {shlex.quote(said)}",
        "almost well": f"printf '%s\\n' {shlex.quote(row)}",
        "bytes": "head -c 5000 /dev/urandom",
        "a flood": "head -c 50000000 /dev/zero | tr '\\0' x",
        "a flood without end": "yes",
        "a flood of errors": "yes >&2",
        "many rows": "i=0; while [ $i -lt 20000 ]; do echo '%1 x'; i=$((i+1)); done",
        "hangs": "exec sleep 1000",
        "hangs with a child": "sleep 1000 & sleep 1000",
        "hangs deaf to SIGTERM": "trap '' TERM; while :; do sleep 1; done",
        "closed": "exec >&- 2>&-; sleep 1000",
        "fails": f"echo {shlex.quote(said[:200])} >&2; exit {random.randrange(1, 255)}",
        "killed": "kill -9 $$",
        "suspended": "kill -STOP $$",
    }


def tmux(random: Random) -> Fault:
    """Replace tmux, while a session is in a pane of our server."""
    name, body = random.choice(list(_scripts(random).items()))
    serial = random.randrange(1000)

    def do(target: Target) -> None:
        script = target.home.bin / "tmux"
        _write(script, f"#!/bin/sh\n{body}\n")
        path = target.home.tmp / f"tmux-{serial}"
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
        head = (
            f"agent=claude\0event=Stop\0pid={target.sleeper()}\0TMUX={path},1,0\0TMUX_PANE=%1\0\0"
        )
        body_of = f'{{"session_id":"m{serial}","hook_event_name":"UserPromptSubmit","cwd":"/srv"}}'
        target.put(f"bellboard 1\0{head}{body_of}".encode())

    def undo(target: Target) -> None:
        (target.home.bin / "tmux").unlink(missing_ok=True)
        target.hook("SessionEnd", f"m{serial}")

    return Fault(f"tmux {name}: {brief(body, 80)}", do, undo)


def callback(random: Random) -> Fault:
    """Use a callback that never ends, floods or fails."""
    name, body = random.choice(list(_scripts(random).items()))

    def do(target: Target) -> None:
        script = target.home.bin / "called"
        _write(script, f"#!/bin/sh\n{body}\n")
        target.config = {"callbacks": dict.fromkeys(("working", "idle", "completed"), str(script))}
        target.restart()
        target.up()
        for n in range(30):
            target.hook("UserPromptSubmit", f"c{n}")
            target.hook("Stop", f"c{n}")

    def undo(target: Target) -> None:
        target.config = {}
        target.restart()
        target.up()

    return Fault(f"callback {name}: {brief(body, 80)}", do, undo)


def _write(path: Path, said: str) -> None:
    draft = path.with_name(f".{path.name}")
    draft.write_text(said, errors="replace")
    draft.chmod(0o755)
    draft.replace(path)


KINDS = (
    Kind("tmux", make=tmux, settle=2.5),
    Kind("callback", make=callback, settle=0.5),
)
