"""This machine's part in a fleet: one of its hosts publishes, follows and answers for all.

`bellboard fleet join` sets a shared option.  The host that gets the lock starts the thread
(`fleet/service.py`), and another takes over when it dies.  Without the option, this
only checks it now and then.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from msgspec.structs import replace

from ..core.deadlines import NEVER
from ..core.feed import MOST, Ask, Cursor, Hello, Moved, moved_of
from ..core.published import Published
from ..core.row import Row, row
from ..core.session import Session
from ..storage import machines
from ..storage.machines import OPTION, Claim
from ..storage.spool import Spool
from ..system.clock import machine_id
from ..system.deaths import Deaths
from ..system.watch import Watch
from .connection import Connection
from .jobs import Loop
from .lease import Lease
from .outgoing import Outgoing
from .reader import Reader
from .turn import SharedBoard

if TYPE_CHECKING:
    from ..fleet.member import Joined
    from ..fleet.service import Service
    from ..storage.store import Logged
    from .beside import Reply
    from .feed_requests import Asks
    from .mates import Mates

OFTEN: Final = 1.0  # seconds between two checks of the option
RECENT: Final = 200  # transitions that a new host publishes again; readers drop known ones
GREETING: Final = 300.0  # seconds to cache what a hello says of this machine
NARROW: Final = "join again with --follow, --agent or --repository to choose"
NAMED: Final = 5  # machines to name in health
LAST: Final = 1.0  # seconds to disconnect


class Host(Protocol):
    """The host that this is a part of."""

    pid: int
    home: Path
    spool: Spool
    loop: Loop
    connection: Connection
    reader: Reader

    def session(self, sid: str) -> Session | None: ...

    def answers(self, sid: str) -> Sequence[Logged]: ...

    def report(self, line: Mapping[str, Any]) -> str: ...


class Part(NamedTuple):
    """What takes part in the fleet, while this host has the lock."""

    service: Service
    mates: Mates
    outgoing: Outgoing


class Fleet:
    """Starts and ends the service; `note` gives it what is published."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._joined: Joined | None = None
        self._part: Part | None = None
        self._claim: Claim | None = None
        self._watch: Watch | None = None
        self._deaths: Deaths | None = None
        self._looked = -OFTEN
        self._at = Cursor("", 0)
        self._hello = (-GREETING, Hello())
        self._problem: dict[str, str] = {}
        self._is_regained = False
        self._asks: dict[str, Asks] = {}  # by who asks us
        self._lease = Lease(host)

    @property
    def notes(self) -> Mapping[str, str]:
        """Return what is wrong, for health."""
        notes = dict(self._problem)
        if self._part is None:
            return notes
        service, mates, _ = self._part
        notes |= {**service.followed.notes, **service.notes}
        if count := len(service.shelf.left_out):
            notes["fleet limit"] = (
                f"sessions of this machine beyond {MOST:,} are left out: {count:,}"
            )
        if left_out := service.followed.left_out:
            counts = ", ".join(f"{n:,} {status}" for status, n in sorted(left_out.items()))
            is_calm = not service.followed.window.is_short
            which = f"{'that do not need you ' if is_calm else ''}are left off this board"
            notes["fleet sessions"] = f"{sum(left_out.values()):,} {which} ({counts}): {NARROW}"
        if mates.why:
            notes["fleet writing"] = mates.why
        lost = mates.lost()
        if lost and OPTION not in notes:
            some = ", ".join(lost[:NAMED]) + (" …" if len(lost) > NAMED else "")
            notes["fleet machines"] = f"{some}: not followed now; see `bellboard fleet status`"
        return notes

    def open(self, watch: Watch) -> None:
        """Begin: from now on this host may be the one that takes part."""
        self._watch = watch
        self._deaths = Deaths(lambda pid, started: self._expect())

    def close(self) -> None:
        """Leave it to another host."""
        self._end()
        if self._deaths is not None:
            self._deaths.close()

    def run(self) -> float:
        """Start or end what the shared option asks for; return the seconds until the next call."""
        early = self._looked + OFTEN - time.monotonic()
        if early > 0 or self._deaths is None:
            return max(early, 0.0) if self._joined is not None else NEVER
        self._looked = time.monotonic()
        wanted = self._host.connection.use(lambda shared: shared.store.option(OPTION), self._joined)
        if wanted is None and self._joined is None:
            self._regain()
            return NEVER
        wait = self._change(wanted)
        self._attend()
        return wait

    def note(self, message: Mapping[str, Any]) -> None:
        """Take what was published."""
        if self._part is None or message["stale"]:
            return
        if message["full"]:
            self._begin()
            return
        moved = [m for m in map(moved_of, message["transitions"]) if m is not None]
        if moved:
            self._at = self._at._replace(last=max(self._at.last, *(m.id for m in moved)))
        self._tell(message["sessions"], message["removed"], moved, full=False)

    def ask(self) -> None:
        """Pass on what programs of this machine ask of others."""
        if self._part is not None:
            self._part.outgoing.send()

    # ------------------------------------------------------------ join and leave

    def _expect(self) -> None:
        """Check at once: the holder of the lock died, or the screens have changed."""
        self._looked = -OFTEN
        self._host.loop.wake()

    def _change(self, wanted: object) -> float:
        from ..fleet.member import Joined, joined

        found = wanted if isinstance(wanted, Joined) else joined(wanted)
        self._problem = {}
        if found is None and wanted is not None:
            self._problem["fleet"] = "its settings cannot be read; run `bellboard fleet join` again"
        if found != self._joined or (self._part and not self._part.service.is_running):
            self._end(leaves=found is None)
            self._joined = found
        if found is None or self._part is not None:
            return NEVER
        self._claim = self._claim or Claim(self._host.home, machines.OURS)
        assert self._deaths is not None  # since `open`
        if (wait := self._claim.take_or_watch(self._deaths)) is not None:
            return wait  # another host has the lock
        self._start(found)
        return OFTEN

    def _start(self, j: Joined) -> None:
        from ..fleet.service import Service
        from .mates import Mates

        host = self._host
        by = hashlib.sha256(f"{machine_id()}\0{host.home}".encode()).hexdigest()[:16]
        nothing: dict[str, str] = {}
        cursors = host.connection.use(_cursors, nothing)
        self._loop = asyncio.get_running_loop()
        assert self._watch is not None  # since `open`
        mates = Mates(host.spool, cursors)
        service = Service(
            *(j, by, self._greet, mates.take, self._do),
            lambda: self._host.loop.call(self._expect),
        )
        self._part = Part(service, mates, Outgoing(host.home, self._watch, service))
        self._is_regained = False
        service.start()
        self._begin()

    def _end(self, leaves: bool = False) -> None:
        part, self._part = self._part, None
        if part is not None:
            part.service.close(LAST)
            self._lease.end()
            if leaves:
                self._regain()
                with contextlib.suppress(OSError, ValueError):
                    part.mates.leave()
        if self._claim is not None:
            self._claim.leave()

    def _regain(self) -> None:
        """Hand what a fleet followed to the links, which end it: we may have left with no host."""
        if not self._is_regained:
            with contextlib.suppress(OSError):
                machines.regain(self._host.home)
                self._is_regained = True

    def _attend(self) -> None:
        """Update what else this machine follows, what is asked, and who notifies."""
        if self._part is not None and self._deaths is not None:
            service, mates, outgoing = self._part
            with contextlib.suppress(OSError):  # then it stays as it was
                mates.linked = machines.stored(self._host.home).all
            outgoing.listen(list(mates.followers))
            self._lease.update(service, self._deaths)

    # ------------------------------------------------------------ what others see

    def _begin(self) -> None:
        """Publish everything, and again the last transitions: a host before us may have died."""
        found = self._host.connection.use(self._recent, None)
        moved: list[Moved] = []
        if found is not None:
            self._at, moved = found
        self._tell(self._host.reader.sessions, (), moved, full=True)

    def _recent(self, shared: SharedBoard) -> tuple[Cursor, list[Moved]]:
        from .feed_changes import position

        now, pid = time.time(), self._host.pid
        at = position(shared.store, None, pid, now).at
        since = at._replace(last=max(0, at.last - RECENT))
        return at, position(shared.store, since, pid, now).moved

    def _tell(
        self,
        sessions: Collection[Published],
        removed: Collection[str],
        moved: list[Moved],
        full: bool,
    ) -> None:
        from ..fleet.publisher import Update

        if self._part is not None and self._at.database:
            self._part.service.publish(
                Update(_own(sessions), list(removed), moved, str(self._at), full)
            )

    def _greet(self) -> Hello:
        """Return what this machine says of itself; called in the thread of the service."""
        from .hello import hello

        made, said = self._hello
        if time.monotonic() > made + GREETING:
            said = hello(self._host.home)
            self._hello = time.monotonic(), said
        return replace(said, now=time.time())

    # ------------------------------------------------------------ what is asked

    async def _do(self, member: str, do: str, fields: Mapping[str, Any]) -> Reply:
        """Carry out what a member asks; called in the thread of the service."""
        work = self._carry_out(member, do, fields)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def _carry_out(self, member: str, do: str, fields: Mapping[str, Any]) -> Reply:
        from .feed_requests import Asks

        by = f"{member}, a member of the fleet"
        asks = self._asks.setdefault(member, Asks(self._host, by))
        kept = {key: value for key, value in fields.items() if key != "by"}  # that name is proven
        return await asks.do(Ask(1, do, kept))


def _cursors(shared: SharedBoard) -> dict[str, str]:
    """Return up to where each machine has been followed."""
    return {name: known.cursor for name, known in shared.board.ledger.links.items()}


def _own(sessions: Collection[Published]) -> list[Row]:
    """Return the rows of this machine's own sessions."""
    return [r for r in map(row, sessions) if r is not None]
