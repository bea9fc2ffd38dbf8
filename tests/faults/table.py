"""The table of faults: what can happen to the state folder, and what holds all the same.

A row says what is done, how it is mended, what is said meanwhile, and what survives. One more is

    Fault("links is a pipe", *instead("links", os.mkfifo), refuses="not a directory", **MEANWHILE),

among FOLDERS. pytest walks all rows (test_faults.py), `make fuzz` draws them at random and
together; `meet` makes every check with each. A row that promises less says so (fault.py).
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from bellboard.storage import state_folder
from bellboard.storage.spool import ADDED, BELOW, Spool
from bellboard.storage.store import Store
from faults.fault import EITHER, EVENTS, NOTHING, SESSIONS, Do, Fault, Kind, no_root, nothing
from faults.files import remove
from faults.target import HEAL, Fallen, Target
from rig.fetched import tools
from rig.machines.hung_mount import DEVICE, HungMount
from rig.waiting import eventually

Make = Callable[[Path], object]
PRECIOUS: Final = ("file", "1", "20260101-x", f"{0:020}-x")


# ------------------------------------------------------------------ what is done


def instead(name: str, make: Make, where: str = "bellboard") -> tuple[Do, Do]:
    """Put something in place of a file or folder; afterwards, what was there is back."""

    def do(target: Target) -> None:
        path = Path(os.path.normpath(getattr(target.home, where) / name))
        with target.paused():
            target.put_aside(path)
            make(path)

    def mend(target: Target) -> None:
        path = Path(os.path.normpath(getattr(target.home, where) / name))
        with target.paused():
            remove(path)
            target.put_back(path)
        target.prepare()

    return do, mend


def of_claude(name: str, make: Make) -> tuple[Do, Do]:
    """Put something in place of a folder of the agent, in which a session works."""
    put, mend = instead(name, make, "claude")

    def do(target: Target) -> None:
        (target.home.claude / name).mkdir(exist_ok=True)
        target.hook("UserPromptSubmit", "f", target.sleeper(), cwd=str(target.home.claude))
        put(target)

    return do, mend


def gone(_: Path) -> None:
    """Put nothing there."""


def text(path: Path) -> None:
    path.write_text("no database\n" * 1000)


def linked_to_itself(path: Path) -> None:
    path.symlink_to(path)


def linked(name: str) -> tuple[Do, Do]:
    """Put a link in its place, to a folder whose old files nobody may tidy up."""
    _, mend_link = instead(name, gone)

    def do(target: Target) -> None:
        foreign = target.home.root / "foreign"
        shutil.rmtree(foreign, ignore_errors=True)
        (foreign / "folder").mkdir(parents=True)
        for file in PRECIOUS:
            (foreign / file).write_text("precious")
            os.utime(foreign / file, (0, 0))
        path = Path(os.path.normpath(target.board / name))
        with target.paused():
            target.put_aside(path)
            path.symlink_to(foreign)

    def mend(target: Target) -> None:
        mend_link(target)
        left = {path.name for path in (target.home.root / "foreign").iterdir()}
        if not left >= {*PRECIOUS, "folder"}:  # an event may have been written there
            raise Fallen(f"behind the link is now {sorted(left)}")

    return do, mend


def moved() -> tuple[Do, Do]:
    """Move the home, and link there."""

    def do(target: Target) -> None:
        with target.paused():
            target.board.rename(there := target.home.root / "there")
            target.board.symlink_to(there)

    def mend(target: Target) -> None:
        with target.paused():
            target.board.unlink()
            (target.home.root / "there").rename(target.board)

    return do, mend


def removed(name: str) -> Do:
    """Remove a folder for good, and wait until the host has made it again."""

    def do(target: Target) -> None:
        path = target.board / name
        shutil.rmtree(path, ignore_errors=True)  # the host may be quicker
        with target.must("it was not made again"):
            eventually(lambda: (path / "spool/slot" if not name else path).is_dir(), within=HEAL)

    return do


def before_the_start(do: Do, mend: Do = nothing) -> tuple[Do, Do]:
    """Do it while no host runs."""

    def stopped(target: Target) -> None:
        target.stop()
        do(target)
        target.start()
        target.up()

    return stopped, mend


def closed(name: str) -> tuple[Do, Do]:
    """Take all permissions away."""

    def do(target: Target) -> None:
        (target.board / name).chmod(0)

    def mend(target: Target) -> None:
        (target.board / name).chmod(0o700)

    return do, mend


def undo(target: Target) -> None:
    """End what the fault has started: processes, mounts."""
    target.undone.close()


def of_database(change: Make) -> Do:
    """Change board.db while the hosts are suspended, so that they open nothing half done."""

    return lambda target: at_rest(target, lambda: change(target.board / "board.db"))


def at_rest(target: Target, change: Callable[[], object]) -> None:
    """Change something while the host is suspended; again if that met it in a transaction."""
    while True:
        with target.paused():
            if change() is not False:
                return


def with_its_log(path: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        remove(Path(f"{path}{suffix}"))


def another(path: Path) -> None:
    """Restore a backup: by a rename, with the old log still there."""
    other = path.parents[1] / "other"
    Spool(other).prepare()
    Store(other).close()
    (other / "board.db").rename(path)


def log(change: Make, suffix: str = "-wal") -> Make:
    """Change a file beside the database."""
    return lambda path: change(Path(f"{path}{suffix}"))


def emptied(path: Path) -> None:
    os.truncate(path, 0)


def has_all(db: sqlite3.Connection) -> bool:
    """Move its log into it; return False if that still has everything, as a host is in its way."""
    is_busy, *_ = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not is_busy


def overwritten(path: Path) -> bool:
    with contextlib.closing(sqlite3.connect(path, timeout=0.1)) as db:
        is_alone = has_all(db)
    if is_alone:
        path.write_bytes(b"\xa5" * 50_000)
    return is_alone


def blank_log(path: Path) -> None:
    path.unlink()
    path.touch()


def blank(table: str) -> Make:
    """Overwrite the first page of a table with zeros, as a log with a hole does."""

    def change(path: Path) -> bool:
        with contextlib.closing(sqlite3.connect(path, timeout=0.1)) as db:
            if not has_all(db):
                return False
            ((page,),) = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,))
            ((size,),) = db.execute("PRAGMA page_size")
        with path.open("r+b") as file:
            file.seek((page - 1) * size)
            file.write(bytes(size))
        return True

    return change


def told(change: str) -> Make:
    """Change it as any program may."""

    def do(path: Path) -> None:
        with contextlib.closing(sqlite3.connect(path, timeout=HEAL)) as db, db:
            db.execute(change)

    return do


NUMBER: Final = "UPDATE sqlite_sequence SET seq = {}"


def zeros(count: int) -> Make:
    return lambda path: path.write_bytes(bytes(count))


def under_three(change: Make) -> Do:
    """Change it under three hosts that notice it one by one; each shows all sessions."""

    def do(target: Target) -> None:
        with target.another() as second, target.another() as third:
            sessions = {target.unique() for _ in range(300)}
            names = {}
            for n, sid in enumerate(sessions):
                names[target.hook("UserPromptSubmit", sid)] = sid
                if n == 150:
                    target.canary()
                    change(target.board / "board.db")
            for host in (target.host, second, third):
                with target.must("not every host shows all"):
                    eventually(lambda host=host: sessions <= host.shown.keys())
            target.kept(names, {}, EVENTS)
            for sid in sessions:
                target.hook("SessionEnd", sid)
        if aside := [*target.board.glob(ASIDE)]:
            raise Fallen(f"it was set aside: {aside}")

    return do


def in_place(make: Make) -> Do:
    """Put something in place of the database."""

    def change(path: Path) -> None:
        path.unlink()
        make(path)

    return of_database(change)


def version(number: int) -> tuple[Do, Do]:
    """Make it a database of another version; afterwards, start anew."""

    def do(target: Target) -> None:
        with contextlib.closing(sqlite3.connect(target.board / "board.db", timeout=HEAL)) as db:
            db.execute(f"PRAGMA user_version = {number}")

    def mend(target: Target) -> None:
        target.stop()
        with_its_log(target.board / "board.db")
        target.start()
        target.up()

    return do, mend


HOLD: Final = """
import fcntl, os, sqlite3, sys
path, how = sys.argv[1:]
if how:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute(how)
else:
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX)
    os.write(fd, str(os.getpid()).encode())
print("held", flush=True)
sys.stdin.read()
"""


def held(name: str, how: str = "") -> Do:
    """Hold a lock in a process that is suspended, before the host starts."""

    def do(target: Target) -> None:
        target.stop()
        argv = [sys.executable, "-c", HOLD, str(target.board / name), how]
        pipe = subprocess.PIPE
        process = subprocess.Popen(argv, stdin=pipe, stdout=pipe)
        target.undone.callback(process.communicate)
        target.undone.callback(process.kill)
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGSTOP)
        target.start()
        target.up()

    return do


def _mount(*args: str) -> None:
    subprocess.run([tools.executable("mount"), *args], check=True, capture_output=True)


def _unmount(path: Path) -> None:
    subprocess.run([tools.executable("umount"), "-l", str(path)], check=False, capture_output=True)


def disk(spoil: Make) -> tuple[Do, Do]:
    """Move the state folder to a disk of 8 MB, and spoil that."""

    def do(target: Target) -> None:
        target.stop()
        away = target.home.root / target.unique()
        kept = shutil.ignore_patterns("board.db.damaged-*")
        shutil.copytree(target.board, away, ignore=kept)
        _mount("-t", "tmpfs", "-o", "size=8m,nr_inodes=400,mode=0700", "tmpfs", str(target.board))
        target.undone.callback(_unmount, target.board)
        shutil.copytree(away, target.board, dirs_exist_ok=True)
        target.start()
        target.up()
        target.canary()
        with target.paused(), contextlib.suppress(OSError):
            for n in range(40):
                target.hook("UserPromptSubmit", f"d{n}", prompt="x" * 2000)
            spoil(target.board)

    def mend(target: Target) -> None:
        if spoil is read_only:
            _unmount(target.board)
        subprocess.run(["rm", "-rf", str(target.board / "filler")], check=True)

    return do, mend


def made_read_only(name: str, first: Do) -> tuple[Do, Do]:
    """Make a folder read-only, right after something else was done there."""

    def do(target: Target) -> None:
        folder = target.board / name
        _mount("--bind", str(folder), str(folder))
        target.undone.callback(_unmount, folder)

        def both() -> bool:
            is_done = first(target) is not False
            if is_done:
                _mount("-o", "remount,bind,ro", str(folder))
            return is_done

        at_rest(target, both)

    return do, undo


def five_events(target: Target) -> None:
    for n in range(5):
        target.hook("UserPromptSubmit", f"r{n}")


def full(path: Path) -> None:
    with (path / "filler").open("wb", buffering=0) as file:
        while file.write(b"x" * 4096):
            pass


def without_inodes(path: Path) -> None:
    (path / "filler").mkdir()
    for n in range(10_000):
        (path / "filler" / str(n)).touch()


def read_only(path: Path) -> None:
    """Mount it once more: a mount that the host writes to is busy."""
    aside = path.parent / "ro"
    aside.mkdir()
    _mount("--bind", str(path), str(aside))
    _mount("-o", "remount,bind,ro", str(aside))
    _mount("--bind", str(aside), str(path))
    _unmount(aside)


def hanging(lead: Callable[[Target, Path], None], place: str = "hung") -> Do:
    """Mount a folder that hangs, and lead a host there."""

    def do(target: Target) -> None:
        mount = HungMount(target.home.project, target.home.root / place)
        target.undone.callback(mount.close)
        mount.place.stat()  # it has begun to answer
        mount.hang()
        lead(target, mount.place)

    return do


def mounted(name: str) -> Do:
    """Mount a folder that hangs in the state folder; nobody may touch it."""

    def do(target: Target) -> None:
        target.rests()
        mount = HungMount(target.home.project, target.board / name)

        def end() -> None:
            asked = mount.asked
            mount.close()
            if asked:
                raise Fallen(f"{asked} requests hang")

        target.undone.callback(end)
        mount.place.stat()  # it has begun to answer
        mount.hang()

    return do


def event(**fields: str) -> Callable[[Target, Path], None]:
    """Lead it there by an event with these fields in its payload, or its header."""

    def lead(target: Target, place: Path) -> None:
        told = {key: value.replace("HUNG", str(place)) for key, value in fields.items()}
        hook = {"session_id": "hung", "hook_event_name": "UserPromptSubmit", "cwd": "/srv", **told}
        target.line(hook=hook, origin={"pid": target.sleeper(), "env": told, "pane": "%1", **told})

    return lead


def git(target: Target, place: Path) -> None:
    project = target.home.project / target.unique()
    project.mkdir()
    (project / ".git").write_text(f"gitdir: {place}/git\n")
    event(cwd=str(project))(target, place)


def settings(target: Target, place: Path) -> None:
    path = target.home.claude / "settings.json"
    remove(path)
    path.symlink_to(place / "settings.json")
    target.undone.callback(path.unlink)
    event()(target, place)


def link(target: Target, place: Path) -> None:
    path = target.home.root / target.unique()
    path.symlink_to(place)
    event(cwd=str(path))(target, place)


ASIDE: Final = "board.db.damaged-*"


def limit(which: int, most: Callable[[Target], int]) -> tuple[Do, Do]:
    """Lower a limit of the running host; a sound database is not set aside."""
    hard: list[int] = []
    before: set[Path] = set()

    def do(target: Target) -> None:
        before.update(target.board.glob(ASIDE))
        soft = most(target)
        hard.append(resource.prlimit(target.process.pid, which)[1])
        resource.prlimit(target.process.pid, which, (soft, hard[-1]))
        for n in range(20):
            target.hook("UserPromptSubmit", f"l{n}", prompt="x" * 50_000)

    def mend(target: Target) -> None:
        if target.has_ended():
            target.start()
            target.up()
        else:
            resource.prlimit(target.process.pid, which, (hard[-1], hard.pop()))
        target.may_end = False
        target.folded("l19")
        if aside := {*target.board.glob(ASIDE)} - before:
            raise Fallen(f"a sound database was set aside: {aside} {target.host.notes}")

    return do, mend


def hardly_more_files(target: Target) -> int:
    """It has to open the database again."""
    (target.board / "board.db-wal").unlink(missing_ok=True)
    return len(os.listdir(f"/proc/{target.process.pid}/fd")) + 2  # noqa: PTH208


def hardly_more_room(target: Target) -> int:
    """The database cannot grow, and it can say so."""
    target.restart()
    target.up()
    target.canary()
    return 96 << 10


def opened_once(do: Do, mend: Do) -> tuple[Do, Do]:
    """Check that the database stays open: otherwise all is published anew."""

    def count(target: Target) -> int:
        return sum(bool(message["full"]) for message in target.host.messages)

    def counted(target: Target) -> None:
        do(target)
        before.append(count(target))

    def compared(target: Target) -> None:
        mend(target)
        is_named = sys.version_info >= (3, 11)  # before that, errors of SQLite have no names
        if count(target) != before.pop() and is_named:
            raise Fallen("it opened its database again")

    before: list[int] = []
    return counted, compared


def as_now(target: Target) -> int:
    """Without memory Python itself may end, and an editor starts it again."""
    target.rests()
    target.may_end = True
    return target.process_memory()


# ------------------------------------------------------------------ the rows

IN_SPOOL = tuple(name for name in BELOW if name.startswith("spool"))
OURS = (*BELOW, *ADDED)
MEANWHILE: Final[dict[str, Any]] = {"survives": SESSIONS, "folds": False}
REFUSED: Final[dict[str, Any]] = {**MEANWHILE, "refuses": "not a directory"}
FOLDERS = (
    *(Fault(f"{name} is removed", removed(name), alone=True) for name in OURS[1:]),
    Fault("the home is removed", removed(""), survives=NOTHING, alone=True),
    *(Fault(f"{name} is moved away", *instead(name, gone), **MEANWHILE) for name in OURS),
    *(
        Fault(f"{name} is a file", *instead(name, text), doctor="not a directory: ", **REFUSED)
        for name in OURS
    ),
    *(
        Fault(
            f"{name} is a link",
            *linked(name),
            says=f"/{name} is a link: move it away",
            doctor=f"/{name} is a link: move it away",
            **REFUSED,
        )
        for name in OURS
    ),
    Fault("spool/new is a pipe", *instead("spool/new", os.mkfifo), **REFUSED),
    Fault("the home is moved away", *instead("", gone), lists=None, **MEANWHILE),
    Fault(
        "the home is a link to a folder of other things",
        *linked(""),
        says="is not bellboard's: it holds",
        doctor="is not bellboard's: it holds",
        **{**REFUSED, "refuses": "is not bellboard's"},
    ),
    Fault("the home is a link to where it was moved", *moved(), survives=SESSIONS),
    Fault(
        "the home is a file",
        *instead("", text),
        says="move it away, or set BELLBOARD_HOME",
        doctor="Not a directory",
        **REFUSED,
    ),
    Fault(
        "the home is a link to itself",
        *instead("", linked_to_itself),
        says="too many links; move it away, or set BELLBOARD_HOME",
        doctor="Too many levels of symbolic links",
        **MEANWHILE,
        refuses="too many links",
    ),
    *(Fault(f"{name or 'the home'} is closed", *closed(name)) for name in ("", *BELOW)),
)
FOREIGN = tuple(
    Fault(
        f"{name} is {what}",
        *of_claude(name, make),
        says="cannot be read: " if name == "sessions" and what != "gone" else "",
    )
    for name in ("sessions", "projects", ".")
    for what, make in (
        ("a file", text),
        ("a link to itself", linked_to_itself),
        ("a pipe", os.mkfifo),
        ("gone", gone),
    )
)
DAMAGED: Final[dict[str, Any]] = {"survives": SESSIONS, "says": "moved to ", "heals": False}
#: The next host finds it; one that starts beside the first may wait until that has ended.
CUT: Final[dict[str, Any]] = {
    "mend": Target.restart,
    "survives": NOTHING,
    "refuses": EITHER,
    "alone": True,
}
DATABASE = (
    Fault("removed", of_database(Path.unlink), survives=NOTHING),
    Fault("removed with its log", of_database(with_its_log), survives=NOTHING),
    Fault("replaced by another", of_database(another), survives=NOTHING),
    Fault("its log is removed", of_database(log(Path.unlink)), survives=SESSIONS),
    Fault("its log is blank", of_database(log(blank_log)), survives=SESSIONS),
    Fault("its shared memory is removed", of_database(log(Path.unlink, "-shm")), survives=SESSIONS),
    *(
        Fault(f"its {what} under three hosts", under_three(log(change, suffix)), survives=SESSIONS)
        for what, change, suffix in (
            ("log is removed", Path.unlink, "-wal"),
            ("log is blank", blank_log, "-wal"),
            ("shared memory is removed", Path.unlink, "-shm"),
        )
    ),
    Fault("its log is emptied in place", of_database(log(emptied)), **CUT),
    Fault("emptied in place", of_database(emptied), **CUT),
    Fault("overwritten", of_database(overwritten), **DAMAGED),
    *(
        Fault(f"{table} is blank", of_database(blank(table)), **DAMAGED)
        for table in ("sessions", "transitions", "events", "applied")
    ),
    Fault(
        "its numbers have ended",
        of_database(told(NUMBER.format(2**63 - 1))),
        **{**DAMAGED, "says": "impossible numbers of "},
    ),
    *(
        Fault(
            f"its last number is {what}",
            *before_the_start(of_database(told(NUMBER.format(what)))),
            **{**DAMAGED, "says": "impossible numbers of ", "survives": NOTHING},
        )
        for what in (2**60, "'x'")
    ),
    *(
        Fault(f"its log has {n} zeros", *before_the_start(of_database(log(zeros(n)))))
        for n in (32, 8192)  # as after a power cut
    ),
    Fault(
        "of records that are none",
        *before_the_start(of_database(told("UPDATE sessions SET record = x'c1'"))),
        survives=NOTHING,
        says="lost from the database, as unreadable: ",
        heals=False,
    ),
    *(
        Fault(f"{what} is in its place", in_place(make), survives=NOTHING, heals=False)
        for what, make in (("a folder", Path.mkdir), ("a pipe", os.mkfifo), ("a text", text))
    ),
    *(
        Fault(f"its {suffix} is {what}", *instead(f"board.db-{suffix}", make), survives=SESSIONS)
        for suffix in ("wal", "journal")
        for what, make in (("a folder", Path.mkdir), ("a pipe", os.mkfifo))
    ),
    Fault("its wal is a text", *instead("board.db-wal", text), survives=SESSIONS),
    Fault(
        "its journal is a text",
        *instead("board.db-journal", text),
        waits="locked by another",
        lists=None,
    ),
    *(
        Fault(
            f"of version {n}",
            *version(n),
            alone=True,
            says="belongs to a newer bellboard: restart Neovim",
            folds=False,
            survives=NOTHING,
        )
        for n in (99, 2**31 - 1)
    ),
    Fault("of version 2", *version(2), survives=NOTHING, alone=True),
    *(
        Fault(
            f"of version {n}",
            *version(n),
            survives=NOTHING,
            waits="impossible schema version",
            alone=True,
        )
        for n in (-1, -(2**31))
    ),
)
LOCKED: Final[dict[str, Any]] = {
    "says": "locked by another process: `bellboard doctor` names it",
    "doctor": "kill -CONT ",
    "lists": "locked by another process",
    "folds": False,
    "alone": True,
}
LOCKS = (
    Fault("board.db is written", held("board.db", "BEGIN IMMEDIATE"), undo, **LOCKED),
    Fault("board.db is read and written", held("board.db", "BEGIN EXCLUSIVE"), undo, **LOCKED),
    Fault("board.lock", held("board.lock"), undo, **LOCKED),
    Fault("drain.lock", held("drain.lock"), undo, alone=True),
    Fault(
        "hooks.lock",
        held("hooks.lock"),
        undo,
        says="hooks.lock is held by process ",
        alone=True,
    ),
    Fault(
        "board.lock is a folder",
        *instead("board.lock", Path.mkdir),
        doctor="board.lock is not a file",
        waits="board.lock",
    ),
    Fault(
        "hooks.lock is a folder",
        *before_the_start(*instead("hooks.lock", Path.mkdir)),  # later it is looked at every minute
        says="hooks.lock: Is a directory",
        doctor="hooks.lock is not a file",
    ),
    *(
        Fault(f"{name} is a folder", *instead(name, Path.mkdir), doctor=f"{name} is not a file")
        for name in state_folder.LOCKS
        if name not in ("board.lock", "hooks.lock")
    ),
)
DISKS = (
    Fault("full", *disk(full), says="no space left on the disk", folds=False, lists=None),
    Fault("without inodes", *disk(without_inodes), folds=False),
    Fault(
        "read-only at the spool",
        *made_read_only("spool", five_events),
        says="folded events cannot be deleted",
        folds=False,
    ),
    Fault(
        "read-only with a database that is overwritten",
        *made_read_only("", lambda target: overwritten(target.board / "board.db")),
        says="it cannot be moved away",
        survives=SESSIONS,
        folds=False,
        lists=None,
    ),
    Fault("read-only", *disk(read_only), says="Read-only file system", folds=False),
)
AWAY: Final = "does not respond (since "
HUNG = (
    *(
        Fault(f"as {name}", hanging(event(**{name: "HUNG/x"})), undo, says=AWAY)
        for name in ("cwd", "transcript_path", "CLAUDE_CONFIG_DIR")
    ),
    Fault("as tmux", hanging(event(tmux="HUNG/x")), undo, says="not connecting"),
    Fault("behind a link", hanging(link), undo, says=AWAY),
    Fault("of git", hanging(git), undo, says=AWAY),
    Fault("at its session files", hanging(event(), "claude/sessions"), undo, says=AWAY),
    Fault("behind its settings", hanging(settings), undo),
    *(
        Fault(
            f"at {name} of the state folder",
            mounted(name),
            undo,
            says="is a mount (fuse.hung) that may hang",
            doctor="is a mount (fuse.hung) that may hang",
            refuses="that may hang",
            folds=False,
            hooks=False,
        )
        for name in ("hosts", "spool/bad", "links")
    ),
)
LIMITS = (
    Fault("files open", *limit(resource.RLIMIT_NOFILE, lambda _: 0), folds=False),
    Fault("hardly more files", *limit(resource.RLIMIT_NOFILE, hardly_more_files), folds=False),
    Fault("size of a file, of any", *limit(resource.RLIMIT_FSIZE, lambda _: 0), folds=False),
    Fault(
        "size of a file, as by a quota",
        *opened_once(*limit(resource.RLIMIT_FSIZE, hardly_more_room)),
        says="the disk reports an error",
        folds=False,
    ),
    Fault("processes", *limit(resource.RLIMIT_NPROC, lambda _: 0), folds=False),
    Fault("memory", *limit(resource.RLIMIT_AS, as_now), folds=False),
)


def no_fuse() -> str:
    """Return why no mount can hang here, or ""."""
    return no_root() or ("" if os.access(DEVICE, os.R_OK | os.W_OK) else f"there is no {DEVICE}")


def not_linux() -> str:
    """Return why limits of another process cannot be set here, or ""."""
    return "" if sys.platform == "linux" else "it needs Linux"


KINDS = (
    Kind("folder", FOLDERS),
    Kind("foreign", FOREIGN),
    Kind("board", DATABASE, within=HEAL),
    Kind("lock", LOCKS),
    Kind("disk", DISKS, lacks=no_root, alone=True),
    Kind("hung", HUNG, lacks=no_fuse),
    Kind("limit", LIMITS, lacks=not_linux),
)
