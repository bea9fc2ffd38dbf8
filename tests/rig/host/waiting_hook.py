"""A hook that waits for an answer, run as the CLI runs it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

from rig import ROOT
from rig.waiting import PATIENCE

EMIT = ROOT / "hooks" / "emit"
LINE = f'[ -r {EMIT} ] && {{ set -- PermissionRequest "${{CLI:-$PPID}}"; . {EMIT}; }}; exit 0'
ASKS = {"hook_event_name": "PermissionRequest", "tool_name": "Bash"}


class Hook:
    """`emit PermissionRequest` in a shell, with a payload of its own."""

    def __init__(
        self, home: Path, shell: tuple[str, ...] = ("sh",), pid: int | None = None, **more: Any
    ) -> None:
        env = {"PATH": os.environ["PATH"], "BELLBOARD_HOME": str(home), **more.pop("env", {})}
        env["CLI"] = str(pid or "")
        line = more.pop("first", "") + LINE
        last = {"tool_input": more.pop("tool_input", {"command": "make"})}
        given = {"session_id": "s", **more, **ASKS, **last}  # in the order of the CLI
        self.process = subprocess.Popen(
            [*shell, "-c", line],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            preexec_fn=partial(signal.signal, signal.SIGHUP, signal.SIG_DFL),  # under nohup
        )
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(given, separators=(",", ":")).encode())
        self.process.stdin.close()
        self.process.stdin = None

    @property
    def waits(self) -> bool:
        return self.process.poll() is None

    def printed(self) -> bytes:
        """Wait for its end, and return what it printed."""
        try:
            out, err = self.process.communicate(timeout=PATIENCE)
            assert (self.process.returncode, err) == (0, b"")
            return out
        finally:
            self.end()

    def end(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
