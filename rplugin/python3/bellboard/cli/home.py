"""The home that a command works on: opened, brought up to date, and what goes wrong in words."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..core.published import Published
    from ..hosting.folding import Clerk

Args = argparse.Namespace
Commands = Any  # argparse keeps the type of its subparsers to itself
Run = Callable[[Args], "int | None"]

PATIENCE = 4.0  # for another host that folds; it takes milliseconds, unless it is suspended

GLANCE = 0.25  # for a look at a place to jump to, which takes a moment, unless its folder hangs


class Problem(Exception):
    """What happened, to what, and what to do next; the text is for the user."""


def add(commands: Commands, name: str, run: Run, text: str) -> argparse.ArgumentParser:
    """A command with its line of help."""
    made: argparse.ArgumentParser = commands.add_parser(
        name, help=text, description=text[0].upper() + text[1:] + "."
    )
    made.set_defaults(run=run)
    return made


def here() -> Path:
    """Where the state lives."""
    from ..storage.spool import Refused, default_home

    try:
        return default_home(os.environ)
    except Refused as e:
        raise Problem(f"{e}; set BELLBOARD_HOME to an absolute path, or unset it") from None


@contextlib.contextmanager
def opened() -> Iterator[Clerk]:
    """The board, up to date; where no host is, this is one for a moment."""
    import sqlite3

    import msgspec

    from ..storage.store import Busy, Damaged

    home = here()
    clerk = None
    try:
        clerk = _clerk(home)
        _catch_up(clerk)
        yield clerk
    except Busy:
        raise Problem(f"another host holds {home / 'board.db'} for long; try again") from None
    except Damaged as e:
        raise Problem(
            f"{e}: it is damaged; start Neovim or `bellboard serve`, which sets it aside"
        ) from None
    except sqlite3.Error as e:
        raise Problem(f"{home / 'board.db'}: {e}; {_remedy(str(e))}") from None
    except msgspec.MsgspecError as e:
        raise Problem(
            f"{home / 'board.db'} holds a record that cannot be read: {e}; "
            "start Neovim or `bellboard serve`, which sets it aside"
        ) from None
    finally:
        if clerk is not None:
            clerk.store.close()


def _clerk(home: Path) -> Clerk:
    import sqlite3

    from ..hosting.folding import Clerk
    from ..storage.database import Unmigrated
    from ..storage.holders import holder
    from ..storage.spool import Refused, Spool
    from ..storage.store import Busy, Store

    spool = Spool(home)
    try:
        spool.prepare()
        return Clerk(spool, Store(home))
    except Refused as e:
        raise Problem(f"{e}; set BELLBOARD_HOME to a folder of your own") from None
    except Unmigrated:
        raise
    except OSError as e:
        if not (home / "board.db").is_file():
            raise Problem(
                f"cannot make {home}: {reason(e, home)}; "
                "make way there, or set BELLBOARD_HOME to a folder that can be written"
            ) from None
        why = f"cannot write in {home}: {e.strerror}"
    except Busy:
        by = f"process {holder(home) or 'of unknown number'}"
        why = f"{by} keeps {home / 'board.db'} to itself"
    except sqlite3.OperationalError as e:
        why = f"{home / 'board.db'} cannot be written: {e}; {_remedy(str(e))}"
    warn(f"{why}; what is shown may be old")
    return Clerk(spool, Store(home, readonly=True))


def _catch_up(clerk: Clerk) -> None:
    """Fold what waits, or at least read what others have folded."""
    import sqlite3

    import msgspec

    from ..storage.store import Busy, Newer

    store, deadline = clerk.store, time.monotonic() + PATIENCE
    try:
        if store.readonly:
            store.check_version()
            store.refresh(clerk.board)
        else:
            _fold(clerk, deadline)
    except Busy:
        clerk.catch_up()
        warn("another host holds the database for long; what is shown may be old")
    except Newer:
        try:
            store.refresh(clerk.board)
        except (msgspec.MsgspecError, sqlite3.Error):
            raise Problem(
                f"{store.path} was written by a newer bellboard, and cannot be read by this one; "
                "update it"
            ) from None
        warn(
            f"{store.path} was written by a newer bellboard; "
            "what is shown may be old: update this one"
        )


def _fold(clerk: Clerk, deadline: float) -> None:
    from ..storage.store import Busy

    while True:
        try:
            more = clerk.step(time.time()).more
            due = clerk.board.due()
            if not more and (due is None or due > time.time()):
                return
        except Busy:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _remedy(error: str) -> str:
    if "full" in error:
        return "free some space; nothing of the spool is lost"
    if "readonly" in error or "unable to open" in error:
        return "make it writable for you, or set BELLBOARD_HOME"
    return "try again, and see `bellboard serve` if it stays so"


def reason(e: OSError, path: Path) -> str:
    """What the system said, and of which file, if of another."""
    other = e.filename and str(e.filename) != str(path)
    return f"{e.filename}: {e.strerror}" if other else str(e.strerror)


def warn(text: str) -> None:
    """Say on standard error, in one line, what is not as it should be."""
    from ..core.visible import plain

    with contextlib.suppress(OSError, ValueError, AttributeError):  # it may be closed
        print(f"bellboard: {plain(text)}", file=sys.stderr)


def listed(clerk: Clerk) -> list[Published]:
    """As published, most urgent first, without places that are not to be jumped to."""
    from ..core.published import snapshot
    from ..hosting.addresses import Places

    places = Places(lambda: None, GLANCE)
    return [places.shown(p) for p in snapshot(clerk.board.sessions.values())]


def print_json(value: object) -> None:
    """A line of JSON, in UTF-8 wherever this runs, in which nothing acts on a terminal."""
    import msgspec

    from ..core.lenient import plain
    from ..core.visible import as_json

    try:
        told = msgspec.json.encode(value)
    except UnicodeEncodeError:  # a path that is not UTF-8
        told = msgspec.json.encode(plain(value))
    sys.stdout.buffer.write(as_json(told).encode() + b"\n")


def find(clerk: Clerk, called: str) -> str:
    """The one session of that id, beginning of an id, or name."""
    from ..core import words
    from ..core.published import publish
    from ..core.session import is_listed

    sessions = {sid: s for sid, s in clerk.board.sessions.items() if sid}
    if called in sessions:
        return called
    found = [sid for sid in sessions if called and sid.startswith(called)]
    if not found:
        for sid, s in sessions.items():
            if is_listed(s):
                p = publish(s)
                names = (p.get("name"), p.get("title"), words.project(p), words.repository(p))
                if called and called in names:
                    found.append(sid)
    if len(found) == 1:
        return found[0]
    if not found:
        raise Problem(f"no session is called {called}; `bellboard list` shows those there are")
    some = ", ".join(sorted(found)[:4]) + (", …" if len(found) > 4 else "")
    raise Problem(f"{len(found)} sessions are called {called}: {some}; name one by its id")
