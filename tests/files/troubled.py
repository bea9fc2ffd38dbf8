"""Many commands, each in a fork of a process that has everything imported: troubled.py SECONDS.

A line of JSON on standard input names a command: its words, and what to do to its streams and
folder.  The answer is a line of JSON: how it ended, and what it printed.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

import bellboard.agents.anonymous
import bellboard.agents.claude.installer
import bellboard.cli
import bellboard.diagnosis
import bellboard.hosting.errands
import bellboard.hosting.turn
import bellboard.screen.terminal


def run(words: list[str], streams: dict[str, str], seconds: float) -> dict[str, Any]:
    """Run a command in a process of its own."""
    files = [tempfile.TemporaryFile() for _ in range(2)]  # noqa: SIM115
    read, write = os.pipe()
    os.close(read)  # so that nobody reads the pipe
    child = os.fork()
    if child == 0:
        _become(words, streams, files[0].fileno(), files[1].fileno(), write)
    os.close(write)
    deadline, status = time.monotonic() + seconds, None
    while status is None:
        ended, code = os.waitpid(child, os.WNOHANG)
        if ended:
            status = os.waitstatus_to_exitcode(code)
        elif time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            break
        else:
            select.select([], [], [], 0.005)
    told = {"code": status}
    for name, file in zip(("out", "err"), files, strict=True):
        file.seek(0)
        told[name] = file.read().decode("utf-8", "replace")
        file.close()
    return told


def _become(words: list[str], streams: dict[str, str], out: int, err: int, broken: int) -> None:
    code = 1
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if streams.get("folder") == "removed":
        os.chdir(gone := tempfile.mkdtemp())
        Path(gone).rmdir()
    null = os.open(os.devnull, os.O_RDONLY)
    full = os.open("/dev/full", os.O_WRONLY) if Path("/dev/full").exists() else out
    sources = {"full": full, "broken": broken, "file": out, "error": err, "null": null}
    usual = {"stdin": "null", "stdout": "file", "stderr": "error"}
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        how = streams.get(name, usual[name])
        if how == "closed":
            os.close(number)
            setattr(sys, name, None)  # as the interpreter does
        else:
            os.dup2(sources[how], number)
            mode = "r" if number == 0 else "w"
            setattr(sys, name, os.fdopen(number, mode, closefd=False))
    try:
        code = bellboard.cli.main(words)
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except SystemExit as e:
        code = e.code if isinstance(e.code, int) else 1
    except BaseException:
        code = 120
        os.write(err, traceback.format_exc().encode("utf-8", "replace"))
    os._exit(code)


def main() -> None:
    for line in sys.stdin.buffer.read().splitlines():
        words, streams = json.loads(line)
        told = run(words, streams, float(sys.argv[1]))
        os.write(1, json.dumps(told).encode() + b"\n")


if __name__ == "__main__":
    main()
