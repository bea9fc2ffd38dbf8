"""kill -9 between any two steps of a fold, one after the other: faulty.py HOME.

A forked board counts every call and every statement as a step, and kills itself at its Nth step.
Then a healthy one continues, as after a restart.  For every N, the result is printed as a line of
JSON; the last N is the first one that the forked one did not reach.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

from bellboard.hosting.turn import SharedBoard
from bellboard.storage.spool import Spool
from bellboard.storage.store import Store
from rig.host.hosting import agrees_with_its_log, from_files, made, put, put_raw, statuses

START = 1_800_000_000.0
LATER = START + 100

Step = Callable[[str], None]


class Counted:
    """Counts steps, and kills the process at one of them."""

    def __init__(self, dies_at: int, told: int) -> None:
        self.dies_at, self.told, self.count = dies_at, told, 0

    def __call__(self, name: str) -> None:
        self.count += 1
        if self.count == self.dies_at:
            os.write(self.told, name.encode())
            os.kill(os.getpid(), signal.SIGKILL)


class Connection:
    """A connection to SQLite with a step before and after each statement."""

    def __init__(self, db: Any, step: Step) -> None:
        self._db, self._step = db, step

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    def execute(self, sql: str, *values: Any) -> Any:
        return self._around(sql, lambda: self._db.execute(sql, *values))

    def executemany(self, sql: str, rows: Iterable[Any]) -> Any:
        return self._around(sql, lambda: self._db.executemany(sql, rows))

    def _around(self, sql: str, do: Callable[[], Any]) -> Any:
        if sql.startswith(("PRAGMA", "SELECT")):  # they change nothing
            return do()
        self._step(f"before {sql[:22]}")
        done = do()
        self._step(f"after {sql[:22]}")
        return done


def stepping(spool: Spool, step: Step) -> Spool:
    """Add a step before and after every method of the spool."""

    class Stepping(Spool):
        def claim_slots(self) -> None:
            super().claim_slots()
            step("after claim_slots")

        def scan(self) -> list[str]:
            found = super().scan()
            step("after scan")
            return found

        def read(self, name: str) -> Any:
            item = super().read(name)
            step("after read")
            return item

        def set_aside(self, name: str, reason: str, detail: str = "") -> None:
            step("before set_aside")
            super().set_aside(name, reason, detail)
            step("after set_aside")

        def unlink(self, names: Iterable[str], standing: Collection[str] = ()) -> list[str]:
            left = []
            for name in names:
                left += super().unlink([name], standing)
                step("after unlink")
            return left

    return Stepping(spool.home)


def fill(spool: Spool) -> set[str]:
    """Write three sessions, junk, evidence and a slot; return the names that must be folded."""
    names = set()
    for n in range(3):
        names.add(put(spool, "UserPromptSubmit", f"s{n}", START + n))
        names.add(put(spool, "PreToolUse", f"s{n}", START + 10 + n, tool_name="Bash"))
    names.add(put(spool, "Stop", "s0", START + 20))
    names.add(put(spool, "PermissionRequest", "s1", START + 21, tool_name="Bash", tool_use_id="t"))
    spool.write({"t": START + 22, "view": {"session_id": "s0"}, "viewer": "me"}, "a view")
    put_raw(spool, b"junk", START + 15)
    put_raw(spool, b'{"no": "time"}', START + 16)
    late = put(spool, "PostToolUse", "s2", START + 23, tool_name="Bash")
    (spool.new / late).rename(spool.slot / "7.PostToolUse")
    return names


def run(shared: SharedBoard, start: float) -> None:
    """Fold everything; then again, so that names are forgotten."""
    for now in (start, start + 1, start + 2):
        while shared.turn(now).more:
            pass
        shared.sweep(now + 100)
        put(shared.spool, "Notification", "s2", now, message=str(now))


def attempt(home: Path, dies_at: int) -> dict[str, Any]:
    """Die at that step, start again, and return the result."""
    shutil.rmtree(home, ignore_errors=True)
    spool = made(home)
    names = fill(spool)
    Store(home).close()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        step = Counted(dies_at, writer)
        store = Store(home)
        store.database.db = Connection(store.database.db, step)  # type: ignore[assignment]
        run(SharedBoard(stepping(spool, step), store, watching=True), LATER)
        os._exit(0)
    os.close(writer)
    at = os.read(reader, 100).decode()
    os.close(reader)
    os.waitpid(child, 0)
    shared = SharedBoard(spool, Store(home), watching=True)
    run(shared, LATER + 10)
    log = from_files(shared.store.log())
    counted = Counter(row.file for row in log)
    slot = [name for name in counted if name.startswith("7.PostToolUse.")]
    agrees_with_its_log(shared)
    bad = [p for p in (home / "spool" / "bad").iterdir() if p.suffix != ".why"]
    result = {
        "at": at,
        "twice": [name for name, times in counted.items() if times > 1],
        "missing": sorted(names - counted.keys()) + (["the slot"] if len(slot) != 1 else []),
        "views": sum(row.event.kind == "view" for row in log),
        "bad": sum(p.name[0].isdigit() for p in bad),
        "statuses": statuses(shared.board),
        "waiting": len(list(spool.new.iterdir())) - 1,  # the last one that `run` puts
        "applied": [r[0] for r in shared.store.database.all("SELECT name FROM applied")],
    }
    shared.store.close()
    return result


def main() -> None:
    home = Path(sys.argv[1])
    n, dead = 0, True
    while dead:
        n += 1
        result = attempt(home, n)
        dead = bool(result["at"])
        sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
