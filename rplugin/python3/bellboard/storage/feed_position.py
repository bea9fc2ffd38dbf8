"""Where a reader of our feed is: which database it has seen, and up to which transition."""

from __future__ import annotations

import uuid
from typing import NamedTuple

from ..core.feed import MOST, Cursor, Moved, moved_of
from .store import DATABASE, Store


class Position(NamedTuple):
    """The position of a reader that has the board as it is now."""

    at: Cursor
    moved: list[Moved]  # since its cursor
    whole: bool  # whether nothing is missing between its cursor and these


def position(store: Store, since: Cursor | None, pid: int, now: float) -> Position:
    """Return where the board is, and the transitions since a cursor.

    A database that lost transitions already sent, as after a power failure, gets a new id: its
    numbers now mean something else, and readers refuse what is older than they know.
    """
    database = known_as(store, pid, now)
    if since is not None and since.database == database and since.last > store.transition:
        database = _renamed(store, pid, now)
    at = Cursor(database, store.transition)
    known = since is not None and since.database == database
    changes = store.since(since.last, MOST) if since is not None and known else None
    moved = (moved_of(change.line) for change in changes or ())
    return Position(at, [m for m in moved if m is not None], changes is not None)


def known_as(store: Store, pid: int, now: float) -> str:
    """Return the id of the database, by which readers know a board; give it one."""
    database = store.option(DATABASE)
    if isinstance(database, str) and database.isalnum():
        return database
    return _renamed(store, pid, now)


def _renamed(store: Store, pid: int, now: float) -> str:
    database = uuid.uuid4().hex
    with store.transaction() as tx:
        tx.set_option(DATABASE, database, pid, now)
    return database


def token_of(store: Store, transition: int, pid: int, now: float) -> str:
    """Return the token with which every host of our machine asks to notify of a transition."""
    return str(Cursor(known_as(store, pid, now), transition))
