"""Damaged databases, under a running host or before one starts."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from random import Random

from faults.fault import EITHER, NOTHING, Fault, Kind, nothing
from faults.files import THINGS, remove
from faults.junk import NUMBERS, text
from faults.target import HEAL, Fallen, Target
from rig.waiting import eventually

TABLES = ("sessions", "transitions", "events", "applied", "claims", "options", "editors")
Damage = Callable[[Target, Random], object]


def _db(target: Target) -> sqlite3.Connection:
    return sqlite3.connect(target.board / "board.db", timeout=5, isolation_level=None)


def flips(target: Target, random: Random) -> None:
    """Flip bits of the file, and of its log."""
    for name in ("board.db", "board.db-wal"):
        _flip(target.board / name, random, random.choice([1, 3, 30]))


def _flip(path: Path, random: Random, count: int) -> None:
    size = path.stat().st_size if path.is_file() else 0
    with path.open("r+b") if size else contextlib.nullcontext() as file:
        for _ in range(count if file else 0):
            where = random.randrange(size)
            file.seek(where)
            byte = file.read(1)
            file.seek(where)
            file.write(bytes([byte[0] ^ 1 << random.randrange(8)]))


def cells(target: Target, random: Random) -> None:
    """Put any value into any cell of any table."""
    db = _db(target)
    try:
        for _ in range(random.randrange(1, 4)):
            table = random.choice(TABLES)
            columns: list[str] = []
            with contextlib.suppress(sqlite3.Error):  # an earlier damage left no database
                columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            if not columns:
                continue
            with contextlib.suppress(sqlite3.Error, OverflowError, UnicodeError):
                column = random.choice(columns)
                mark = random.choice(["?", "CAST(? AS TEXT)"])  # of bytes, text that is not UTF-8
                db.execute(f"UPDATE {table} SET {column} = {mark}", (_cell(random),))
            with contextlib.suppress(sqlite3.Error, OverflowError, UnicodeError):
                marks = ", ".join("?" * len(columns))
                db.execute(
                    f"INSERT INTO {table} VALUES ({marks})", [_cell(random) for _ in columns]
                )
    finally:
        db.close()


NOT_UTF_8 = b"\xc3\x28 no text"  # stored as text
#: Values that do not belong in a cell.
CELLS: dict[str, object] = {
    "text": "no number",
    "bytes": b"\xc1\xff no record",
    "broken text": NOT_UTF_8,
    "null": None,
    "huge": 2**63 - 1,
    "negative": -(2**63),
    "real": 1e300,
    "endless": float("inf"),
}


def _cell(random: Random) -> object:
    """Return one of those, or anything else."""
    some = random.choice(NUMBERS)
    fits = isinstance(some, int) and not -(2**63) <= some < 2**63
    more = (0 if fits else some, text(random)[:10000], random.randbytes(50), b"", b"\x81\xa1x\xc1")
    return random.choice([*CELLS.values(), *more])


def huge(target: Target, random: Random) -> None:
    """Make a cell or two larger than anything we write; all of them would fill the disk."""
    db = _db(target)
    table, column = random.choice([("options", "value"), ("sessions", "record")])
    some = f"(SELECT rowid FROM {table} ORDER BY random() LIMIT {random.randrange(1, 3)})"
    size = random.randrange(1, 40) << 20
    with contextlib.suppress(sqlite3.Error):  # an earlier damage left no database
        db.execute(f"UPDATE {table} SET {column} = zeroblob({size}) WHERE rowid IN {some}")
    db.close()


def tables(target: Target, random: Random) -> None:
    """Drop or change a table, or add a program that SQLite runs when somebody writes to it."""
    table = random.choice(TABLES)
    db = _db(target)
    with contextlib.suppress(sqlite3.Error):
        db.execute(
            random.choice(
                [
                    f"DROP TABLE {table}",
                    f"ALTER TABLE {table} ADD COLUMN more TEXT",
                    f"ALTER TABLE {table} RENAME TO other",
                    f"DELETE FROM {table}",
                    "PRAGMA journal_mode = DELETE",
                    "PRAGMA auto_vacuum = 2; VACUUM",
                    f"CREATE TRIGGER x BEFORE INSERT ON {table} BEGIN SELECT RAISE(IGNORE); END",
                    f"CREATE TRIGGER x AFTER INSERT ON {table} BEGIN SELECT sum(n) FROM"
                    " (WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c)"
                    " SELECT n FROM c); END",
                    f"CREATE UNIQUE INDEX x ON {table} (1)",
                ]
            )
        )
    db.close()


def removed(target: Target, random: Random) -> None:
    """Remove the database, or one of its files."""
    both = ("-wal", "-shm")
    for suffix in random.choice([("",), both, ("", *both), ("-wal",), ("-shm",)]):
        (target.board / f"board.db{suffix}").unlink(missing_ok=True)


def emptied(target: Target, random: Random) -> None:
    """Empty its log in place."""
    with contextlib.suppress(FileNotFoundError):
        os.truncate(target.board / "board.db-wal", 0)


def replaced(target: Target, random: Random) -> None:
    """Replace it: empty, junk, another kind of file, or a copy of itself."""
    path = target.board / "board.db"
    copy = target.board / "copy"
    how = random.randrange(5)
    if how == 0 and path.is_file():
        copy.write_bytes(path.read_bytes())
    elif how == 1:
        copy.write_bytes(b"")
    elif how == 2:
        copy.write_bytes(random.randbytes(10_000))
    elif how == 3:
        copy.write_bytes(b"SQLite format 3\0" + random.randbytes(5000))
    else:
        # another user's file and a link are refused until they are moved away: strangers.py
        left_out = ("zero", "a full folder", "another user's file", "a link")
        kind = random.choice([k for k in THINGS if not any(part in k for part in left_out)])
        remove(path)
        with contextlib.suppress(FileExistsError):  # a host may make it first
            THINGS[kind](path)
        return
    copy.replace(path)


def cut(target: Target, random: Random) -> None:
    """Truncate it, or its log."""
    path = target.board / random.choice(["board.db", "board.db-wal"])
    if path.is_file() and not path.is_symlink():
        os.truncate(path, random.randrange(path.stat().st_size + 1))


DAMAGES: dict[str, Damage] = {
    "flipped bits": flips,
    "junk in cells": cells,
    "huge cells": huge,
    "other tables": tables,
    "removed": removed,
    "emptied log": emptied,
    "replaced": replaced,
    "cut": cut,
}


def database(random: Random) -> Fault:
    """Damage the database while a host runs, or before it starts."""
    what = random.choice(list(DAMAGES))
    alive = random.random() < 0.6
    chance = random.randrange(1 << 30)

    def do(target: Target) -> None:
        for n in range(5):
            target.hook("UserPromptSubmit", f"d{n}")
        target.canary()
        if not alive:
            target.stop()
        DAMAGES[what](target, Random(chance))
        if not alive:
            target.start()
            target.up()

    return Fault(
        f"{what} ({chance}), {'of a live host' if alive else 'before the start'}",
        do,
        survives=NOTHING,
        mend=Target.restart if alive else nothing,  # the next host finds it
        refuses=EITHER if alive else "",  # it waits while the first host has it open
    )


def kept(random: Random) -> Fault:
    """Cut or overwrite a file of a live host in place: it lives on, and the next one folds all.

    What was only there is lost, and so is what the first host folds from then on.
    """
    suffix, blank = random.choice(["", "-wal", "-wal"]), random.random() < 0.3
    share = random.choice([0.0, random.random()])

    def do(target: Target) -> None:
        target.hook("UserPromptSubmit", "before")
        target.canary()
        rests = lambda: not [*(target.board / "spool/new").iterdir()]  # noqa: E731
        eventually(rests, "its commit")
        bad = target.board / "spool/bad"
        before = {*bad.glob("*.why")}  # of other cases
        path = target.board / f"board.db{suffix}"
        size = path.stat().st_size
        if blank and suffix == "-wal":
            with path.open("r+b") as file:
                file.write(bytes(size))
        else:
            os.truncate(path, int(size * share) if suffix != "" else 0)
        target.hook("UserPromptSubmit", "later")
        target.canary()
        eventually(rests, "its commit")
        target.process.kill()
        target.process.wait()
        target.hook("UserPromptSubmit", "last")  # while no host runs
        target.start()
        target.up()
        target.canary()
        target.folded("last")
        eventually(lambda: _is_sound(target), "a sound database", within=HEAL)
        eventually(rests, "its commit")
        for why in {*bad.glob("*.why")} - before:
            raise Fallen(f"an event was set aside: {why.read_text()}")

    how = "overwritten" if blank and suffix == "-wal" else f"cut to {share:.2f}"
    return Fault(f"board.db{suffix} {how}", do, survives=NOTHING)


HEAD = 90  # bytes
VERSION = range(60, 64)  # of the schema version: a newer one is left to a newer program


def byte(random: Random) -> Fault:
    """Flip one bit before the start, often in the head of the file."""
    share = random.choice([None, random.random(), random.random(), random.random()])
    at = random.choice([n for n in range(HEAD) if n not in VERSION])
    bit = 1 << random.randrange(8)

    def do(target: Target) -> None:
        target.stop()
        data = bytearray((target.board / "board.db").read_bytes())
        where = at if share is None else HEAD + int((len(data) - HEAD) * share)
        data[where] ^= bit
        (target.board / "board.db").write_bytes(data)
        target.start()
        target.up()
        target.canary(HEAL)

    where = f"byte {at}" if share is None else f"{share:.2%}"
    return Fault(f"bit {bit} at {where}", do, survives=NOTHING, refuses=EITHER)


def hundred(random: Random) -> Fault:
    """Flip a hundred bits of a full database at once: it is set aside, and doctor names it."""
    chance = random.randrange(1 << 30)

    def do(target: Target) -> None:
        for n in range(200):
            target.hook("UserPromptSubmit", f"d{n % 20}", prompt="x" * 300)
        target.canary(HEAL)
        with contextlib.closing(_db(target)) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        _flip(target.board / "board.db", Random(chance), 100)
        target.canary()
        target.restart()  # a running host reads only what it needs
        target.up()
        target.canary()
        eventually(lambda: _is_sound(target), "a sound database", within=HEAL)
        if "damaged database kept" not in target.doctor():
            raise Fallen("doctor does not name the damaged database")

    return Fault(f"a hundred flipped bits ({chance})", do, survives=NOTHING)


def _is_sound(target: Target) -> bool:
    with contextlib.closing(_db(target)) as db, contextlib.suppress(sqlite3.Error):
        return bool(db.execute("PRAGMA integrity_check").fetchone()[0] == "ok")
    return False


KINDS = (
    Kind("database", make=database, within=HEAL),
    Kind("kept", make=kept, within=HEAL),
    Kind("byte", make=byte, batch=12, within=HEAL),
    Kind("hundred", make=hundred),
)
