"""A machine's part in a fleet: one connection, over which it publishes, follows, asks and replies.

It reconnects forever, with a growing pause and jitter; `notes` says what is wrong.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from ..core.feed import SILENT_AFTER, FeedChange, FeedState, Hello
from ..core.request import refusal
from ..core.row import Row
from ..system.failures import Backoff, described
from .followed import Followed
from .member import Joined, UnusableSetting, credentials
from .nats_wire import (
    NOBODY,
    Down,
    NatsMessage,
    NatsWire,
    NotPermitted,
    ServerRefused,
    is_set,
    together,
    without_nats,
)
from .publisher import AGAIN, RowPublisher, Shelf, Taken
from .requests import Asking, Do, Incoming, ReplyFields, claim
from .streams import ensure, has_older
from .subjects import Key, Subjects, screen_of
from .team_reader import Deliver, TeamReader, deliver, watch

# The members with somebody at a screen: these notify, and machines without a screen stay silent.
#
# A member with a screen sends a beat every few seconds to the machines that it follows. The server
# does not store beats: a machine that hears of no screen for a while, or of the end of the last
# one, notifies again.


SCREEN_BEAT: Final = 10.0  # seconds between two reports of a screen
MOST_SCREENS: Final = 4096  # screens to remember
SCREEN_GONE: Final = b"gone"
SCREEN_GRACE: Final = 3.0  # seconds until the end of a screen counts: its program may be restarting
SCREEN_LOOK: Final = 1.0  # seconds between two checks for silent screens


class TeamScreens:
    """The members with a screen, as far as this machine knows; outlives a connection."""

    def __init__(self, machine: str, by: str, changed: Callable[[], object]) -> None:
        """`changed` is called when `is_followed` has changed."""
        self.is_ours = False  # whether somebody sits here
        self.is_followed = False  # whether another screen shows the sessions of this machine
        self.woken = asyncio.Event()  # set when `is_ours` has changed
        self._machine, self._by, self._changed = machine, by, changed
        self._heard: dict[tuple[str, str], float] = {}  # (shown machine, screen) → last beat
        self._listens = 0.0  # time until which some members may not have reported yet

    def show(self, machine: str) -> bool:
        """Return whether another screen shows the sessions of a machine."""
        now = time.monotonic()
        heard = self._heard.items()
        return now < self._listens or any(
            of in ("", machine) and now - t < SILENT_AFTER for (of, _), t in heard
        )

    async def watch(self) -> None:
        """Notice screens that fall silent, forever, also without a connection."""
        while True:
            self._look()
            await asyncio.sleep(SCREEN_LOOK)

    async def run(self, wire: NatsWire, s: Subjects, member: str, of: Collection[str]) -> None:
        """Listen to other screens, and report ours to the machines `of`, or with `[""]` to all."""
        self._listens = self._listens or time.monotonic() + SCREEN_BEAT + SCREEN_LOOK
        filters = {s.all_screens} if "" in of else {*map(s.screens_of, ("", self._machine, *of))}
        for each in filters:
            await wire.subscribe(s.seen(each), self._take, MOST_SCREENS, True)
        ours, is_said = [s.screen(machine, member, self._by) for machine in of], False
        try:
            while True:
                self.woken.clear()
                if self.is_ours or is_said:
                    is_said = self.is_ours
                    await _say(wire, ours, b"" if is_said else SCREEN_GONE)
                await is_set(self.woken, SCREEN_BEAT)
        finally:
            if is_said:
                with contextlib.suppress(Down):
                    await _say(wire, ours, SCREEN_GONE)

    async def _take(self, message: NatsMessage) -> None:
        of, by = screen_of(message.subject)
        if by == self._by or of is None:
            return
        is_known, is_gone, now = (
            (of, by) in self._heard,
            message.data == SCREEN_GONE,
            time.monotonic(),
        )
        if is_known or not (is_gone or len(self._heard) >= MOST_SCREENS):
            self._heard[of, by] = now - (SILENT_AFTER - SCREEN_GRACE) * is_gone
        self._look()

    def _look(self) -> None:
        now = time.monotonic()
        self._heard = {who: t for who, t in self._heard.items() if now - t < SILENT_AFTER}
        was, self.is_followed = self.is_followed, self.show(self._machine)
        if was != self.is_followed:
            self._changed()


async def _say(wire: NatsWire, subjects: Collection[str], what: bytes) -> None:
    for subject in subjects:
        await wire.publish(subject, what)


SHARE: Final = 30.0  # part of an outage from one try to connect to the next
SHORTEST: Final = 1.0  # seconds from one try to the next
LONGEST = 60.0
JITTER: Final = 0.25
SOONEST: Final = 0.1  # seconds until the next try, if the last try took longer than SHORTEST
BEHIND: Final = 1.0  # seconds that a host may lag behind another host of this machine
CHECK: Final = 30.0  # seconds between two checks whether the streams are there
GRACE: Final = 8.0  # seconds without a server before that is shown: a restart takes less


class Service:
    """Publishes, follows and asks for one machine; belongs to one event loop."""

    def __init__(
        self,
        joined: Joined,
        by: str,
        hello: Callable[[], Hello],
        deliver: Deliver,
        do: Do,
        changed: Callable[[], object],
    ) -> None:
        """`by` is who publishes, `changed` is called when `is_followed` has changed."""
        self.joined = joined
        self.notes: dict[str, str] = {}  # for health
        self.shelf = Shelf(joined.machine, by, hello)
        self.followed = Followed(joined)
        self.screens = TeamScreens(joined.machine, by, changed)
        self._deliver = deliver
        self._subjects = Subjects(joined.team)
        self._incoming = Incoming(self._subjects, joined.machine, do)
        self._wire: NatsWire | None = None
        self._asking: Asking | None = None
        self._was_up = False  # whether the last connection worked
        self._member = "anybody"

    async def run(self) -> None:
        """Take part, until cancelled."""
        parts: list[asyncio.Future[Any]] = [
            asyncio.ensure_future(work) for work in (self._stay(), self.screens.watch())
        ]
        if self.joined.reads:
            parts.append(asyncio.ensure_future(deliver(self.followed, self._deliver)))
            parts.append(asyncio.ensure_future(watch(self.followed)))
        await together(parts)

    def publish(self, said: FeedState | FeedChange) -> None:
        """Take a message of this machine's feed."""
        if self.joined.publishes:
            self.shelf.take(said)

    def show_screen(self, is_ours: bool) -> None:
        """Note whether somebody sits at this machine, which then sends the notifications."""
        if is_ours != self.screens.is_ours:
            self.screens.is_ours = is_ours
            self.screens.woken.set()

    @property
    def is_followed(self) -> bool:
        """Return whether somebody sits at another machine that shows the sessions of this one."""
        return self.joined.publishes and self.screens.is_followed

    async def ask(self, machine: str, do: str, fields: Mapping[str, Any]) -> ReplyFields:
        """Send another machine a request; the reply has `ok`, and `why` if that is false."""
        wire, asking = self._wire, self._asking
        if wire is None or asking is None:
            return refusal(self.notes.get("fleet", "the fleet is not connected yet"))
        if do == "claim":
            return await self._claim(wire, machine, fields)
        if not self._listens(machine):
            return refusal(
                f"{machine} does not listen: no background process there is in the fleet"
            )
        return await asking.ask(machine, do, fields)

    # ------------------------------------------------------------ the connection

    async def _stay(self) -> None:
        """Connect, use the connection until it breaks, and start over."""
        since, backoff = 0.0, Backoff(SHORTEST, LONGEST, SHARE, JITTER)
        while True:
            begun = time.monotonic()
            try:
                await self._once()
            except Exception as e:  # of any kind: a server may answer anything
                why = _words(e)
            now = time.monotonic()
            if not since or (self._was_up and now - begun > GRACE):
                since = time.time()
                backoff.succeed()
            self._note_down(why, since)
            await asyncio.sleep(max(begun + backoff.fail() - now, SOONEST))

    def _note_down(self, why: str, since: float) -> None:
        at = time.strftime("%H:%M:%S", time.localtime(since))
        self.notes["fleet"] = f"down since {at}: {why}"
        if time.time() - since >= GRACE or not self.followed.machines:
            self.followed.lose(why)
        else:
            asyncio.get_running_loop().call_later(GRACE, self._lose_still, why)

    def _lose_still(self, why: str) -> None:
        if self._wire is None:
            self.followed.lose(why)

    async def _once(self) -> None:
        """Connect, and publish and follow until the connection breaks; raise the reason."""
        self._was_up = False
        creds = credentials(self.joined.creds)
        self._member = creds.member
        wire = NatsWire(self.joined, creds, self._deaf)
        await wire.open()
        tasks: list[asyncio.Future[Any]] = []
        try:
            await ensure(wire, self._subjects)
            self._note_older(await has_older(wire, self._subjects))
            self._asking = Asking(wire, self._subjects)
            await self._asking.listen()
            if self.joined.publishes:
                await self._incoming.listen(wire)
                tasks.append(asyncio.ensure_future(self._publish(wire)))
            if self.joined.reads:
                tasks.append(asyncio.ensure_future(self._read(wire)))
            of = (self.joined.follow or ("",)) if self.joined.reads else ()
            listening = self.screens.run(wire, self._subjects, creds.member, of)
            tasks.append(asyncio.ensure_future(listening))
            tasks.append(asyncio.ensure_future(self._check(wire)))
            self._wire, self._was_up = wire, True
            self.notes.pop("fleet", None)
            await together([asyncio.ensure_future(wire.breaks()), *tasks])
        finally:
            self._wire = None
            await wire.close()

    async def _check(self, wire: NatsWire) -> None:
        """Check that the streams are still there, forever: without them nobody hears anything."""
        while True:
            await asyncio.sleep(CHECK)
            if await ensure(wire, self._subjects):
                raise Down("the server had lost the streams of this team")

    def _note_older(self, is_older: bool) -> None:
        if is_older:
            self.notes["fleet versions"] = (
                "machines with an older bellboard publish on this server: they and we do not see "
                "each other; update bellboard there"
            )
        else:
            self.notes.pop("fleet versions", None)

    def _deaf(self, subject: str) -> None:
        """Note a subject to which we may not subscribe; everybody may subscribe to replies."""
        if self._subjects.is_screen(subject):
            self.notes["fleet screens"] = (
                f"{self._member} may not read who else notifies ({subject}), so a notification "
                "may come twice: ask whoever set up the fleet"
            )
            return
        self.notes["fleet requests"] = (
            f"{self._member} may not take requests for {self.joined.machine}, so nobody can "
            f"answer from elsewhere ({subject}): ask whoever set up the fleet"
        )

    async def _publish(self, wire: NatsWire) -> None:
        """Publish; while that is impossible, do the rest, and try again."""
        name = self.joined.machine
        while True:
            try:
                await RowPublisher(wire, self._subjects, self.shelf).run(
                    lambda: self.notes.pop("fleet publishing", None)
                )
            except Taken as e:
                self.notes["fleet publishing"] = str(e)
            except NotPermitted:
                self.notes["fleet publishing"] = (
                    f"{self._member} may not publish as {name}: ask whoever set up the fleet, "
                    "or join again with --read-only"
                )
            except ServerRefused as e:
                if e.code == NOBODY:
                    raise Down("the server no longer has the streams of this team") from None
                self.notes["fleet publishing"] = f"the server refuses what we publish: {e}"
            await asyncio.sleep(AGAIN * random.uniform(0.5, 1.0))

    async def _read(self, wire: NatsWire) -> None:
        """Follow; while that is not permitted, do the rest, and try again."""
        while True:
            try:
                await TeamReader(wire, self._subjects, self.followed).run(
                    lambda: self.notes.pop("fleet reading", None)
                )
            except NotPermitted:
                which = ", ".join(self.joined.follow) or "all machines"
                self.notes["fleet reading"] = (
                    f"{self._member} may not read {which}: ask whoever set up the fleet, "
                    "or join again with --follow MACHINE"
                )
            await asyncio.sleep(AGAIN * random.uniform(0.5, 1.0))

    # ------------------------------------------------------------ requests and claims

    def _listens(self, machine: str) -> bool:
        """Return whether a machine sends beats, as far as we know."""
        far = self.followed.machines.get(machine)
        return far is None or far.is_up

    async def _claim(self, wire: NatsWire, machine: str, fields: Mapping[str, Any]) -> ReplyFields:
        """Claim a notification from the team: the session's machine may be gone."""
        if machine == self.joined.machine:
            rows: Mapping[Key, Row] = self.shelf.rows
            await self._shows(fields)
        else:
            known = self.followed.machines.get(machine)
            rows = known.rows if known is not None else {}
            if not self.screens.is_ours and self.screens.show(machine):
                return refusal("a machine with a screen notifies")
        try:
            return {"ok": True, "granted": await claim(wire, self._subjects, machine, rows, fields)}
        except Down as e:
            return refusal(str(e))

    async def _shows(self, fields: Mapping[str, Any]) -> None:
        """Wait a moment for a status that another host of this machine knew before us."""
        wanted, until = (fields.get("session_id"), fields.get("status")), time.monotonic() + BEHIND
        while time.monotonic() < until:
            if any((k.session, row.status) == wanted for k, row in self.shelf.rows.items()):
                return
            await asyncio.sleep(BEHIND / 20)


def _words(e: Exception) -> str:
    if isinstance(e, ImportError):
        return without_nats()
    if isinstance(e, Down | ServerRefused | UnusableSetting):
        return str(e)
    return f"the server's reply cannot be used: {described(e)}"
