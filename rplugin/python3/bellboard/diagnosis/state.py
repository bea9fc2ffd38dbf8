"""Check bellboard itself: its versions, the state folder and spool, the database."""

from __future__ import annotations

import os
import shlex
import sqlite3
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

import msgspec

from ..agents.registry import agent_of, is_known_agent
from ..core import words
from ..core.board import Board
from ..core.options import Options, options_of
from ..core.published import Published, snapshot
from ..core.version import VERSION
from ..storage import state_folder
from ..storage.database import SCHEMA, Busy, Damaged, version_of
from ..storage.set_aside import kept_databases
from ..storage.spool import ADDED, BELOW, Spool
from ..storage.store import Store
from ..system import locks
from ..system.failures import described
from ..system.mounts import network_of
from ..system.processes import argv_of, is_alive, is_suspended, ran_at
from ..system.separate import silent
from .fact import Fact, error, info, ok, warn

#: The packages that bellboard needs, with their minimum versions.
NEEDED: Final = {
    "pynvim": (0, 6),
    "msgpack": (1, 0, 5),
    "msgspec": (0, 19),
    "watchfiles": (1, 0),
    "psutil": (5, 9),
}
BEHIND: Final = 1000  # pending events; with more, a running host hangs or is too slow
LONG: Final = 10.0  # seconds that an event waits; a host without news looks every 30 s
RESCANNED: Final = 45.0  # the same for a host without watches
TOLD: Final = 120.0  # longest wait that is shown in seconds
#: A host's notes about waiting events.
DELAYS: Final = frozenset({"database", "damage", "home", "update", "spool", "stuck"})
UNFINISHED: Final = 60.0  # seconds in spool/tmp; a hook takes milliseconds
MOST_NAMED: Final = 3  # files to name
CHECK: Final = 3.0  # seconds; 100 MB take a third of a second
RESTART: Final = "quit all Neovims and start one: it replaces the database and keeps a copy"
#: What SQLite locks for writing: a byte of the shared memory, or RESERVED in the file itself.
LOCKED: Final = (("board.db-shm", 120), ("board.db", 1 << 30 | 1))
MOST_SOURCES: Final = 30  # sessions to list
LARGE: Final = 256 << 20  # bytes; the database of a busy month has 40 MB

# ---------------------------------------------------------------- versions


def versions() -> Iterator[Fact]:
    """Check this package, Python, the dependencies, and for a second bellboard."""
    package = Path(__file__).resolve().parents[1]
    root = package.parents[2]
    with_editor = (root / "lua" / "bellboard" / "init.lua").is_file()
    yield ok(f"bellboard {VERSION} in {root if with_editor else package}")
    if not with_editor:
        yield info("installed without the Neovim plugin: only the command line is available")
    python = ".".join(map(str, sys.version_info[:3]))
    yield ok(f"Python {python}: {sys.executable}")
    yield _packages(with_editor)
    installed = _version_of("bellboard")
    if installed not in (None, VERSION):
        yield warn(
            f"another bellboard, {installed}, is installed for this Python",
            f"upgrade or remove it: {sys.executable} -m pip uninstall bellboard",
        )


def _packages(with_editor: bool) -> Fact:
    found = {name: _version_of(name) for name in NEEDED}
    lacking = [
        f"{name} {there or 'is missing'}"
        for name, there in found.items()
        if there is None or _numbers(there) < NEEDED[name]
    ]
    if lacking:
        needed = " ".join(f"'{n}>={'.'.join(map(str, v))}'" for n, v in NEEDED.items())
        advice = f"install {needed} for {sys.executable}"
        if with_editor:
            advice += ", or run :Bellboard build if the option python is not set"
        return error(f"packages: {', '.join(lacking)}", advice)
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
    """Check the state folder, the spool, and the running hosts."""
    if mount := silent(home):
        advice = "unmount it, or set BELLBOARD_HOME to a folder on a local disk"
        yield error(f"{home}: the mount {mount.place} ({mount.kind}) does not respond", advice)
        return
    try:
        status = home.stat()
    except FileNotFoundError:
        yield info(f"{home} does not exist yet: Neovim or `bellboard serve` creates it")
        return
    except OSError as e:
        yield error(f"cannot access {home}: {e.strerror}", state_folder.ADVICE)
        return
    if status.st_uid != os.geteuid():
        yield error(f"{home} belongs to another user", state_folder.ADVICE)
        return
    try:
        state_folder.judge(home)
    except (state_folder.Refused, OSError) as e:
        yield error(str(e), state_folder.ADVICE)
    if why := state_folder.holds_others(home):
        yield error(why, state_folder.ADVICE)
        return
    if stat.S_IMODE(status.st_mode) & 0o077:
        yield warn(f"{home} can be read by others", f"chmod 700 {shlex.quote(str(home))}")
    else:
        yield ok(f"{home} is private")
    if network := network_of(home):
        yield warn(
            f"{home} is on {network}, a network file system: slower and less safe",
            "set BELLBOARD_HOME to a folder on a local disk",
        )
    spool = Spool(home)
    if why := spool.obstacle():
        yield error(why, "until then, no event is read")
        return
    unusable = [*state_folder.unusable(home, BELOW + ADDED)]
    for why in unusable:
        yield error(why, "change its owner to you, or move it away")
    if unusable:
        return
    for path in (home / name for name in state_folder.LOCKS):
        if os.path.lexists(path) and not path.is_file():
            yield error(f"{path} is not a file", "move it out of the way")
    hosts = spool.hosts.alive()
    if hosts:
        running = ", ".join(f"{pid} ({_program(pid)})" for pid in hosts)
        many = "background process" if len(hosts) == 1 else f"{len(hosts)} background processes"
        yield ok(f"{many} running: {running}")
        for pid in hosts:
            for about, note in spool.hosts.notes_of(pid).items():
                yield warn(words.plain(f"process {pid}: {about}: {note}"), "")
    else:
        yield info("no background process is running: events wait for the next Neovim")
    yield from _spool(spool, hosts)


def _spool(spool: Spool, hosts: list[int]) -> Iterator[Fact]:
    counts = {k: v for k, v in spool.counts().items() if isinstance(v, int)}
    if late := _late(spool, hosts, counts["pending"]):
        yield late
    else:
        waiting = words.amount(counts["pending"], "event")
        yield ok(f"spool: {waiting} waiting, {words.amount(counts['slots'], 'reusable slot')}")
    if left := spool.unfinished(UNFINISHED):
        named = ", ".join(left[:MOST_NAMED]) + (", …" if len(left) > MOST_NAMED else "")
        yield info(
            f"{words.amount(len(left), 'hook')} did not finish: {named} in {spool.home}/spool/tmp",
            "killed while writing, or still waiting for its input; removed after an hour",
        )
    bad, failed = spool.home / "spool" / "bad", spool.failed()
    if failed:
        them = "its `.why`" if failed == 1 else "their `.why`"
        yield warn(
            f"{words.amount(failed, 'event')} failed in bellboard itself",
            f"please report this, with {them} in {bad}; then remove the files",
        )
    if (others := counts["bad"] - failed) > 0:
        yield warn(
            f"{words.amount(others, 'file')} in the spool could not be read as an event",
            f"the reasons are in {bad}; then remove the files",
        )
    if refused := spool.counts()["refused"]:
        yield info(f"refused so far: {refused}")


def _late(spool: Spool, hosts: list[int], pending: int) -> Fact | None:
    """Report events that wait for longer, or are more, than a running host leaves waiting."""
    since = spool.waits_since()
    if since is None or not hosts:
        return None
    now, stopped = time.time(), [pid for pid in hosts if is_suspended(pid)]
    patience = LONG if stopped == hosts else RESCANNED
    # a host that has just started may not have read waiting events
    is_late = now - since > patience and any(ran_at(pid, now - patience) for pid in hosts)
    if not is_late and pending <= BEHIND:
        return None
    age = f"{now - since:.0f} s" if now - since < TOLD else words.age(since, now)
    waited = f"has waited for {age}" if pending == 1 else f"have waited, the first for {age},"
    which = ", ".join(map(str, hosts))
    run = f"process {which} runs" if len(hosts) == 1 else f"processes {which} run"
    text = f"{words.amount(pending, 'event')} {waited} although {run}"
    if stopped:
        which = "it" if len(hosts) == 1 else ", ".join(map(str, stopped))
        pids = " ".join(map(str, stopped))
        return warn(
            f"{text}: {which} {'is' if len(stopped) == 1 else 'are'} suspended",
            f"continue with `fg` or `kill -CONT {pids}`, or stop what is suspended",
        )
    if any(DELAYS & spool.hosts.notes_of(pid).keys() for pid in hosts):
        return warn(f"{text}, as said above", "")
    return warn(f"{text}: it hangs or is too slow", "restart it")


def _program(pid: int) -> str:
    argv = argv_of(pid)
    return "bellboard serve" if "serve" in argv else "of Neovim"


# ---------------------------------------------------------------- the database


def database(home: Path) -> Iterator[Fact]:
    """Check that the database can be read; show its size, its options and who holds the lock."""
    path = home / "board.db"
    if os.path.lexists(home) and not state_folder.is_ours(home):
        return  # reported under "state"
    if not path.is_file():
        yield info("no database yet")
        if os.path.lexists(path):
            yield error(f"{path} is not a file", "move it out of the way")
        yield from _lock(home)
        return
    try:
        store = Store(home, readonly=True)
    except Damaged as e:
        yield error(f"{e}: the database is damaged", RESTART)
        return
    except sqlite3.Error as e:
        yield error(f"{path}: {described(e)}", "make it readable")
        return
    try:
        with store.database.plainly():
            schema = version_of(store.database.db)
        if schema > SCHEMA:
            advice = "update bellboard and restart Neovim"
            yield error(f"{path} was written by a newer bellboard (schema {schema})", advice)
            return
        yield from _inside(store, path)
    except Damaged as e:
        yield error(f"{e}: the database is damaged", RESTART)
    except (Busy, sqlite3.Error, msgspec.MsgspecError) as e:
        yield warn(f"cannot read {path}: {described(e)}", "try again")
    finally:
        store.close()
    yield from _lock(home)
    for damaged in kept_databases(home):
        yield info(f"damaged database kept: {damaged}", "delete it when you no longer need it")


def sources(home: Path) -> Iterator[Fact]:
    """Name the source of each session's status, and why no session reports itself."""
    listed = [p for p in _listed(home) if not (p["hidden"] or p.get("machine"))]
    for p in listed[:MOST_SOURCES]:
        yield info(f"{words.project(p)} ({words.plain(p['agent'])}): {_source(p)}")
    if (more := len(listed) - MOST_SOURCES) > 0:
        yield info(f"and {words.amount(more, 'other session')}")


def _listed(home: Path) -> list[Published]:
    """Return the sessions; none if they cannot be read, which the facts about the database say."""
    if not (state_folder.is_ours(home) and (home / "board.db").is_file()):
        return []
    board = Board()
    try:
        store = Store(home, readonly=True)
    except (Damaged, sqlite3.Error):
        return []
    try:
        with store.database.plainly():
            store.refresh(board)
    except (Busy, Damaged, sqlite3.Error, msgspec.MsgspecError):
        return []
    finally:
        store.close()
    return snapshot(board.sessions.values())


def _source(p: Published) -> str:
    """Return the source of a status, and where a program is not asked for own reports."""
    source = p.get("source") or "nothing yet"
    if report := p.get("own_report"):
        also = "" if source == "says so itself" else "; it says so itself as well"
        return f"{source}{also}{_otherwise(report)}"
    if p.get("pane") and not p.get("nvim"):
        return f"{source}; tmux reads no program's own report"
    can = agent_of(p["agent"]).abilities.get("itself") if is_known_agent(p["agent"]) else None
    if not p.get("nvim") or can is None or not can.source:
        return source
    return f"{source}; it would say so itself{', ' + can.when if can.when else ''}"


def _otherwise(report: Mapping[str, Any]) -> str:
    """Return how often and for how long a session file differed from an own report."""
    if not report.get("differed"):
        return ""
    times = words.amount(report["differed"], "time")
    return f"; its session file said otherwise {times}, for {report['seconds']:.0f} s"


def _inside(store: Store, path: Path) -> Iterator[Fact]:
    check = _checked(store)
    if not check:
        yield info(f"{path} is too large to check in {CHECK:g} s")
    elif check != "ok":
        yield error(f"{path} is damaged: {check}", RESTART)
        return
    size = path.stat().st_size
    listed = store.database.all("SELECT count(*) FROM sessions WHERE listed")[0][0]
    events, last = store.database.all("SELECT count(*), max(id) FROM events")[0]
    changes = store.database.all("SELECT count(*) FROM transitions")[0][0]
    text = (
        f"schema {SCHEMA}, {size / 1e6:.1f} MB, {words.amount(listed, 'session')}, "
        f"{words.amount(changes, 'status change')}, {events} of {last or 0} events kept"
    )
    yield warn(text, "larger than expected: please report this") if size > LARGE else ok(text)
    yield from _shared(store)


def _lock(home: Path) -> Iterator[Fact]:
    """Report a process that blocks the database: a host does so for milliseconds."""
    if not (pid := holder_of(home)):
        return
    is_host = pid in Spool(home).hosts.alive()
    name = _program(pid) if is_host else words.plain(Path((argv_of(pid) or ["?"])[0]).name)
    locked = f"the database is locked by process {pid} ({name})"
    if is_suspended(pid):
        yield warn(f"{locked}, which is suspended: events wait", f"kill -CONT {pid}, or stop it")
    else:
        yield info(locked)


def holder_of(home: Path) -> int | None:
    """Return the process that blocks writing or opening, if the system lists it."""
    for name, byte in LOCKED:
        for row in locks.held(home / name):
            if row[1] == "POSIX" and int(row[6]) <= byte and _end(row[7]) >= byte:
                return int(row[4])
    return next(iter(locks.holders([home / "board.lock"]).values()), None)


def _end(field: str) -> float:
    return float("inf") if field == "EOF" else int(field)


def _checked(store: Store) -> str:
    """Return SQLite's verdict on the file, or "" if that takes too long."""
    until = time.monotonic() + CHECK
    store.database.db.set_progress_handler(lambda: time.monotonic() > until, 10_000)
    try:
        return str(store.database.all("PRAGMA quick_check(1)")[0][0])
    except sqlite3.OperationalError as e:
        if "interrupted" in str(e):
            return ""
        raise
    finally:
        store.database.db.set_progress_handler(None, 0)


def _shared(store: Store) -> Iterator[Fact]:
    rows = store.database.all("SELECT pid, t FROM options WHERE key = 'config'")
    if not rows:
        yield ok("shared options (`host`): all defaults")
        return
    pid, t = rows[0]
    shared, usual = options_of(store.option("config"), Options()), Options()
    other = {
        name: value
        for name in Options.__struct_fields__
        if (value := getattr(shared, name)) != getattr(usual, name)
    }
    by = f"process {pid}{'' if is_alive(pid) else ' (ended)'}"
    changed = ", ".join(f"{name} {_plainly(value)}" for name, value in other.items())
    yield ok(f"shared options (`host`): {changed or 'all defaults'}; set by {by} {_ago(t)}")


def _plainly(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _ago(t: float) -> str:
    age = words.age(t, time.time())
    return "just now" if age == "now" else f"{age} ago"
