"""The links of a host: which machines are followed, and for which of them this host does it.

Of all hosts of a user one keeps the link to a machine: the one that holds its lock.  The others
watch that process, and one of them takes over when it exits.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from ..core.board import Board
from ..core.deadlines import NEVER
from ..core.records import LinkState as Known
from ..storage import machines
from ..storage.feed_position import known_as
from ..storage.machines import OPTION, OURS, Machines, Mailbox, lock_of, take_or_watch
from ..storage.spool import Spool
from ..storage.store import Store
from ..system import files, remotely
from ..system.deaths import Deaths
from ..system.failures import described
from ..system.locks import PATIENCE, Held, Lock
from ..system.notes import Notes
from ..system.watch import Watch
from .far_evidence import Follower
from .fleet import Members, Post
from .link import Link
from .notify import SCREENS, present

REFUSED: Final = (
    "{} of its rows and changes were refused, as they are not valid; update bellboard there,"
    " or stop following it: bellboard machine remove {}"
)
JOIN: Final = 0.1  # seconds to wait for links that end: their programs end on their own

Folded = Mapping[str, Known]


class Links:
    """Follows machines from `open` on, which needs a running event loop."""

    def __init__(
        self,
        spool: Spool,
        config: Mapping[str, Any],
        environ: Mapping[str, str],
        wake: Callable[[], None],
        call: Callable[[Callable[[], object]], None],
    ) -> None:
        """`wake` and `call` run a round, and a function, in the event loop."""
        self._spool, self._home = spool, spool.home
        self._folder = f"{spool.home}/{machines.FOLDER}"
        self._environ, self._wake, self._call = environ, wake, call
        given = config.get("machines")
        self._given = given if isinstance(given, Mapping) else None
        self._refused = {
            f"machine {str(name)[:80]}": f"not followed: {why}"
            for name, words in (self._given or {}).items()
            if (why := machines.wrong(name, words))
        }
        self._watch: Watch | None = None
        self._deaths: Deaths | None = None
        self._wanted: machines.Commands = {}
        self._joined: machines.Commands = {}  # the link to our fleet, with its settings
        self._is_regained = False  # whether no machine is marked as one of a fleet
        self._part: tuple[Members, Post] | None = None  # of that link, while it is ours
        self._locks: dict[str, Lock] = {}
        self._links: dict[str, Link] = {}
        self._commands: machines.Commands = {}  # of the links that run
        self._is_read = False
        self._held = 0.0  # since when our machines wait for the lock of another process
        self._is_known = False  # whether `_wanted` has all of them
        self._problems: dict[str, str] = {}
        self.notes = Notes()  # which machines cannot be followed, since when and why
        self._folded: Folded = {}  # what the board knows of the links

    # ------------------------------------------------------------ the host

    def open(self, watch: Watch) -> None:
        """Start following: from now on the jobs may claim links."""
        self._watch = watch
        self._deaths = Deaths(lambda pid, started: self._wake())

    def close(self) -> None:
        """End all links of this host; others take them over."""
        self._end(list(self._links))
        for lock in self._locks.values():
            lock.close()
        if self._deaths is not None:
            self._deaths.close()

    def is_about(self, path: str) -> bool:
        """Return whether a changed path belongs to the links."""
        return path.startswith(self._folder)

    def changed(self, paths: set[str]) -> None:
        """Take changed paths: requests, or other machines."""
        for name, link in self._links.items():
            folder = self._folder if name == OURS else f"{self._folder}/{name}"
            if any(path.startswith(f"{folder}/") for path in paths):
                link.wake()
        self._is_read = self._is_read and not any(path.endswith(machines.FILE) for path in paths)

    def expect(self) -> None:
        """Read everything again: no system promises to report every change."""
        self._is_read = False
        for link in self._links.values():
            link.wake()

    def renew(self) -> None:
        """Follow from the beginning: the database is another one."""
        self._end(list(self._links))

    def run(self, board: Board, store: Store) -> float:
        """Claim the links that no host has; return the seconds until the next call."""
        self._folded = folded = board.ledger.links
        if self._watch is None or self._deaths is None:
            return NEVER
        if not self._is_read:
            self._read()
        settings = store.option(OPTION)
        self._joined = {} if settings is None else {OURS: [repr(settings)]}
        wanted = self._wanted | self._joined
        for name in [n for n in self._links if wanted.get(n) != self._commands[n]]:
            self._end([name], leave=name not in wanted)
        self._regain()
        if self._is_known:  # otherwise a list that cannot be read would end all links
            for name in folded.keys() - self._wanted.keys() - self._links.keys():
                self._drop(name)
        wait = min((self._keep(name) for name in wanted), default=NEVER)
        if self._part is not None:
            members, post = self._part
            members.linked = self._wanted.keys()
            if post.listen(self._watch):
                self._links[OURS].wake()  # for requests from before that
        if self._links:
            own = known_as(store, os.getpid(), time.time())
            self._tell(own, present(store, SCREENS), self._deaths)
        self._note()
        return wait if self._is_read else min(wait, machines.SOON)

    def _note(self) -> None:
        found = {**self._refused, **self._problems}
        if self._part is not None:
            found |= self._part[0].notes
        for name in self._wanted:
            link, known = self._links.get(name), self._folded.get(name)
            if known is not None and not known.up and known.why:
                since = time.strftime("%H:%M", time.localtime(known.since))
                said = f"cannot be followed since {since}: {known.why}"
                found[f"machine {name}"] = f"{said}; try: bellboard machine test {name}"
            elif link is not None and link.is_slow:
                found[f"machine {name}"] = "it sends too much, so it is read slowly"
            elif link is not None and link.refused:
                found[f"machine {name}"] = REFUSED.format(link.refused, name)
        self.notes.replace(found)

    # ------------------------------------------------------------ one machine

    def _tell(self, own: str, screens: Mapping[int, str], deaths: Deaths) -> None:
        """Tell the links which board is ours, and whether somebody here can be notified."""
        for pid, started in screens.items():
            deaths.watch(pid, started)
        for link in self._links.values():
            link.own = own
            link.sit(alone=not screens)

    def _read(self) -> None:
        """Read which machines are to be followed, and store those of our editor."""
        self._is_read, self._problems = True, {}
        if self._watch is not None:  # before the file is read, so that no change is missed
            self._watch.add(self._folder, arrivals=True)
        ours = machines.usable(self._given)
        try:
            if self._given is not None:
                # without patience: this is the event loop
                machines.edit(self._home, lambda known: Machines(known.added, ours), 0.0)
                self._given, ours = None, {}  # another editor may have others since
        except OSError as e:
            self._is_read = not isinstance(e, Held)  # that lock is free in a moment
            now = time.monotonic()
            self._held = self._held or now
            if self._is_read or now >= self._held + PATIENCE:
                self._problems["machines"] = f"cannot be stored: {e.strerror or e}"
        try:
            self._wanted = {**machines.stored(self._home).all, **ours}
            self._is_known = True
        except OSError as e:  # follow those that were followed before
            self._problems["machines"] = described(e)
            self._wanted = {**self._wanted, **ours}
            self._is_known = False

    def _keep(self, name: str) -> float:
        """Keep the link to a machine, or watch who does."""
        if name in self._links or self._watch is None or self._deaths is None:
            return NEVER
        try:
            lock = self._locks.setdefault(name, lock_of(self._home, name))
            if (wait := take_or_watch(lock, self._deaths)) is not None:
                return wait
            if name == OURS:
                self._take_part()
                return NEVER
            mailbox = Mailbox(self._home, name)
            self._watch.add(mailbox.asked, arrivals=True)
        except OSError as e:
            about = OPTION if name == OURS else f"machine {name}"
            self._problems[about] = f"not followed: {e.strerror or e}"
            return NEVER
        self._start(name, mailbox)
        return NEVER

    def _regain(self) -> None:
        """Once no fleet is wanted and its link has ended: what it followed is for `_drop`."""
        if self._joined:
            self._is_regained = False
        elif not self._is_regained:
            with contextlib.suppress(OSError):
                machines.regain(self._home)
                self._is_regained = True

    def _take_part(self) -> None:
        """Start the program of our fleet."""
        wake = partial(self._call, self._wake)
        cursors = {name: known.cursor for name, known in self._folded.items()}
        members = Members(self._spool, cursors, wake)
        self._part = members, Post(self._home, members)
        self._commands[OURS] = self._joined[OURS]
        own = ["env", f"BELLBOARD_HOME={self._home}", *files.program(), "fleet", "run"]
        self._links[OURS] = Link(lambda *_: own, *self._part, wake)

    def _start(self, name: str, mailbox: Mailbox) -> None:
        known = self._folded.get(name)
        words = self._commands[name] = self._wanted[name]
        cursor = known.cursor if known is not None else ""
        follower = Follower(name, self._spool.write, time.time, cursor)
        sockets = remotely.sockets(str(self._home), self._environ.get("XDG_RUNTIME_DIR"))
        command = partial(_command, words, sockets)
        self._links[name] = Link(command, follower, mailbox, lambda: self._call(self._wake))

    def _end(self, names: list[str], leave: bool = False) -> None:
        ending = [self._links.pop(name) for name in names]
        self._part = None if OURS in names else self._part
        for link in ending:
            link.stop(leave)
        until = time.monotonic() + JOIN
        for link in ending:
            link.join(max(0.0, until - time.monotonic()))
        for name in names:
            if (lock := self._locks.pop(name, None)) is not None:
                lock.close()

    def _drop(self, name: str) -> None:
        """Report that a machine that is on no list any more is no longer followed."""
        if not machines.was_followed(self._home, name):
            return
        with contextlib.suppress(OSError, ValueError):
            lock = lock_of(self._home, name)
            try:
                if lock.take():
                    Follower(name, self._spool.write, time.time).leave()
                    machines.forget(self._home, name)
            finally:
                lock.close()


def _command(words: list[str], sockets: str, cursor: str, shared: bool, slow: bool) -> list[str]:
    since = ["--since", cursor] if cursor else []
    return remotely.command_of(words, ["feed", *since], sockets if shared else None, slow=slow)
