"""What is our own: the versions, the state folder with its spool, the database."""

from __future__ import annotations

import os
import sqlite3
import stat
import sys
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from itertools import takewhile
from pathlib import Path
from typing import Final

import msgspec

from ..core import words
from ..core.options import Options, options_of
from ..core.version import VERSION
from ..storage import ground
from ..storage.database import Busy, Damaged
from ..storage.schema import SCHEMA, version_of
from ..storage.spool import Spool
from ..storage.store import Store
from ..system.mounts import network_of
from ..system.processes import argv_of, is_alive
from .fact import Fact, error, info, ok, warn

#: The packages that this one needs, and from which version on.
NEEDED: Final = {
    "pynvim": (0, 6),
    "msgpack": (1, 0, 5),
    "msgspec": (0, 19),
    "watchfiles": (1, 0),
    "psutil": (5, 9),
    "rich": (13,),
}
BEHIND: Final = 1000  # events that wait although a host lives: it does not keep up, or hangs
CHECK: Final = 3.0  # seconds; 100 MB take a third of one
LARGE: Final = 256 << 20  # bytes of a database; that of a busy month has 40 MB

# ---------------------------------------------------------------- versions


def versions() -> Iterator[Fact]:
    """This package, Python, what it needs, and whether there is only one of it."""
    package = Path(__file__).resolve().parents[1]
    root = package.parents[2]
    with_editor = (root / "lua" / "bellboard" / "init.lua").is_file()
    yield ok(f"bellboard {VERSION} in {root if with_editor else package}")
    if not with_editor:
        yield info("installed without the Neovim plugin: the commands and `serve` work alone")
    python = ".".join(map(str, sys.version_info[:3]))
    yield ok(f"Python {python}: {sys.executable}")
    yield _packages()
    installed = _version_of("bellboard")
    if installed not in (None, VERSION):
        yield warn(
            f"another bellboard, {installed}, is installed for this Python",
            "python -m pip install --upgrade bellboard, or uninstall it",
        )


def _packages() -> Fact:
    found = {name: _version_of(name) for name in NEEDED}
    lacking = [
        f"{name} {there or 'is missing'}"
        for name, there in found.items()
        if there is None or _numbers(there) < NEEDED[name]
    ]
    if lacking:
        needed = " ".join(f"'{n}>={'.'.join(map(str, v))}'" for n, v in NEEDED.items())
        return error(f"packages: {', '.join(lacking)}", f"{sys.executable} -m pip install {needed}")
    return ok(", ".join(f"{name} {there}" for name, there in found.items()))


def _version_of(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, takewhile(str.isdigit, text.split("."))))


# ---------------------------------------------------------------- the state folder


def state(home: Path) -> Iterator[Fact]:
    """Its folder, its spool, and who serves it."""
    try:
        status = home.stat()
    except FileNotFoundError:
        yield info(f"{home} is not there yet: the first Neovim, or `bellboard serve`, makes it")
        return
    except OSError as e:
        advice = "set BELLBOARD_HOME to a folder that is yours"
        yield error(f"{home} cannot be reached: {e.strerror}", advice)
        return
    if status.st_uid != os.geteuid():
        yield error(f"{home} is another user's", "set BELLBOARD_HOME to a folder of your own")
        return
    try:
        ground.judge(home)
    except (ground.Refused, OSError) as e:
        yield error(str(e), "set BELLBOARD_HOME to a folder of your own")
    if stat.S_IMODE(status.st_mode) & 0o077:
        yield warn(f"{home} can be read by others", f"chmod 700 {home}")
    else:
        yield ok(f"{home}, yours alone")
    if network := network_of(home):
        yield warn(
            f"{home} is on {network}, a network file system: slower, and less safe",
            "set BELLBOARD_HOME to a folder on this machine",
        )
    spool = Spool(home)
    hosts = spool.alive_hosts()
    if hosts:
        told = ", ".join(f"{pid} ({_program(pid)})" for pid in hosts)
        yield ok(f"{words.amount(len(hosts), 'host')}: {told}")
        for pid in hosts:
            for about, note in spool.notes_of(pid).items():
                yield warn(words.plain(f"host {pid}: {about}: {note}"), "")
    else:
        yield info("no host lives now: events wait in the spool for the next Neovim")
    yield from _spool(spool, bool(hosts))


def _spool(spool: Spool, served: bool) -> Iterator[Fact]:
    counts = {k: v for k, v in spool.counts().items() if isinstance(v, int)}
    waiting = words.amount(counts["pending"], "event")
    if served and counts["pending"] > BEHIND:
        yield warn(f"{waiting} wait though a host lives", "it hangs, or does not keep up: end it")
    else:
        yield ok(f"spool: {waiting} waiting, {counts['slots']} overwriting one another")
    if counts["bad"]:
        yield warn(
            f"{words.amount(counts['bad'], 'file')} in the spool could not be read as an event",
            f"why stands beside each in {spool.home / 'spool' / 'bad'}; then remove them",
        )
    elif refused := spool.counts()["refused"]:
        yield info(f"refused in the past: {refused}")


def _program(pid: int) -> str:
    argv = argv_of(pid)
    return "bellboard serve" if "serve" in argv else "of a Neovim"


# ---------------------------------------------------------------- the database


def database(home: Path) -> Iterator[Fact]:
    """Whether it can be read, what is in it, who set the options, who holds the lock."""
    path = home / "board.db"
    if os.path.lexists(home) and not ground.is_ours(home):
        return  # the state says so
    if not path.is_file():
        yield info("no database yet")
        if os.path.lexists(path):
            yield error(f"{path} is in its way: it is no file", "move it away")
        return
    try:
        store = Store(home, readonly=True)
    except Damaged as e:
        yield error(f"{e}: it is damaged", "end all Neovims; the next one sets it aside")
        return
    except sqlite3.Error as e:
        yield error(f"{path}: {e}", "make it readable for you")
        return
    try:
        with store.plainly():
            schema = version_of(store.db)
        if schema > SCHEMA:
            advice = "update this one, and restart Neovim"
            yield error(f"{path} was written by a newer bellboard (schema {schema})", advice)
            return
        yield from _inside(store, path)
    except Damaged as e:
        yield error(f"{e}: it is damaged", "end all Neovims; the next one sets it aside")
    except (Busy, sqlite3.Error, msgspec.MsgspecError) as e:
        yield warn(f"{path} cannot be read now: {e}", "try again")
    finally:
        store.close()
    for damaged in sorted(home.glob("board.db.damaged-*[0-9]")):
        yield info(f"set aside as damaged: {damaged}", "remove it when you do not need it")


def _inside(store: Store, path: Path) -> Iterator[Fact]:
    check = _checked(store)
    if not check:
        yield info(f"{path} is too large to be checked in {CHECK:g} s")
    elif check != "ok":
        yield error(f"{path} is damaged: {check}", "end all Neovims; the next one sets it aside")
        return
    size = path.stat().st_size
    listed = store.all("SELECT count(*) FROM sessions WHERE listed")[0][0]
    events, last = store.all("SELECT count(*), max(id) FROM events")[0]
    changes = store.all("SELECT count(*) FROM transitions")[0][0]
    text = (
        f"schema {SCHEMA}, {size / 1e6:.1f} MB, {words.amount(listed, 'session')}, "
        f"{words.amount(changes, 'change')} of status, {events} of {last or 0} events kept"
    )
    yield warn(text, "it should not be that large: report this") if size > LARGE else ok(text)
    yield from _shared(store)
    if holder := store.holder():
        yield info(f"its lock is held just now by process {holder} ({_program(holder)})")


def _checked(store: Store) -> str:
    """What SQLite says of the file; nothing if that takes too long."""
    until = time.monotonic() + CHECK
    store.db.set_progress_handler(lambda: time.monotonic() > until, 10_000)
    try:
        return str(store.all("PRAGMA quick_check(1)")[0][0])
    except sqlite3.OperationalError as e:
        if "interrupted" in str(e):
            return ""
        raise
    finally:
        store.db.set_progress_handler(None, 0)


def _shared(store: Store) -> Iterator[Fact]:
    rows = store.all("SELECT pid, t FROM options WHERE key = 'config'")
    if not rows:
        yield ok("options: all as they come")
        return
    pid, t = rows[0]
    told, usual = options_of(store.option("config"), Options()), Options()
    other = {
        name: value
        for name in Options.__struct_fields__
        if (value := getattr(told, name)) != getattr(usual, name)
    }
    by = f"process {pid}{'' if is_alive(pid) else ', which has ended,'}"
    said = ", ".join(f"{name} {_plainly(value)}" for name, value in other.items())
    yield ok(f"options: {said or 'all as they come'}; set by {by} {_ago(t)}")


def _plainly(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _ago(t: float) -> str:
    age = words.age(t, time.time())
    return "just now" if age == "now" else f"{age} ago"
