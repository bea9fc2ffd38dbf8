"""Measure the hook against what cannot be less: `.venv/bin/python bench/hook.py [--runs N]`.

In dash and busybox that is /bin/true, in bash the same bash running an empty script: most of its
time is its own start.  The two alternate, and the result is the ratio of their medians, so that a
noisy machine slows both.
Both are started by `posix_spawn` (a vfork in glibc: the size of this process does not matter), and
timed from before the spawn to after the wait.  Standard input is a socket, as in Claude Code: 2 kB
are in it from the start, 1 MB is written by a thread.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

EMIT = str(Path(__file__).resolve().parents[1] / "hooks" / "emit")
TRUE = ["/bin/true"] if Path("/bin/true").exists() else ["/usr/bin/true"]  # macOS
SMALL = b'{"session_id":"bench","hook_event_name":"Stop","x":"' + b"x" * 1946 + b'"}\n'
LARGE = b'{"session_id":"bench","hook_event_name":"PostToolUse","x":"' + b"x" * (1 << 20) + b'"}\n'
BASH = (2.5, 3.5, 2.5, 3.5)  # `sh -c '…'` starts two of them
AT_ONCE = 64 * 1024  # fits into the buffer of a socket on every system


def seconds(argv: Sequence[str], payload: bytes, env: dict[str, str]) -> float:
    """Return the wall time of one run."""
    ours, theirs = socket.socketpair()
    writer = None
    if len(payload) <= AT_ONCE:
        ours.sendall(payload)
        ours.shutdown(socket.SHUT_WR)
    else:
        writer = threading.Thread(target=_feed, args=(ours, payload))
        writer.start()
    actions = [
        (os.POSIX_SPAWN_DUP2, theirs.fileno(), 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    begin = time.perf_counter()
    pid = os.posix_spawn(argv[0], argv, env, file_actions=actions)
    _, status = os.waitpid(pid, 0)
    end = time.perf_counter()
    theirs.close()
    if writer:
        writer.join()
    ours.close()
    if status:
        sys.exit(f"{argv} ended with status {status}")
    return end - begin


def _feed(end: socket.socket, payload: bytes) -> None:
    try:
        end.sendall(payload)
        end.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # /bin/true reads nothing


def ratio(
    argv: list[str], least: list[str], payload: bytes, env: dict[str, str], new: Path, runs: int
) -> tuple[float, float, float]:
    """Return the medians of hook and least, and their ratio; check that each run left its event."""
    hook, floor = [], []
    for _ in range(runs + 5):  # the first five warm the caches
        floor.append(seconds(least, SMALL, env))
        hook.append(seconds(argv, payload, env))
        names = list(new.iterdir())
        if len(names) != 1:
            sys.exit(f"{argv}: {len(names)} events instead of one")
        names[0].unlink()
    a, b = statistics.median(hook[5:]), statistics.median(floor[5:])
    return a, b, a / b


def main() -> int:
    parser = argparse.ArgumentParser(description="the hook against what cannot be less")
    parser.add_argument("--runs", type=int, default=300)
    runs = parser.parse_args().runs
    home = Path(tempfile.mkdtemp(prefix="bellboard-bench-"))
    new = home / "spool" / "new"
    for name in ("spool/tmp", "spool/new", "spool/slot", "hosts"):
        (home / name).mkdir(parents=True)
    (home / "hosts" / str(os.getpid())).touch()
    # As large as a real environment, because every exec copies it.
    env = {f"BENCH_{i}": "x" * 60 for i in range(40)}
    env |= {"PATH": os.environ["PATH"], "HOME": str(home), "BELLBOARD_HOME": str(home)}
    env |= {"TMUX": "/tmp/tmux-1000/default,1,0", "TMUX_PANE": "%1", "LANG": "en_US.UTF-8"}

    shells = [(name, shutil.which(name)) for name in ("dash", "bash", "busybox")]
    missing = [name for name, path in shells if path is None]
    failed = False
    print(
        f"{'shell':8} {'run as':22} {'payload':>7} {'hook ms':>8} {'least ms':>8} {'ratio':>6} bar"
    )
    for name, path in shells:
        if path is None:
            continue
        # As /bin/sh: under its own name, with -c and a socket as input, bash assumes that rshd
        # started it, and reads ~/.bashrc (80 ms on this machine).
        shell = [path, "sh"] if name == "busybox" else [str(home / name / "sh")]
        (home / name).mkdir()
        (home / name / "sh").symlink_to(path)
        direct = [*shell, EMIT, "PostToolUse", str(os.getpid())]
        line = f'{" ".join(shell)} {EMIT} PostToolUse "$PPID"'
        empty = home / name / "empty"
        empty.touch()
        least, bars = (TRUE, (5, 6, 6, 10)) if name != "bash" else ([*shell, str(empty)], BASH)
        ways = (
            ("direct", direct, SMALL),
            ("sh -c '…'", [*shell, "-c", f"{line}; exit 0"], SMALL),
            ("sh -c '. …'", [*shell, "-c", f"set -- PostToolUse; . {EMIT}"], SMALL),
            ("direct", direct, LARGE),
        )
        for (way, argv, payload), bar in zip(ways, bars, strict=True):
            many = runs if payload is SMALL else runs // 3
            a, b, times = ratio(argv, least, payload, env, new, many)
            ok = times <= bar
            failed |= not ok and name != "busybox"  # which is reported
            size = "2 kB" if payload is SMALL else "1 MB"
            print(
                f"{name:8} {way:22} {size:>7} {a * 1e3:8.2f} {b * 1e3:8.2f} {times:6.2f} "
                f"≤ {bar} {'pass' if ok else 'FAIL'}",
                flush=True,
            )
    shutil.rmtree(home)
    for name in missing:
        print(f"{name}: not installed, not measured (apt-get install {name})")
    return 1 if failed or missing else 0


if __name__ == "__main__":
    sys.exit(main())
