"""Reuse the pid of a process in a terminal; run this in a pid namespace of its own.

Elsewhere, pids that other programs just gave up would be used again as well.
"""

from __future__ import annotations

import os
import pty
import signal
import time
from pathlib import Path
from typing import Any

from bellboard.hosting import decode
from bellboard.storage.event_file import Item
from bellboard.system.processes import tty_of
from rig.waiting import eventually

LAST_PID = Path("/proc/sys/kernel/ns_last_pid")
STOP = b'{"session_id":"s","hook_event_name":"Stop"}'


def in_a_terminal(pid: int = 0) -> tuple[int, int]:
    """Start a process in a new terminal, with that pid if any; return its pid and the terminal."""
    if pid:
        LAST_PID.write_text(str(pid - 1))
    child, fd = pty.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    assert pid in (0, child)
    eventually(lambda: tty_of(child))
    return child, fd


def end(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def main() -> None:
    decode.LASTING = 0.01  # type: ignore[misc]
    decoder = decode.Decoder()
    header: Any = {"agent": "claude"}  # the spool keeps equal ones as one

    def terminal_of(pid: int, ago: float = 0.0) -> str | None:
        header["pid"], t = pid, time.time() - ago
        item: Any = Item("1.Stop", t, "hook", "Stop", header, STOP, False)
        (event,) = decoder.events(item, t)
        return event.origin.tty

    pid, _ = in_a_terminal()
    keeper = os.open(tty_of(pid), os.O_RDWR | os.O_NOCTTY)  # so that its name is not used again
    assert os.ttyname(keeper) == terminal_of(pid)
    end(pid)
    again, _ = in_a_terminal(pid)
    time.sleep(0.02)
    assert terminal_of(again) == tty_of(again) != os.ttyname(keeper)
    time.sleep(0.02)
    assert terminal_of(again, ago=3600.0) is None, "an event of an earlier process"


if __name__ == "__main__":
    main()
