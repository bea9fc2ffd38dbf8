"""Folders of the state folder that somebody removes while a host runs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bellboard.hosting.connection import Connection
from bellboard.hosting.host import Housekeeping
from bellboard.hosting.jobs import Attempts
from bellboard.storage.spool import ADDED, BELOW

pytestmark = pytest.mark.files


@pytest.mark.parametrize("name", [*BELOW[1:], *ADDED])
def test_a_removed_folder_comes_back(tmp_path: Path, name: str) -> None:
    """With the next rescan, and what was to be set aside meanwhile is not forgotten."""
    home = tmp_path / "home"
    connection = Connection(home, {})
    connection.fold(())
    upkeep = Housekeeping(connection, Attempts())
    shutil.rmtree(home / name)
    if name == "spool/bad":
        junk = home / "spool/new/0001.x"
        junk.write_bytes(b"junk")
        connection.fold(())
        assert junk.exists()
    upkeep.expect()
    upkeep.run()
    assert (home / name).is_dir()
    assert connection.spool.hosts.alive() == [connection.pid]
    connection.fold(())
    assert not list((home / "spool/new").glob("*.x"))
    connection.close()
