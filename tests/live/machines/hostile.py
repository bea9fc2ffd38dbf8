"""Feeds of a hostile machine: hostile.py KIND, in place of the command that reaches a machine."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any, Final

DEADLY: Final = (
    "\x1b]0;stolen\x07\x1b[2J\x1b[31mred\u202etxt.exe\x00\r\n<b>%{x} `id` $(id) #[fg=red]"
)
HUGE: Final = 1 << 30
NOW: Final = time.time()


def line(kind: str, **more: Any) -> bytes:
    return json.dumps({"type": kind, "now": time.time(), **more}).encode() + b"\n"


def hello(**more: Any) -> bytes:
    return line("hello", **{"feed": 1, "version": "0.1.0", "machine": "m", "boot": "b", **more})


def row(sid: str = "s", **more: Any) -> dict[str, Any]:
    given = {"session_id": sid, "status": "blocked", "since": NOW, "updated": NOW}
    return {**given, "agent": "claude", "kind": "permission", "project": "p", **more}


def state(*rows: dict[str, Any], **more: Any) -> bytes:
    ids = [r.get("session_id") for r in rows]
    given = {"cursor": "db.1", "whole": False, "sessions": list(rows), "transitions": []}
    return line("state", **{**given, "all": ids, **more})


def say(*texts: bytes) -> None:
    for text in texts:
        rest = memoryview(text)
        while rest:
            rest = rest[os.write(1, rest) :]


def stay() -> None:
    while True:
        time.sleep(5)
        say(line("beat", cursor="db.1"))


def calm() -> None:
    """A machine that behaves."""
    say(hello(), state(row("calm")))
    stay()


def junk() -> None:
    """Bytes that are not a line of a feed, among lines that are."""
    say(b"Welcome to the machine!\n", os.urandom(100_000), b'\n{}\n[]\nnull\n{"type":7}\n')
    say(hello(), os.urandom(5000), b"\n", state(row("good")))
    say(b'{"type":"change","sessions":[7,null,{"session_id":5},{}],"removed":{"a":1}}\n')
    stay()


def longline() -> None:
    """A line of 1 GB."""
    say(hello(), state(row("good")))
    block = b"x" * (1 << 20)
    for _ in range(HUGE >> 20):
        say(block)
    stay()


def version() -> None:
    """A hello of another protocol."""
    say(hello(feed=2), state(row("good")))
    stay()


def endless() -> None:
    """Lines that are fine, as fast as they can be read."""
    say(hello(), state(row("good")))
    count = 1
    while True:
        count += 1
        changed = row("good", status=("blocked", "working")[count % 2], detail=str(count))
        moved = {"id": count, "t": time.time(), "session_id": "good", "from": "working"}
        moved |= {"to": changed["status"], "live": True}
        given = {"sessions": [changed], "removed": [], "transitions": [moved]}
        say(line("change", cursor=f"db.{count}", **given))


def many() -> None:
    """More sessions than a machine may have."""
    say(hello(), state(*(row(f"s{n}") for n in range(5000))))
    stay()


def churn() -> None:
    """New sessions without end, each gone the next moment."""
    say(hello(), state(row("good")))
    count = 0
    while True:
        count += 1
        given = {"sessions": [row(f"n{count}")], "removed": [f"n{count - 1}"], "transitions": []}
        say(line("change", cursor=f"db.{count}", **given))
        time.sleep(0.001)


def names() -> None:
    """Sessions that claim to be those of others."""
    claimed = ("dev/claude/s1", "../../etc/passwd", "mine", "dev", "a/b/c/d/e", "-rf", "", " ")
    told = [row(sid, machine="dev", project="p") for sid in claimed]
    told.append(row("where", cwd="/etc", tty="/dev/pts/0", tmux="/tmp/x,1,0", pane="%0", pid=1))
    told[-1] |= {"nvim": "/tmp/nvim.sock", "transcript": "/etc/shadow", "kitty": "1"}
    say(hello(machine="dev"), state(*told))
    stay()


def ansi() -> None:
    """Control characters in each field."""
    texts = ["kind", "tool", "detail", "request", "name", "title", "label", "project", "branch"]
    texts += ["repository", "mode", "model", "ssh", "terminal"]
    fields = [*texts, "session_id", "agent", "status"]
    told = [row(f"f{n}", **{field: DEADLY}) for n, field in enumerate(fields)]
    told.append(row("all", **dict.fromkeys(texts, DEADLY)))
    told.append(row("kinds", **{key: {"a": [1, None]} for key in texts}))
    told.append(row("numbers", since=1e308, updated=-1, urgency=10**30, context=10**18, pid=-5))
    say(hello(version=DEADLY, machine=DEADLY, user=DEADLY, agents=[DEADLY]), state(*told))
    stay()


def deep() -> None:
    """Values within values."""
    say(hello(), b'{"type":"state","sessions":' + b"[" * 400_000 + b"]" * 400_000 + b"}\n")
    say(state(row("good")))
    stay()


def future() -> None:
    """A clock a year ahead, and one that jumps."""
    ahead = NOW + 365 * 86400
    say(hello(now=ahead), state(row("good", since=ahead, updated=ahead), now=ahead))
    say(line("beat", cursor="db.1", now=-5.0), line("beat", cursor="db.1", now=1e300))
    stay()


def silent() -> None:
    """No output at all."""
    time.sleep(3600)


def half() -> None:
    """A line that never ends, a byte a second."""
    say(hello(), state(row("good")))
    while True:
        say(b"{")
        time.sleep(1)


def problem() -> None:
    say(line("problem", text=DEADLY * 100))


def complains() -> None:
    """An endless complaint on standard error."""
    say(hello(), state(row("good")))
    while True:
        os.write(2, (DEADLY * 50).encode())


KINDS: Final[dict[str, Callable[[], None]]] = {
    made.__name__: made
    for made in (calm, junk, longline, version, endless, many, churn, names, ansi, deep, future)
} | {made.__name__: made for made in (silent, half, problem, complains)}

if __name__ == "__main__":
    try:
        KINDS[sys.argv[1]]()
    except (BrokenPipeError, KeyboardInterrupt):
        os._exit(0)
