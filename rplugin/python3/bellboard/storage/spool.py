"""The spool: a directory in which every event is one file, until a host has folded it.

    ~/.local/state/bellboard/       $BELLBOARD_HOME, or bellboard under $XDG_STATE_HOME; mode 0700
      spool/new/NAME                complete events; hosts read these, oldest first
      spool/slot/PID.EVENT          the same while no host is running: the last tool event of a kind
      spool/tmp/NAME                being written; nobody reads it
      spool/bad/TIME-NAME           refused, with the reason in TIME-NAME.why: the newest 200, 20 MB
      spool/bad/refused.json        how many were ever refused, by reason
      hosts/PID                     a running host
      hosts/PID.unsaved             files with unsaved changes in its editor, if hooks are to ask
      links/                        the machines that are followed (`machines.py`)
      answers/                      what is asked, and who answers it (`answers.py`)

A file appears in new/ or slot/ by rename, so it is always complete. Its time is its modification
time, to the nanosecond; names decide between equal times. A NAME has up to 200 of the characters
A-Z a-z 0-9 _ . - and no other meaning. That of a hook is never reused; evidence that several hosts
may report has the same name from each.

A file is a hook event, or evidence that hosts and users add (`event_file.py`).
"""

# ruff: noqa: PTH104, PTH108
# Paths are strings here: making 100,000 Paths costs as much as listing the files.

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from operator import itemgetter
from pathlib import Path

import msgspec

from ..system.files import created
from . import state_folder
from .answers import FOLDER, Pipes, Questions
from .event_file import LIMIT, NAME, Item, read_item
from .hosts import Hosts
from .set_aside import Aside, remove
from .state_folder import Refused as Refused
from .state_folder import briefly, inside, is_event, listing

BELOW = ("spool", "spool/tmp", "spool/new", "spool/slot", "spool/bad", "hosts")
ADDED = (FOLDER, "links")  # optional: without them, no request is kept or machine followed
TMP_AGE = 3600.0  # seconds; no hook writes for that long: the CLI's usual timeout is 600 s


def default_home(environ: Mapping[str, str]) -> Path:
    """Return the state folder, by the same rule as `hooks/emit`, which ignores relative paths."""
    if environ.get("BELLBOARD_HOME"):
        return _absolute("BELLBOARD_HOME", environ)
    return user_state(environ) / "bellboard"


def user_state(environ: Mapping[str, str]) -> Path:
    """Return the folder in which the user's programs keep their state.

    A relative XDG_STATE_HOME is ignored, as its specification says.
    """
    if environ.get("XDG_STATE_HOME", "").startswith("/"):
        return _absolute("XDG_STATE_HOME", environ)
    return _absolute("HOME", environ) / ".local/state"


def _absolute(name: str, environ: Mapping[str, str]) -> Path:
    path = environ.get(name)
    if not path:
        raise Refused(f"{name} is not set")
    if not path.startswith("/") or "\0" in path:
        raise Refused(f"{name} is not an absolute path: {path}")
    return Path(path)


class Spool:
    """The spool; `claim_slots`, `scan`, `set_aside` and `finish` need the lock of the store."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.new = home / "spool" / "new"
        self.slot = home / "spool" / "slot"
        self._new, self._slot = str(self.new), str(self.slot)
        self._tmp = f"{home}/spool/tmp"
        self._aside = Aside(f"{home}/spool/bad")
        self.hosts = Hosts(f"{home}/hosts")
        self.pipes = Pipes(f"{home}/{FOLDER}")
        self.questions = Questions(f"{home}/{FOLDER}")
        self._serial = itertools.count()
        self._stuck: set[str] = set()
        self.is_behind = False  # whether `claim_slots` and `scan` left something for the next time

    def prepare(self) -> None:
        """Create the private folders; raise `Refused` if somebody else could replace them."""
        state_folder.make(self.home, BELOW)
        for folder in ADDED:
            with contextlib.suppress(OSError):  # a full disk, since an update
                state_folder.make(self.home, (folder,))

    def restore(self) -> None:
        """Create the folders that somebody has removed."""
        if not all((self.home / name).is_dir() for name in BELOW + ADDED):
            self.prepare()

    def obstacle(self) -> str:
        """Return the first fault inside the folder, or ""."""
        return state_folder.obstacle(self.home, BELOW + ADDED)

    # ---------------------------------------------------------------- waiting events

    def scan(self) -> list[str]:
        """Return the names in new/, oldest first; set files with invalid names aside."""
        found: dict[str, int] = {}  # a name may be listed twice, as in `listing`
        improper: list[str] = []
        with inside(self._new) as folder, os.scandir(folder) as entries:
            for entry in entries:
                name = entry.name
                if name in self._stuck:
                    continue
                if NAME.fullmatch(name) is None:
                    improper.append(name)
                else:
                    with contextlib.suppress(FileNotFoundError):
                        found[name] = entry.stat(follow_symlinks=False).st_mtime_ns
        tried = 0
        for name in briefly(improper):
            tried += 1
            self.set_aside(name, "invalid name")
        self.is_behind |= tried < len(improper)
        return sorted(found, key=lambda name: (found[name], name))

    def only(self, arrived: Collection[str]) -> list[str]:
        """Return the name of a single arrival without listing the directory, else nothing."""
        if len(arrived) != 1:
            return []
        (path,) = arrived
        name = path[len(self._new) + 1 :]
        return [] if NAME.fullmatch(name) is None or name in self._stuck else [name]

    def is_there(self, name: str) -> bool:
        """Return whether a file is in new/."""
        return os.path.lexists(f"{self._new}/{name}")

    def holds_any(self) -> bool:
        """Return whether any file waits, also in slots; takes a few microseconds."""
        return _holds(self._new) or _holds(self._slot)

    def pending(self) -> int:
        """Return how many files wait in new/."""
        return len(set(listing(self._new)) - self._stuck)

    def claim_slots(self) -> None:
        """Move the files in slot/ to new/ under unique names."""
        tried = 0
        names = listing(self._slot)
        for name in briefly(names):
            tried += 1
            proper = name if NAME.fullmatch(name) and len(name) < 150 else "slot"
            with contextlib.suppress(OSError):  # read-only: it stays, and counts in health
                os.rename(f"{self._slot}/{name}", f"{self._new}/{proper}.{self._unique()}")
        self.is_behind = tried < len(names)

    def read(self, name: str) -> Item | None:
        """Read a file; return None if it is gone, raise `Refused` if it is not a valid event.

        A pipe belongs to the event that its hook names, and to none that was cut.
        """
        item = read_item(self._new, name)
        if item and item.pipe and (item.truncated or self.pipes.owner(item.pipe) != name):
            return msgspec.structs.replace(item, pipe="")
        return item

    def unlink(self, names: Iterable[str], standing: Collection[str] = ()) -> list[str]:
        """Remove folded files, or keep them in answers/ while their question is in `standing`.

        Return the names that could not be removed.
        """
        left, kept = [], False
        for name in names:
            path = f"{self._new}/{name}"
            # Only events are found again, and limited. A second one of that name was not folded.
            if name in standing and is_event(name) and not self.questions.holds(name):
                with contextlib.suppress(OSError):  # gone, or it cannot be kept
                    self.questions.keep(path, name)
                    kept = True
                    continue
            try:
                os.unlink(path)
            except FileNotFoundError:
                pass
            except OSError:
                left.append(name)
        if kept:
            with contextlib.suppress(OSError):  # committed all the same
                self.questions.drop_oldest()
        return left

    # ---------------------------------------------------------------- evidence of open questions

    def request(self, name: str) -> Item | None:
        """Read the event that asked, under the same rules; return None if it is not kept."""
        if NAME.fullmatch(name) is None:
            return None
        return self.questions.read(name) or read_item(self._new, name)

    def unkept(self, standing: Collection[str]) -> int:
        """Return how many of these questions cannot be answered, as their event is not kept."""
        kept = (self.questions.holds(x) or self.is_there(x) for x in standing)
        return sum(not one for one in kept)

    # ---------------------------------------------------------------- evidence of hosts and users

    def write(self, line: Mapping[str, object], key: str | None = None) -> bool:
        """Add a line of evidence, timed by its "t"; return False if one with that key is waiting.

        The name is derived from the key, so that hosts that see the same thing write the same file.
        Raise OSError if it cannot be written, and leave nothing behind.
        """
        data = msgspec.json.encode(line)
        if len(data) > LIMIT:
            raise ValueError(f"a line of {len(data)} bytes; the limit is {LIMIT}")
        serial = self._unique()
        name, tmp = name_of(key) if key else f"line.{serial}", f"{self._tmp}/line.{serial}"
        new = f"{self._new}/{name}"
        if key and os.path.lexists(new):
            return False
        with created(tmp, data):
            t = line.get("t")
            if isinstance(t, (int, float)) and 0 <= t < 1 << 33:
                os.utime(tmp, ns=(int(t * 1e9),) * 2)
            # Two hosts may both get here: then the second replaces the file with an equal one.
            os.rename(tmp, new)
        return True

    # ---------------------------------------------------------------- refused files

    def set_aside(self, name: str, reason: str, detail: str = "") -> None:
        """Move a file from new/ to bad/ with the reason, and count it.

        A file that can be neither moved nor removed is ignored until the next `sweep`.
        """
        if not self._aside.take(f"{self._new}/{name}", name, reason, detail):
            self._stuck.add(name)

    def ignore(self, name: str) -> None:
        """Ignore a file until the next `sweep`: it may be readable then."""
        self._stuck.add(name)

    def finish(self) -> None:
        """Complete what `set_aside` began; call this once for many, within the lock."""
        self._aside.finish()

    def counts(self) -> dict[str, int | dict[str, int]]:
        """Count files for health: waiting, in slots, stuck, kept in bad/, and ever refused."""
        return {
            "pending": self.pending(),
            "slots": len(listing(self._slot)),
            "stuck": len(self._stuck.intersection(listing(self._new))),
            "bad": self._aside.kept(),
            "refused": self._aside.refused(),
        }

    def failed(self) -> int:
        """Return how many files in bad/ are there because bellboard itself failed."""
        return self._aside.failed()

    def waits_since(self) -> float | None:
        """Return when the file in new/ that has waited longest came, whatever the event's time."""
        return min((came for _, came in self._ages(self._new)), default=None)

    def unfinished(self, age: float) -> list[str]:
        """Return the files in tmp/ that nobody has finished for that many seconds, oldest first."""
        old = time.time() - age
        return [name for name, t in sorted(self._ages(self._tmp), key=itemgetter(1)) if t < old]

    def _ages(self, folder: str) -> Iterator[tuple[str, float]]:
        """Yield the names of events in a folder, each with the time since when it is there."""
        for name in filter(NAME.fullmatch, listing(folder)):
            with contextlib.suppress(FileNotFoundError):
                yield name, os.lstat(f"{folder}/{name}").st_ctime

    def sweep(self) -> None:
        """Remove files that killed writers left in tmp/, and retry those that were left in new/."""
        self._stuck.clear()
        old = time.time() - TMP_AGE
        for name in briefly(filter(NAME.fullmatch, listing(self._tmp))):
            with contextlib.suppress(FileNotFoundError):
                if os.lstat(f"{self._tmp}/{name}").st_mtime < old:
                    remove(f"{self._tmp}/{name}")

    def _unique(self) -> str:
        return f"{time.time_ns()}.{os.getpid()}.{next(self._serial)}"


def _holds(folder: str) -> bool:
    with inside(folder) as fd, os.scandir(fd) as entries:
        return next(entries, None) is not None


def name_of(key: str) -> str:
    """Return the name of evidence with that key."""
    import hashlib  # loads OpenSSL, and few commands need it

    digest = hashlib.blake2b(key.encode("utf-8", "replace"), digest_size=16)
    return f"line.{digest.hexdigest()}"
