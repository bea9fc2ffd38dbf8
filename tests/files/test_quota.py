"""Writes that fail for another reason than a full disk: a quota, or here a limit on sizes."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bellboard.hosting.connection import Connection


@contextmanager
def limited(size: int) -> Iterator[None]:
    """Let no file grow past a size: SQLite then says "disk I/O error"."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.skipif(sys.version_info < (3, 11), reason="errors of SQLite have no names")
def test_a_write_that_fails_does_not_close_the_database(tmp_path: Path) -> None:
    """Known sessions stay, and waiting events are folded once they can be written."""
    home = tmp_path / "home"
    connection = Connection(home, {})
    connection.fold(())
    connection.spool.write({"t": time.time(), "label": {"session_id": "a", "label": "x"}})
    with limited((home / "board.db-wal").stat().st_size):
        assert connection.fold(()) > 0
        assert "the disk reports an error" in connection.notes["database"]
        assert (connection.renewals, connection.has_arrived) == (1, True)
        assert list((home / "spool/new").iterdir())
    connection.trouble.until = 0.0
    while connection.fold(()) == 0.0:
        pass
    assert "database" not in connection.notes
    assert not list((home / "spool/new").iterdir())
    assert connection.renewals == 1
    connection.close()
