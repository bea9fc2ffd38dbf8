"""The link to a fleet: a program of ours (`bellboard fleet run`) whose lines name their machine.

It is a link like any other (`link.py`): one host keeps it, and restarts the program when that ends.
This file only finds the machine of a line, and the machine for a request.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from ..core.feed import (
    Beat,
    FeedChange,
    FeedProblem,
    FeedState,
    Gone,
    HealthNotes,
    Hello,
    Moved,
    Of,
    cursor_of,
)
from ..storage import machines
from ..storage.machines import OPTION, OURS, Mailbox
from ..storage.spool import Spool
from ..system.failures import described
from ..system.watch import Watch
from .far_evidence import Follower

FULL: Final = 500  # events waiting in the spool, with which no more is read
GRACE: Final = 8.0  # seconds without the program before that is shown: it restarts soon
NAMED: Final = 5  # machines to name in health

Said = Hello | FeedState | FeedChange | Beat | Of | HealthNotes


class Members:
    """Follows the machines of a fleet that no link follows; a `Follower` for each."""

    def __init__(
        self, spool: Spool, cursors: Mapping[str, str], changed: Callable[[], object]
    ) -> None:
        """`changed` is called when health or the machines have changed."""
        self.linked: Collection[str] = ()  # machines that a link follows
        self.followers: dict[str, Follower] = {}
        self.is_up = False  # whether the program runs
        self.cursor, self.hello = "", Hello()  # of the program: it has no sessions of its own
        self._spool, self._cursors, self._changed = spool, dict(cursors), changed
        self._since: dict[str, str] = {}  # machine → our cursor before its last state
        self._lost: set[str] = set()
        self._told: dict[str, str] = {}  # the program's notes for health
        self._down = self._down_since = 0.0  # by the monotonic and the wall clock
        self._why_down = ""
        self._why = ""  # why evidence cannot be written
        self._unfit: dict[str, str] = {}  # machine → why it cannot be asked

    @property
    def notes(self) -> dict[str, str]:
        """Return the problems, for health."""
        notes = {about: why for about, why in self._told.items() if about.startswith(OPTION)}
        if why := self._why_down:
            at = time.strftime("%H:%M:%S", time.localtime(self._down_since))
            notes[OPTION] = f"down since {at}: {why}"
        unfit = [why for machine, why in self._unfit.copy().items() if machine not in self.linked]
        if self._why or unfit:
            notes["fleet writing"] = self._why or unfit[0]
        lost = sorted(self._lost.copy())
        if lost and OPTION not in notes:
            some = ", ".join(lost[:NAMED]) + (" …" if len(lost) > NAMED else "")
            notes["fleet machines"] = f"{some}: not followed now; see `bellboard fleet status`"
        return notes

    @property
    def is_full(self) -> bool:
        """Return whether to read no more for now: too many events wait to be folded."""
        try:
            return len(os.listdir(self._spool.new)) > FULL  # noqa: PTH208
        except OSError:
            return False

    def take(self, said: Said) -> None:
        """Write a line as evidence; raise OSError or ValueError if that fails."""
        if isinstance(said, FeedState):
            self.is_up, self._why_down = True, ""
        elif isinstance(said, HealthNotes):
            self._told = said.notes
            self._changed()
        elif isinstance(said, Of) and said.machine not in self.linked:
            self._one(said)
            self._why = ""

    def fail(self, said: Said, error: Exception) -> None:
        """Note that a line could not be written."""
        of = f" of {said.machine}" if isinstance(said, Of) else ""
        self._why = f"changes{of} cannot be written: {described(error)}"
        self._changed()

    def count(self, said: FeedChange) -> int:
        """Return how many sessions the program itself has after a change."""
        return len(said.sessions)

    def lose(self, why: str) -> None:
        """Note that the program has ended; write it if it does not run again soon."""
        now = time.monotonic()
        if not self._why_down:
            self._down, self._down_since = now, time.time()
        self.is_up, self._why_down = False, why
        if now >= self._down + GRACE:
            for follower in self.followers.values():
                follower.lose(why)

    def leave(self) -> None:
        """Write that no machine is followed any longer."""
        for follower in self.followers.values():
            follower.leave()

    # ------------------------------------------------------------ one machine

    def _one(self, said: Of) -> None:
        machine, what = said.machine, said.said
        if isinstance(what, Gone):
            self._forget(machine)
            return
        follower = self._follower(machine)
        if isinstance(what, FeedProblem):
            follower.lose(what.text)
            self._lost.add(machine)
        else:
            follower.take(self._unknown(follower, what))
            if isinstance(what, FeedState):
                self._lost.discard(machine)

    def _unknown(
        self, follower: Follower, said: Hello | FeedState | FeedChange | Beat
    ) -> Hello | FeedState | FeedChange | Beat:
        """Return a message without transitions of its state that we know already."""
        if not isinstance(said, FeedState | FeedChange):
            return said
        listed = follower.unlisted
        if isinstance(said, FeedState):
            self._since[follower.machine], listed = follower.cursor, {*said.all}
        since = self._since.get(follower.machine, "")
        news = (
            m
            for m in said.transitions
            if m.session_id not in listed or is_after(m, since, said.cursor)
        )
        return replace(said, transitions=tuple(news))

    def _forget(self, machine: str) -> None:
        """Forget a machine, but keep its cursor in case it returns."""
        if (follower := self.followers.get(machine)) is not None:
            follower.leave()
            self._cursors[machine] = follower.cursor
            del self.followers[machine]
            self._unfit.pop(machine, None)
            self._lost.discard(machine)

    def _follower(self, machine: str) -> Follower:
        """Return the follower of a machine, even if another file is in the place of its folder."""
        if machine not in self.followers or machine in self._unfit:
            try:
                machines.lend(self._spool.home, machine)
                self._unfit.pop(machine, None)
            except (FileExistsError, NotADirectoryError) as e:  # its sessions are still shown
                self._unfit[machine] = f"{machine} cannot be asked: {described(e)}"
        if machine not in self.followers:
            cursor = self._cursors.get(machine, "")
            self.followers[machine] = Follower(machine, self._spool.write, time.time, cursor)
            self._changed()
        return self.followers[machine]


class Post:
    """Requests of programs on this machine to the members of a fleet, and to the fleet itself."""

    def __init__(self, home: Path, members: Members) -> None:
        self._home, self._members = home, members
        self._mailboxes: dict[str, Mailbox] = {}
        self._linked: Collection[str] = ()

    def listen(self, watch: Watch) -> bool:
        """Watch for requests to the followed machines; return whether a machine is new."""
        known = self._mailboxes
        found: dict[str, Mailbox] = {}
        for machine in (OURS, *self._members.followers.copy()):
            with contextlib.suppress(OSError):
                found[machine] = known.get(machine) or Mailbox(self._home, machine)
                if machine not in known:
                    watch.add(found[machine].asked, arrivals=True)
        self._mailboxes = found
        return bool(found.keys() - known.keys())

    def take(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield waiting requests, except those to machines with a link, which takes them."""
        with contextlib.suppress(OSError):  # the list stays as it was
            self._linked = machines.stored(self._home).all
        for machine, mailbox in self._mailboxes.items():
            if machine not in self._linked:
                to = {"machine": machine} if machine != OURS else {}
                for name, request in mailbox.take():
                    yield f"{machine}/{name}", {**request, **to}

    def reply(self, name: str, reply: Mapping[str, Any]) -> None:
        """Reply to a request."""
        machine, _, name = name.partition("/")
        if (mailbox := self._mailboxes.get(machine)) is not None:
            mailbox.reply(name, reply)


def is_after(moved: Moved, cursor: str, now: str) -> bool:
    """Return whether a transition is new to somebody who has everything up to a cursor."""
    known, told = cursor_of(cursor), cursor_of(now)
    if known is None or told is None or known.database != told.database:
        return False
    return moved.id > known.last
