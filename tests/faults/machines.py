"""Other machines: feeds that print anything, and NATS servers that answer anything."""

from __future__ import annotations

import shlex
import time
from random import Random

import msgspec

from bellboard.core.version import VERSION
from bellboard.fleet.member import Joined
from bellboard.storage import machines
from bellboard.storage.store import Store
from faults.fault import Fault, Kind
from faults.junk import brief, changed, encoded
from faults.target import Target
from rig.machines.odd_nats import INFO, OddServer, Talk, replying
from rig.machines.ssh import set_followed

ROW = {"session_id": "f", "status": "blocked", "agent": "claude", "since": 1.8e9, "detail": "x"}
MOVED = {"id": 1, "t": 1.8e9, "session_id": "f", "from": "working", "to": "blocked", "live": True}
LINES = (
    {"type": "hello", "feed": 1, "version": VERSION, "machine": "m", "now": 1.8e9, "agents": ["x"]},
    {
        "type": "state",
        "now": 1.8e9,
        "cursor": "a.1",
        "all": ["f"],
        "sessions": [ROW],
        "whole": True,
    },
    {"type": "change", "now": 1.8e9, "cursor": "a.2", "removed": ["f"], "transitions": [MOVED]},
    {"type": "beat", "now": 1.8e9, "cursor": "a.2"},
    {"type": "reply", "id": 1, "ok": True, "why": "x"},
    {"type": "problem", "text": "x"},
)
COMMANDS = (
    *("yes", "cat /dev/zero", "yes >&2", "exit 3", "kill -STOP $$", "exec >&- 2>&-; sleep 1000"),
    *("trap '' TERM HUP; while :; do sleep 1; done", "sleep 1000 & sleep 1000 & exit 0"),
)
REPLY = {
    "type": "x",
    "error": {"code": 404, "err_code": 10059, "description": "x"},
    "state": {"last_seq": 1, "messages": 1},
    "config": {"name": "x"},
    "seq": 1,
    "stream": "x",
}


def feed(random: Random) -> Fault:
    """Follow a machine whose feed is junk, ends, hangs or never ends."""
    rows = [
        encoded(random, line if n == 0 else changed(random, line)) for n, line in enumerate(LINES)
    ]
    junk = b"".join(row[:200_000] + b"\n" for row in rows)
    command = random.choice(COMMANDS) if random.random() < 0.3 else ""

    def do(target: Target) -> None:
        path = target.home.root / "feed"
        path.write_bytes(junk)
        words = command or f"cat {shlex.quote(str(path))}; sleep 1000"
        set_followed(target.board, {"far": ["sh", "-c", words]})

    def undo(target: Target) -> None:
        set_followed(target.board, {})

    return Fault(f"a feed: {command or brief(junk, 200)}", do, undo)


def fleet(random: Random) -> Fault:
    """Join a fleet whose server replies with junk, is silent or floods."""
    body = encoded(random, changed(random, REPLY))[:500_000]
    talks: dict[str, Talk] = {
        "silent": lambda client: client.recv(1),
        "noise": lambda client: [client.sendall(INFO + b"x" * 100_000) for _ in range(2000)],
        "half a message": lambda client: [
            client.sendall(INFO + b"PONG\r\nMSG a 1 9999999999\r\n"),
            *(client.sendall(b"x" * 100_000) for _ in range(2000)),
        ],
        "an odd greeting": lambda client: client.sendall(b"INFO " + body + b"\r\n"),
    }
    name = random.choice([*talks, "", "", "", ""])
    servers: list[OddServer] = []

    def join(target: Target, joined: Joined | None) -> None:
        store = Store(target.board)
        with store.transaction() as tx:
            tx.set_option(machines.OPTION, msgspec.to_builtins(joined), 1, time.time())
        store.close()
        target.hook("UserPromptSubmit", "wakes it")

    def do(target: Target) -> None:
        servers.append(OddServer(talks.get(name) or replying(body)))
        target.undone.callback(servers[-1].close)
        join(target, Joined(url=servers[-1].url, team="t", machine="here"))

    def undo(target: Target) -> None:
        join(target, None)
        while servers:
            servers.pop().close()

    return Fault(f"a NATS server: {name or brief(body, 200)}", do, undo)


KINDS = (
    Kind("feed", make=feed, settle=2.5),
    Kind("fleet", make=fleet, settle=3.0),
)
