"""Damage that only the check of the whole file finds, while another host has the database open."""

from __future__ import annotations

import os
import time
from pathlib import Path

from bellboard.hosting.connection import Connection
from bellboard.hosting.host import Housekeeping
from bellboard.hosting.jobs import Attempts
from bellboard.storage.set_aside import kept_databases
from bellboard.storage.store import Store
from rig.waiting import eventually

PAGE = 4096


def damage(home: Path) -> None:
    """Fill the database with a log, and spoil a page in the middle of it."""
    store = Store(home)
    with store.transaction():
        row = "INSERT INTO events VALUES (NULL,?,'f','r',1,'w',NULL,NULL,?)"
        store.database.db.executemany(row, [(f"s{i}", b"x" * 200) for i in range(4000)])
    store.close()
    path = home / "board.db"
    data = bytearray(path.read_bytes())
    leaves = [at for at in range(PAGE, len(data), PAGE) if data[at] == 0x0A]
    at = leaves[len(leaves) // 2]
    data[at + 200 : at + 3200] = b"\xff" * 3000
    path.write_bytes(data)


def test_it_stays_in_use_and_is_set_aside_once_the_others_have_ended(tmp_path: Path) -> None:
    """A rescan does not open a damaged database again, which would end all links to machines."""
    home = tmp_path / "home"
    connection = Connection(home, {})
    connection.fold(())
    connection.close()
    damage(home)
    other, neighbour = Store(home), home / "hosts" / str(os.getppid())
    neighbour.touch()
    connection.fold(())
    assert connection.shared is not None
    connection.shared.store.pruning.checked = False
    upkeep = Housekeeping(connection, Attempts())

    def rescan() -> None:
        connection.trouble.until = 0.0
        connection.fold(())
        upkeep.expect()
        upkeep.run()

    def noted() -> bool:
        rescan()
        return "damage" in connection.notes

    eventually(noted, "the damage")
    rescan()
    opened, until = connection.renewals, time.monotonic() + 0.5
    while time.monotonic() < until:
        rescan()
    assert connection.renewals == opened
    assert str(os.getppid()) in connection.notes["damage"]
    other.close()
    neighbour.unlink()

    def is_set_aside() -> bool:
        rescan()
        return bool(kept_databases(home)) and "damage" not in connection.notes

    eventually(is_set_aside, "a new database")
    connection.close()
