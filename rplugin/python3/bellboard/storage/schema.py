"""The tables of board.db, and how to migrate an older database."""

from __future__ import annotations

import contextlib
import functools
import sqlite3
from collections.abc import Mapping
from typing import Final

SCHEMA: Final = 2
UNLIKELY: Final = 1000  # no released schema gets that high

#: Schema → the statements that migrate to it.  A released migration is never changed.
MIGRATIONS: Final[Mapping[int, str]] = {
    1: """
    CREATE TABLE sessions (
      session_id TEXT PRIMARY KEY, revision INTEGER NOT NULL, listed INTEGER NOT NULL,
      last REAL NOT NULL, record BLOB
    ) WITHOUT ROWID;
    CREATE INDEX sessions_by_revision ON sessions (revision);
    CREATE TABLE transitions (
      id INTEGER PRIMARY KEY AUTOINCREMENT, t REAL NOT NULL, session_id TEXT NOT NULL,
      before TEXT, after TEXT, rule TEXT NOT NULL, why TEXT NOT NULL, live INTEGER NOT NULL
    );
    CREATE INDEX transitions_by_time ON transitions (t);
    CREATE TABLE events (
      id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, file TEXT NOT NULL,
      rule TEXT NOT NULL, taken INTEGER NOT NULL, why TEXT NOT NULL,
      before TEXT, after TEXT, event BLOB NOT NULL
    );
    CREATE INDEX events_by_session ON events (session_id);
    CREATE TABLE applied (name TEXT PRIMARY KEY, t REAL NOT NULL) WITHOUT ROWID;
    CREATE TABLE claims (
      transition_id INTEGER NOT NULL, effect TEXT NOT NULL, pid INTEGER NOT NULL, t REAL NOT NULL,
      PRIMARY KEY (transition_id, effect)
    ) WITHOUT ROWID;
    CREATE TABLE options (
      key TEXT PRIMARY KEY, value BLOB NOT NULL, pid INTEGER NOT NULL, t REAL NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE editors (
      pid INTEGER PRIMARY KEY, server TEXT NOT NULL, tmux TEXT NOT NULL, pane TEXT NOT NULL,
      focused REAL NOT NULL
    );
    """,
    2: """
    CREATE TABLE IF NOT EXISTS damaged (
      id INTEGER PRIMARY KEY, t REAL NOT NULL, source TEXT NOT NULL, name TEXT NOT NULL,
      why TEXT NOT NULL, row BLOB NOT NULL
    )
    """,
}


def version_of(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def altered(db: sqlite3.Connection, schema: int, migrations: Mapping[int, str]) -> str:
    """Return what differs from what the migrations made, or "".

    A trigger or a view is a program: it can drop what we write, or never end.
    """
    theirs, ours = _objects(db), _made(tuple(migrations[n] for n in range(1, schema + 1)))
    return ", ".join(sorted({name for _, name, _ in theirs ^ ours}))


@functools.cache
def _made(migrations: tuple[str, ...]) -> frozenset[tuple[str, str, str]]:
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        for migration in migrations:
            db.executescript(migration)
        return _objects(db)


def _objects(db: sqlite3.Connection) -> frozenset[tuple[str, str, str]]:
    """Return all but SQLite's own, which no statement can change."""
    query = "SELECT type, name, coalesce(sql, '') FROM sqlite_master WHERE name NOT GLOB 'sqlite_*'"
    return frozenset(db.execute(query))


def migrate(db: sqlite3.Connection, schema: int, migrations: Mapping[int, str]) -> None:
    """Migrate an older database completely or not at all; leave a newer one alone."""
    if version_of(db) >= schema:
        return
    db.execute("BEGIN IMMEDIATE")  # by now, another host may have done it
    try:
        made = version_of(db)
        if made == 0 and db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
            raise sqlite3.DatabaseError("it has tables but no schema version")
        for version in range(made + 1, schema + 1):
            for statement in migrations[version].split(";"):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {version}")
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise
