"""The link to one machine: a thread that runs its command again whenever that has ended."""

from __future__ import annotations

import contextlib
import os
import selectors
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from ..core.feed import Reply
from ..core.feedlines import asking
from ..core.replies import refusal
from ..storage.mailbox import OLD, Mailbox
from ..system.computer import boot_id
from ..system.failures import described
from ..system.leash import Leashed
from ..system.remotely import is_slow
from ..system.retrying import SHORTEST, pause
from ..system.threads import Thread
from .follower import Follower
from .hearing import Ended, Hearing, Silent

CHUNK: Final = 1 << 16
#: Part of an outage from one try to the next.  A machine that takes two minutes to start again, and
#: refuses at once meanwhile, is followed within three seconds.
SHARE: Final = 60.0
LOGIN: Final = 4.0  # seconds of a login; a slower machine is given more time
ALONE: Final = 600.0  # seconds not to share a connection, after one went silent
MOST_PENDING: Final = 100  # requests without a reply
BRIEF: Final = 10.0  # seconds: a link up for less may fail each time, and each try is a login
FAILING: Final = 600.0  # seconds of outage that a brief connection counts as, at most


class Link:
    """Keeps the link until `stop`; may be used from any thread."""

    def __init__(
        self,
        command: Callable[[str, bool, bool], Sequence[str]],
        follower: Follower,
        mailbox: Mailbox,
        changed: Callable[[], None],
    ) -> None:
        """`command` gives the words for a cursor, whether to share a connection, and whether to let
        it take long; `changed` is called, in a thread, when health or its sessions change."""
        self.follower = follower
        self.why = "it is being connected"  # while it is not up
        self.is_slow = False  # it sends more than we read
        self.own = ""  # the id of our own board
        self.is_greeted = True  # whether the machine knows who sits here
        self._alone = False  # nobody is at this machine
        self.refused = 0  # rows and transitions that could not be used, since the last state
        self._command, self._mailbox, self._changed = command, mailbox, changed
        self.wakes, self._wake = os.pipe()
        os.set_blocking(self.wakes, False)
        os.set_blocking(self._wake, False)
        self._lock = threading.Lock()  # of the descriptor above
        self._is_stopped = threading.Event()
        self._leaves = False
        self._silent = -ALONE  # when a connection was
        self._begun = 0.0  # when the last try was
        self._takes_long = False  # to log in
        self._down_since = time.monotonic()
        self._up_since = 0.0
        #: Number on the wire → name of the request, and when it was sent.
        self._pending: dict[int, tuple[str, float]] = {}
        self._count = 0
        self._thread = Thread(target=self._run, name="bellboard link")
        try:
            self._thread.start()
        except BaseException:
            self._close()
            raise

    def wake(self) -> None:
        """Look for requests, and try again at once if it is down."""
        with self._lock, contextlib.suppress(OSError):
            if self._wake >= 0:
                os.write(self._wake, b"x")

    def stop(self, leave: bool = False) -> None:
        """End it; with `leave`, its machine is no longer followed."""
        self._leaves = leave
        self._is_stopped.set()
        self.wake()

    def join(self, patience: float) -> None:
        """Wait until it has ended."""
        self._thread.join(patience)

    # ------------------------------------------------------------ the thread

    @property
    def _may_share(self) -> bool:
        """Return whether to share a connection: not if one hangs, perhaps forever."""
        return time.monotonic() >= self._silent + ALONE

    def _run(self) -> None:
        try:
            while not self._is_stopped.is_set():
                self._try()
            if self._leaves:
                with contextlib.suppress(OSError, ValueError):
                    self.follower.leave()
        finally:
            self._refuse("the link has ended")
            self._close()

    def _close(self) -> None:
        with self._lock:
            os.close(self.wakes)
            os.close(self._wake)
            self._wake = -1

    def _try(self) -> None:
        """Follow the feed, and wait until the next try; whatever fails, there is a next one."""
        self._begun = time.monotonic()
        try:
            self._follow()
            self._pause(self._begun)
        except Exception as e:  # no descriptors or memory are left, for example
            self.why = described(e)
            self._changed()
            self._is_stopped.wait(SHORTEST)

    def _follow(self) -> None:
        """Follow the feed until it ends, and report why it did before its program is ended."""
        try:
            feed = Leashed(self._command(self.follower.cursor, self._may_share, self._takes_long))
        except Exception as e:
            self._lose(f"cannot run its command: {described(e)}")
            return
        try:
            self._lose(self._heard(feed))
        finally:
            feed.end()

    def _heard(self, feed: Leashed) -> str:
        """Read the feed until it ends; return why it did."""
        try:
            return Hearing(feed, self).run()
        except OSError as e:
            return f"its changes cannot be written: {described(e)}"
        except Ended as e:
            if isinstance(e, Silent):
                self._silent = time.monotonic()
            self._takes_long = self._takes_long or is_slow(str(e))
            return str(e)
        except Exception as e:
            return described(e)

    def _lose(self, why: str) -> None:
        if self._is_stopped.is_set():
            return
        if self.follower.is_up:
            now = time.monotonic()
            is_brief = now < self._up_since + BRIEF
            self._down_since = max(self._down_since, now - FAILING) if is_brief else now
        self.why, self.is_slow = why, False
        with contextlib.suppress(OSError, ValueError):  # a full disk: the next one may be written
            self.follower.lose(why)
        self._refuse(f"the link went down before it replied ({why}); it may have been done")
        self._changed()

    def _pause(self, begun: float) -> None:
        """Wait until the next try: longer the longer it is down, so that it is soon back.

        A try that took long, because it was up or because the network dropped everything, is
        followed by the next at once.
        """
        now = time.monotonic()
        until = now + pause(begun, now, self._down_since, SHARE)
        self.refuse_new()  # what came when it went down
        with selectors.DefaultSelector() as ready:
            ready.register(self.wakes, selectors.EVENT_READ)
            while (left := until - time.monotonic()) > 0 and not self._is_stopped.is_set():
                if ready.select(left):
                    self.drain()
                    if self.refuse_new():
                        return  # it is needed now

    def drain(self) -> None:
        """Take the wakes that have come."""
        with contextlib.suppress(OSError):
            while os.read(self.wakes, CHUNK):
                pass

    # ------------------------------------------------------------ requests

    def requests(self) -> list[bytes]:
        """Return the lines of the requests that wait."""
        lines, now = [], time.monotonic()
        self._pending = {n: it for n, it in self._pending.items() if now < it[1] + OLD}
        for name, request in self._mailbox.take():
            if len(self._pending) >= MOST_PENDING:
                self._mailbox.reply(
                    name, refusal("the machine has not replied to earlier requests")
                )
                continue
            self._count += 1
            self._pending[self._count] = name, now
            do = str(request.pop("do", ""))
            request.pop("id", None)
            lines.append(asking(self._count, do, request))
        return lines

    def greeting(self) -> bytes:
        """Return a request that shows that somebody reads, and whether somebody sits here."""
        self.is_greeted = True
        self._count += 1
        return asking(self._count, "clock", {"alone": self._alone})

    def sit(self, alone: bool) -> None:
        """Note whether nobody is at this machine to be notified: then others notify."""
        if alone != self._alone:
            self._alone, self.is_greeted = alone, False
            self.wake()

    def replied(self, said: Reply) -> None:
        """Pass on a reply."""
        name, _ = self._pending.pop(said.id, ("", 0.0))
        if name:
            self._mailbox.reply(name, said.fields)

    def is_up(self) -> None:
        """Note that all of its sessions are known."""
        self.why, self._up_since = "", time.monotonic()
        self._takes_long = self._takes_long and time.monotonic() > self._begun + LOGIN
        self._changed()

    def is_own(self, cursor: str) -> bool:
        """Return whether a feed is of our own board: a copy of that is on another machine."""
        is_ours = bool(self.own) and cursor.startswith(f"{self.own}.")
        return is_ours and self.follower.hello.boot == boot_id()

    def slow(self, is_slow: bool) -> None:
        if is_slow != self.is_slow:
            self.is_slow = is_slow
            self._changed()

    def refuse(self, count: int, is_first: bool) -> None:
        """Count what could not be used; health shows it."""
        was, self.refused = self.refused, count + (0 if is_first else self.refused)
        if self.refused != was:
            self._changed()

    @property
    def is_stopped(self) -> bool:
        return self._is_stopped.is_set()

    def refuse_new(self) -> int:
        """Refuse requests while it is down; return how many."""
        count = 0
        for name, _ in self._mailbox.take():
            count += 1
            self._mailbox.reply(name, refusal(f"the link is down: {self.why}"))
        return count

    def _refuse(self, why: str) -> None:
        pending, self._pending = self._pending, {}
        for name, _ in pending.values():
            self._mailbox.reply(name, refusal(why))
