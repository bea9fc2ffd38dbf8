"""The state folder of a command: its board, the session that a name means, the terminal."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ..core.published import Looked, Published
    from ..hosting.turn import SharedBoard


SCHEMA: Final = 1  # the version of what `--json` prints: another one may lack fields of this one
PATIENCE = 4.0  # seconds to wait for another process to fold, which takes milliseconds
OFTEN = 2.0  # seconds between two looks for a status bar
GLANCE = 0.25  # seconds to check an address; it takes 0.1 ms unless its folder hangs


class Problem(Exception):
    """A failure to report: the text tells the user what happened, to what, and what to do."""


def here() -> Path:
    """Return the state folder, after checking that its mount responds."""
    home = named_home()
    check_mount(home, "set BELLBOARD_HOME to a folder on a local disk")
    return home


def named_home() -> Path:
    """Return the state folder without a check of its mount, so using it may hang."""
    from ..storage.spool import Refused, default_home

    try:
        return default_home(os.environ)
    except Refused as e:
        raise Problem(f"{e}; set BELLBOARD_HOME to an absolute path") from None


def check_mount(path: str | Path, otherwise: str = "") -> None:
    """Report a path on a mount that does not respond; `otherwise` is the alternative to advise."""
    from ..system.separate import silent

    if mount := silent(path):
        what = f"the mount {mount.place} ({mount.kind}) does not respond: unmount it"
        raise Problem(f"cannot access {path}: {what}{f', or {otherwise}' if otherwise else ''}")


def working() -> Path:
    """Return the working directory."""
    try:
        return Path.cwd()
    except OSError:
        raise Problem("the working directory was removed; change to another one") from None


def absolute(named: str) -> Path:
    """Return a path that the user named, from the root."""
    path = Path(named)
    with contextlib.suppress(RuntimeError):  # there is no such user: `~name` is a file
        path = path.expanduser()
    return path if path.is_absolute() else working() / path


def around() -> Path:
    """Return the folder whose settings apply: the root, if the working directory was removed."""
    try:
        return working()
    except Problem:
        return Path("/")


@contextlib.contextmanager
def opened() -> Iterator[SharedBoard]:
    """Open the board and bring it up to date, folding pending events if no host does."""
    import sqlite3

    with _without("typing_extensions", since=(3, 11)):
        import msgspec
    from ..storage.store import Busy, Damaged, Newer
    from ..system.failures import described

    home = here()
    shared = None
    try:
        shared = _shared_board(home)
        _catch_up(shared)
        yield shared
    except Busy:
        raise Problem(f"{home / 'board.db'} is locked by another process; try again") from None
    except Newer:
        raise Problem(
            f"{home / 'board.db'} was written by a newer bellboard; "
            "nothing in it was changed: update this bellboard"
        ) from None
    except Damaged as e:
        raise Problem(
            f"{e}: the database is damaged; start Neovim or `bellboard serve` to replace it"
        ) from None
    except sqlite3.Error as e:
        raise Problem(f"{home / 'board.db'}: {described(e)}; {_remedy(str(e))}") from None
    except msgspec.MsgspecError:
        raise Problem(
            f"{home / 'board.db'} contains a record that cannot be read; "
            "start Neovim or `bellboard serve` to repair it"
        ) from None
    finally:
        if shared is not None:
            shared.store.close()


@contextlib.contextmanager
def _without(name: str, since: tuple[int, int] = (0, 0)) -> Iterator[None]:
    """Import without a module that takes as long as all others, and is not needed.

    From Python 3.11 on, msgspec needs nothing of `typing_extensions`; a look needs asyncio, but not
    `ssl`.  Both work without these modules.
    """
    is_spared = sys.version_info >= since and name not in sys.modules
    if is_spared:
        sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        if is_spared:
            del sys.modules[name]


def _shared_board(home: Path) -> SharedBoard:
    import sqlite3

    from ..hosting.turn import SharedBoard
    from ..storage.database import Unmigrated
    from ..storage.spool import Spool
    from ..storage.store import Busy, Store
    from ..system.failures import described

    spool = Spool(home)
    try:
        with refusals():
            spool.prepare()
            return SharedBoard(spool, Store(home))
    except Unmigrated:
        raise
    except OSError as e:
        if not (home / "board.db").is_file():
            raise Problem(
                f"cannot create {home}: {reason(e, home)}; "
                "remove what is in the way, or set BELLBOARD_HOME to a writable folder"
            ) from None
        why = f"cannot write to {e.filename or home}: {e.strerror}"
    except Busy:
        why = f"{home / 'board.db'} is locked by another process, which `bellboard doctor` names"
    except sqlite3.OperationalError as e:
        why = f"cannot write to {home / 'board.db'}: {described(e)}; {_remedy(str(e))}"
    warn(f"{why}; the output may be out of date")
    return SharedBoard(spool, Store(home, readonly=True))


def share(shared: SharedBoard, key: str, value: object) -> None:
    """Set a shared option, and wake all hosts."""
    store = shared.store
    if store.database.readonly:
        raise Problem(
            f"cannot write to {store.database.path}, so nothing was changed; make it writable"
        )
    with store.transaction() as tx:
        tx.set_option(key, value, os.getpid(), time.time())
    shared.spool.write({"t": time.time(), "tick": {}})


def _catch_up(shared: SharedBoard) -> None:
    """Fold pending events, or at least read the board as others have folded it."""
    import sqlite3

    import msgspec

    from ..storage.store import Busy, Newer

    store, deadline = shared.store, time.monotonic() + PATIENCE
    try:
        if store.database.readonly:
            store.database.check_version()
            store.refresh(shared.board)
        else:
            _fold(shared, deadline)
    except Busy:
        shared.catch_up()
        warn("the database is locked by another process; the output may be out of date")
    except Newer:
        try:
            store.refresh(shared.board)
        except (msgspec.MsgspecError, sqlite3.Error):
            raise Problem(
                f"{store.database.path} was written by a newer bellboard and cannot be read; "
                "update this bellboard"
            ) from None
        warn(
            f"{store.database.path} was written by a newer bellboard; "
            "the output may be out of date: update this bellboard"
        )


def refresh(shared: SharedBoard) -> None:
    """Fold pending events; while another process folds them, read its result."""
    from ..storage.store import Busy

    try:
        _fold(shared, time.monotonic())
    except Busy:
        shared.catch_up()


def _fold(shared: SharedBoard, deadline: float) -> None:
    from ..storage.store import Busy

    while True:
        try:
            more = shared.turn(time.time()).more
            due = shared.board.due()
            if not more and (due is None or due > time.time()):
                return
        except Busy:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _remedy(error: str) -> str:
    if "full" in error:
        return "free some disk space; no event is lost"
    if "readonly" in error or "unable to open" in error:
        return "make it writable, or set BELLBOARD_HOME to another folder"
    return "try again; if it keeps failing, see what `bellboard serve` reports"


@contextlib.contextmanager
def refusals() -> Iterator[None]:
    """Report a state folder that must not be used."""
    from ..storage.state_folder import ADVICE, Refused

    try:
        yield
    except Refused as e:
        raise Problem(f"{e}; {ADVICE}") from None


def reason(e: OSError, path: Path) -> str:
    """Return the system's message, preceded by the file at fault unless that is `path`."""
    other = e.filename and str(e.filename) != str(path)
    return f"{e.filename}: {e.strerror}" if other else str(e.strerror or e)


def warn(text: str) -> None:
    """Print a warning on standard error, in one line."""
    try:
        from ..core.text import plain
    except ModuleNotFoundError:  # no packages: the text is ours, not untrusted
        plain = str  # type: ignore[assignment]

    with contextlib.suppress(OSError, ValueError, AttributeError):  # standard error may be closed
        print(f"bellboard: {plain(text)}", file=sys.stderr)


def verify(shared: SharedBoard, age: float = 0.0) -> Looked:
    """Look at the sessions unless a host does; a look up to `age` seconds old will do."""
    if shared.spool.hosts.is_watching():
        from ..core.published import Looked

        return Looked(time.time(), frozenset())
    with _without("ssl"):
        from ..hosting.look import look
    return look(shared, os.environ, age)


def shown(shared: SharedBoard, age: float = 0.0) -> list[Published]:
    """Return the published sessions, most urgent first, as far as they are verified."""
    from ..core.published import snapshot, verified

    looked = verify(shared, age)
    return [verified(p, looked) for p in snapshot(shared.board.sessions.values())]


def listed(shared: SharedBoard, age: float = 0.0) -> list[Published]:
    """Return the sessions as `shown`, without addresses that the gate denies."""
    from ..hosting.addresses import Addresses

    addresses = Addresses(None, GLANCE)
    return [addresses.shown(p) for p in shown(shared, age)]


def with_pane_names(some: Sequence[Published]) -> list[Published]:
    """Return sessions with what people call their panes, where that is known."""
    some = list(some)
    if not any(p.get("pane") for p in some):
        return some
    from ..system.tmux import names_of

    names = names_of({p["session_id"]: p for p in some})
    return [{**p, "pane_name": names.get(p["session_id"], "")} for p in some]


def print_json(fields: Mapping[str, object]) -> None:
    """Print an object for programs, as doc/bellboard.schema.json describes it."""
    print_line({"v": SCHEMA, **fields})


def print_line(value: object) -> None:
    """Print one line of JSON: always UTF-8, and free of terminal escapes."""
    from ..core.text import as_json
    from ..core.untrusted import encoded

    sys.stdout.buffer.write(as_json(encoded(value)).encode() + b"\n")


def icons(shared: SharedBoard) -> Mapping[str, str]:
    """Return the icons that the user chose in Neovim."""
    from ..core.words import icons_of
    from ..storage.store import ICONS

    return icons_of(shared.store.option(ICONS))


# ---------------------------------------------------------------- the session of a name

SHORTEST: Final = 4  # characters of an id in a message
SOME: Final = 4  # sessions in a message
ROOM: Final = 24  # cells for the title of a session in a message


class Ambiguous(Problem):
    """Several sessions have the name that was given."""


def find_session(
    shared: SharedBoard,
    called: str,
    also_logged: bool = False,
    makes_sense: Callable[[Published], bool] | None = None,
    among: Mapping[str, Published] | None = None,
    lists: str = "bellboard list",
) -> str:
    """Return the id of the one session with this id, start of an id, or name; listed ones first.

    With `also_logged`, look for it in the log as well.  Of several sessions, return the one for
    which `makes_sense` is true.  `among` are those that the command `lists`, in place of those that
    run.  `lua/bellboard/find_session.lua` accepts the same names.
    """
    from ..core.nearest import meant as meant_name
    from ..core.published import publish
    from ..core.session import is_listed

    sessions = {sid: s for sid, s in shared.board.sessions.items() if sid}
    if called in sessions:
        return called
    if (shown := among) is None:
        shown = {sid: publish(s) for sid, s in sessions.items() if is_listed(s)}
    names = {sid: _names(p) for sid, p in shown.items()}

    def meant(called: str) -> list[str]:
        if named := [sid for sid in names if called in names[sid]]:
            return named  # not also one whose id begins like that: who names a session knows none
        alike = [sid for sid in sessions if called and sid.startswith(called)]
        return [sid for sid in alike if sid in names] or alike

    found = sorted(meant(called))
    if len(found) > 1 and makes_sense is not None:
        found = [sid for sid in found if sid in shown and makes_sense(shown[sid])] or found
    if len(found) == 1:
        return found[0]
    if not found and also_logged and (sid := _logged(shared, called)):
        return sid
    if not found:
        known = (str(name) for some in names.values() for name in some)
        step = meant_name(called, known, f"run `{lists}` to see them all")
        raise Problem(f"no session matches {called}; {step}")
    starts = {}
    for sid in found[:SOME]:
        own = (sid[:n] for n in range(SHORTEST, len(sid)) if meant(sid[:n]) == [sid])
        starts[sid] = next(own, sid)
    some = ", ".join(_told(start, shown.get(sid)) for sid, start in starts.items())
    more = ", …" if len(found) > SOME else ""
    raise Ambiguous(f"{len(found)} sessions match {called}: {some}{more}; give one of these ids")


def _logged(shared: SharedBoard, called: str) -> str:
    """Return the id of the one session in the log with this id or start of an id, or ""."""
    found = sorted(shared.store.logged(called)) if called else []
    if len(found) > 1 and called not in found:
        some = ", ".join(found[:SOME]) + (", …" if len(found) > SOME else "")
        raise Problem(f"{len(found)} sessions in the log match {called}: {some}; give one of these")
    return called if called in found else "".join(found)


def _names(p: Published) -> set[object]:
    """Return a session's names besides its id, the same as completion in Neovim offers."""
    from ..core import words

    shown = p.get("name") or words.title(p)
    of = (shown, p.get("title"), words.project(p), words.repository(p), p.get("worktree"))
    return {name for name in of if name}


def _told(start: str, p: Published | None) -> str:
    """Return the start of an id, with the session's title to tell it from others of its name."""
    from ..core import words
    from ..core.text import cut

    title = cut(words.title(p), ROOM) if p else ""
    return f"{start} ({title})" if title else start


# ---------------------------------------------------------------- the terminal


def has_terminal() -> bool:
    """Return whether input and output are a terminal, so that the user can be asked."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def paints() -> bool:
    """Return whether output goes to a terminal whose cursor can be moved."""
    from ..screen.terminal import COLORLESS

    term = os.environ.get("TERM", "").lower()
    return sys.stdout.isatty() and term not in ("", *COLORLESS)


def says_yes(question: str) -> bool:
    """Ask a question; anything but yes means no, also if nothing is typed before CTRL-D."""
    sys.stdout.flush()
    try:
        typed = input(f"{question} [y/N] ")
    except (EOFError, UnicodeDecodeError):
        print()
        return False
    return typed.strip().lower() in ("y", "yes")
