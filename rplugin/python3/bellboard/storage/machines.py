"""The machines that a user follows, and the folder through which hosts share that work.

    links/machines.json          name → command: `added` by the shell, `nvim` by the last Neovim
    links/MACHINE/lock           held by the host that keeps the link; its process id is inside
    links/MACHINE/ask/NAME       what is asked of the machine, by any program of ours (`Mailbox`)
    links/MACHINE/reply/NAME     its reply
    links/MACHINE/fleet          there if the fleet follows it, instead of a link
    links/.fleet/                the same for the fleet itself: who runs its program, and claims

Commands in the file are run: like everything in the state folder it is ours alone.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ..core.deadlines import NEVER
from ..core.far import MACHINE
from ..system import remotely
from ..system.files import decoded, put, read
from ..system.locks import PATIENCE, Lock, locked
from ..system.processes import is_alive
from .event_file import OF_THE_SYSTEM
from .set_aside import remove
from .state_folder import clear, is_letter, listing

if TYPE_CHECKING:
    from ..system.deaths import Deaths


FOLDER: Final = "links"
FILE: Final = "machines.json"
LOCK: Final = "machines.lock"
FLEET: Final = "fleet"
OURS: Final = ".fleet"  # the folder of the fleet itself: no machine can have this name
OPTION: Final = "fleet"  # the shared option with the settings of `bellboard fleet join`
LARGEST_LIST: Final = 1 << 20  # bytes of the file
MOST: Final = 64  # machines
MOST_WORDS: Final = 100  # of a command
SOON: Final = 0.5  # seconds: its holder has not written its id yet, or has just died

Commands = dict[str, list[str]]


class Machines(msgspec.Struct, frozen=True):
    """The machines, by who named them; if both name one, Neovim's counts."""

    added: Commands = {}
    nvim: Commands = {}

    @property
    def all(self) -> Commands:
        return dict(sorted({**self.added, **self.nvim}.items())[:MOST])


def known(home: Path) -> Machines:
    """Return the machines that are to be followed; none if the file cannot be read."""
    try:
        return stored(home)
    except OSError:
        return Machines()


def stored(home: Path) -> Machines:
    """Return the machines that are to be followed; raise OSError if the file cannot be read."""
    path = home / FOLDER / FILE
    try:
        given = msgspec.json.decode(read(path, LARGEST_LIST)[0], type=Machines)
    except FileNotFoundError:
        return Machines()
    except (msgspec.MsgspecError, ValueError):
        raise OSError(errno.EINVAL, "not a list of machines; fix or remove it", path) from None
    return Machines(usable(given.added), usable(given.nvim))


def usable(given: object) -> Commands:
    """Return the entries that name a machine and a command."""
    found: Commands = {}
    for name, words in given.items() if isinstance(given, Mapping) else ():
        if not wrong(name, words):
            found[name] = list(words)
    return found


def wrong(name: object, words: object) -> str:
    """Return the fault in the entry of a machine, or ""."""
    if not isinstance(name, str) or not MACHINE.fullmatch(name):
        if name in (FILE, LOCK):
            return "a file of ours has that name"
        return "a name has at most 63 of A-Z a-z 0-9 . _ - and begins with a letter or a digit"
    if not isinstance(words, list | tuple) or not 0 < len(words) <= MOST_WORDS:
        return "its command must be a list of words, such as { 'ssh', 'dev' }"
    if not all(isinstance(w, str) and w and "\0" not in w and len(w) < 4096 for w in words):
        return "each word of its command must be text, and not empty"
    return remotely.unfit(words)


def edit(home: Path, edited: Callable[[Machines], Machines], patience: float = PATIENCE) -> bool:
    """Change the stored list under its lock; return whether it is different now.

    Raise OSError if it cannot be written.
    """
    folder = prepare(home)
    with locked(folder / LOCK, patience):
        before = stored(home)
        if (after := edited(before)) == before:
            return False
        put(folder / FILE, msgspec.json.format(msgspec.json.encode(after)) + b"\n")
    return True


def prepare(home: Path, machine: str = "") -> Path:
    """Create the folder of all links, or that of one machine."""
    folders = [home / FOLDER]
    if machine:
        one = folders[0] / machine
        folders += [one, one / "ask", one / "reply"]
    for folder in folders:
        folder.mkdir(0o700, exist_ok=True)
    return folders[1] if machine else folders[0]


def was_followed(home: Path, machine: str) -> bool:
    """Return whether a link to a machine was kept, or a fleet followed it before we left that."""
    folder = home / FOLDER / machine
    return (folder / "ask").is_dir() and not (folder / FLEET).exists()


def lend(home: Path, machine: str) -> None:
    """Note that the fleet follows a machine, so that it stays although no link to it is wanted."""
    (prepare(home, machine) / FLEET).touch(0o600)


def regain(home: Path) -> None:
    """Note that no fleet follows a machine any longer."""
    for mark in (home / FOLDER).glob(f"*/{FLEET}"):
        if (mark.parent / "ask").is_dir():  # as `prepare` makes it
            mark.unlink(missing_ok=True)


def forget(home: Path, machine: str) -> None:
    """Remove our files from the folder of a machine that is no longer followed."""
    with contextlib.suppress(OSError):
        clear(home / FOLDER / machine, f"{FOLDER}/")


def lock_of(home: Path, machine: str) -> Lock:
    """Return the lock that says who keeps the link to a machine."""
    return Lock(prepare(home, machine) / "lock")


def take_or_watch(lock: Lock, deaths: Deaths) -> float | None:
    """Take the lock, or watch the process that has it; return the seconds until the next try."""
    if lock.take():
        return None
    pid = lock.holder()
    if not pid or pid == os.getpid() or not is_alive(pid):
        return SOON
    deaths.watch(pid)
    return NEVER


# Requests to another machine: a file for each, and one for its reply.
#
# Any program of ours may ask; the host that keeps the link passes it on (`machines.py` names
# the files). A file appears by rename, so it is whole; its reader removes it, or it expires.


OLD: Final = 60.0  # seconds after which nobody waits for a file
LARGEST_REQUEST: Final = 1 << 20  # bytes

_NAME: Final = re.compile(r"[0-9]{1,20}\.[0-9]{1,10}\.[0-9]{1,10}")
_serial = itertools.count()


class Mailbox:
    """The requests to one machine, and its replies."""

    def __init__(self, home: Path, machine: str) -> None:
        folder = prepare(home, machine)
        self.asked, self.replied = folder / "ask", folder / "reply"

    # ------------------------------------------------------------ who asks

    def ask(self, request: Mapping[str, Any]) -> str:
        """Ask for something; return the name of the request.  Raise OSError or ValueError."""
        data = msgspec.json.encode(request)
        if len(data) > LARGEST_REQUEST // 2:
            raise ValueError(f"a request of {len(data)} bytes is too long")
        name = f"{time.time_ns()}.{os.getpid()}.{next(_serial)}"
        put(self.asked / name, data)
        return name

    def take_reply(self, name: str) -> dict[str, Any] | None:
        """Return the reply and remove it; None while there is none."""
        return _take(self.replied / name)

    def withdraw(self, name: str) -> bool:
        """Take a request back; return False if somebody has read it already."""
        with contextlib.suppress(OSError):
            (self.asked / name).unlink()
            return True
        return False

    # ------------------------------------------------------------ who keeps the link

    def take(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the requests that wait, oldest first; remove them, and whatever has expired."""
        with contextlib.suppress(OSError):
            self._sweep()
        for name in _names(self.asked):
            request = _take(self.asked / name)
            if request is not None:
                yield name, request

    def reply(self, name: str, reply: Mapping[str, Any]) -> None:
        """Reply to a request."""
        with contextlib.suppress(OSError):  # the asker gives up after a while
            put(self.replied / name, msgspec.json.encode(reply))

    def _sweep(self) -> None:
        """Remove requests and replies that nobody waits for."""
        for folder in (self.asked, self.replied):
            for name in filter(is_letter, listing(folder)):
                with contextlib.suppress(OSError):
                    if (folder / name).lstat().st_mtime < time.time() - OLD:
                        remove(f"{folder}/{name}")


def _names(folder: Path) -> list[str]:
    with contextlib.suppress(OSError):
        return sorted(n for n in listing(folder) if _NAME.fullmatch(n))
    return []


def _take(path: Path) -> dict[str, Any] | None:
    try:
        data, status = read(path, LARGEST_REQUEST)
        path.unlink()
    except FileNotFoundError:  # nothing to remove: it may come at this very moment
        return None
    except OSError as error:
        if error.errno not in OF_THE_SYSTEM:  # a folder, for example: others wait behind it
            remove(str(path))
        return None
    return decoded(data) if status.st_mtime > time.time() - OLD else None
