"""One connection to a machine: read its feed, and send what is asked.

What it sends is limited: the length of a line, the amount in a second, and lines that are not of a
feed.  A machine that sends more is read more slowly, or the link ends with the reason.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import time
from typing import Final, Protocol

from ..core.feed import (
    BEAT,
    MOST,
    OWN,
    QUIET,
    TOO_MANY,
    Change,
    Hello,
    Junk,
    Line,
    Problem,
    Reply,
    State,
)
from ..core.feedread import FOREIGN, SILENT, Lines
from ..system.awake import clock
from ..system.leash import Leashed, last_words
from .follower import Follower

CHUNK: Final = 1 << 16
GREETING: Final = 25.0  # seconds until the hello: ssh may take 5 to connect, and has logins to make
AWAKE: Final = 5.0  # seconds after a sleep of this machine until it is noticed
SSH_FAILED: Final = 255  # the exit code of ssh itself
LAST_WORDS: Final = 4096  # bytes of its standard error to keep
#: Bytes that may come at once, and then in each second; the state of 2,000 sessions has 1 MB.
BURST, STEADY = 4 << 20, 256 << 10
#: The same for lines, and for what they list: each row becomes a file in the spool.
LINES, STEADY_LINES = 4096, 256
CALM: Final = 10.0  # seconds for which a machine that was read slowly is reported
MOST_UNSENT: Final = 4 << 20  # bytes of requests that it does not read


class Owner(Protocol):
    """The link that a connection belongs to."""

    follower: Follower
    is_greeted: bool
    wakes: int

    @property
    def is_stopped(self) -> bool: ...

    def drain(self) -> None: ...

    def requests(self) -> list[bytes]: ...

    def refuse_new(self) -> int: ...

    def greeting(self) -> bytes: ...

    def replied(self, said: Reply) -> None: ...

    def is_up(self) -> None: ...

    def is_own(self, cursor: str) -> bool: ...

    def slow(self, is_slow: bool) -> None: ...

    def refuse(self, count: int, is_first: bool) -> None: ...


class Ended(Exception):
    """The link has ended; the text says why."""


class Silent(Ended):
    """It has ended because nothing more came."""


class Budget:
    """An allowance: `burst` at once, and `steady` in each second."""

    def __init__(self, burst: float, steady: float) -> None:
        self._burst, self._steady = burst, steady
        self._left, self._at = burst, time.monotonic()

    def spend(self, cost: float) -> float:
        """Spend some of it; return the seconds to wait before spending more."""
        now = time.monotonic()
        self._left = min(self._burst, self._left + (now - self._at) * self._steady) - cost
        self._at = now
        return max(0.0, -self._left / self._steady)


class Hearing:
    """One connection."""

    def __init__(self, feed: Leashed, link: Owner) -> None:
        self._feed, self._link = feed, link
        self._said = Lines()
        self._words = b""  # the end of its standard error
        self._unsent = bytearray()
        self._greeted = False
        self._since = 0.0  # when it was greeted
        self._is_silent = False  # its standard error is closed
        self._bytes, self._lines = Budget(BURST, STEADY), Budget(LINES, STEADY_LINES)
        self._slow_until = 0.0
        self._begun = self._heard = clock()
        self._shown = -BEAT  # when we last sent a sign of life
        self._ready = selectors.DefaultSelector()

    def run(self) -> str:
        with self._ready as ready:
            ready.register(self._link.wakes, selectors.EVENT_READ)
            while not self._link.is_stopped:
                slow = self._slow_until - time.monotonic()
                if slow > 0:
                    self._heard = clock()
                self._listen(slow <= 0)
                wait = slow if slow > 0 else self._patience()
                for key, _ in ready.select(min(wait, self._show_up(), AWAKE)):
                    self._take(key.fd)
                is_read = not self._greeted or self._slow_until <= time.monotonic()
                if is_read and self._patience() <= 0:
                    raise Silent(self._silence())
        return "stopped"

    def _listen(self, to_feed: bool) -> None:
        """Read its output only while it may send, and write only what waits."""
        feed = self._feed
        wanted = {
            feed.stdout: selectors.EVENT_READ if to_feed else 0,
            feed.stderr: selectors.EVENT_READ if to_feed and not self._is_silent else 0,
            feed.stdin: selectors.EVENT_WRITE if self._unsent else 0,
        }
        for fd, event in wanted.items():
            known = fd in self._ready.get_map()
            if event and not known:
                self._ready.register(fd, event)
            elif known and not event:
                self._ready.unregister(fd)
        self._link.slow(time.monotonic() < self._slow_until + CALM)

    def _take(self, fd: int) -> None:
        if fd == self._link.wakes:
            self._link.drain()
            self._ask()
        elif fd == self._feed.stdin:
            self._send()
        elif fd == self._feed.stderr:
            data = _read(fd)
            self._words = (self._words + (data or b""))[-LAST_WORDS:]
            self._cost(len(data or b""))
            self._is_silent = data == b""
        elif (data := _read(fd)) is not None:
            if not data:
                raise Ended(self._reason())
            self._cost(len(data))
            self._heard = clock()
            for said in self._said.take(data):
                self._one(said)

    def _cost(self, size: int, lines: int = 0) -> None:
        wait = max(self._bytes.spend(size), self._lines.spend(lines))
        if wait:
            self._slow_until = max(self._slow_until, time.monotonic() + wait)

    # ------------------------------------------------------------ what it says

    def _one(self, said: Line | None) -> None:
        follower = self._link.follower
        if isinstance(said, Problem):
            raise Ended(said.text)
        if self._greeted and not isinstance(said, State) and self._lacks_state():
            raise Ended("it does not send its sessions: update bellboard there")
        if isinstance(said, Junk):
            return
        self._cost(0, 1)
        if isinstance(said, Hello):
            self._greeted, self._since = True, clock()
            follower.take(said)
            self._show_up()
        elif isinstance(said, Reply):
            self._link.replied(said)
        elif said is not None:
            if not self._greeted:
                raise Ended(SILENT)
            if self._link.is_own(said.cursor):
                raise Ended(OWN)
            if isinstance(said, Change) and (count := follower.count(said)) > MOST:
                raise Ended(TOO_MANY.format(count, "sessions"))
            if isinstance(said, State | Change):
                self._cost(0, len(said.sessions) + len(said.transitions) + said.skipped)
                self._link.refuse(said.skipped, isinstance(said, State))
            was_up = follower.is_up
            follower.take(said)
            if follower.is_up and not was_up:
                self._link.is_up()
                self._ask()

    def _lacks_state(self) -> bool:
        """Return whether other lines come, but no state, which comes before them."""
        return not self._link.follower.is_up and clock() > self._since + GREETING

    # ------------------------------------------------------------ what it is asked

    def _ask(self) -> None:
        if not self._link.follower.is_up:
            self._link.refuse_new()  # it may take half a minute until it is up, if ever
            return
        for asked in self._link.requests():
            self._unsent += asked
        if len(self._unsent) > MOST_UNSENT:
            raise Ended("it takes no requests")
        self._send()

    def _show_up(self) -> float:
        """Report now and then that somebody follows; return the seconds until the next time.

        It then leaves notifications to us, and ends when it no longer hears from us.
        """
        if not self._greeted:
            return BEAT
        left = self._shown + BEAT - time.monotonic()
        if left > 0 and self._link.is_greeted:
            return left
        self._shown = time.monotonic()
        self._unsent += self._link.greeting()
        self._send()
        return BEAT

    def _send(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._unsent:
                try:
                    del self._unsent[: os.write(self._feed.stdin, self._unsent[:CHUNK])]
                except BrokenPipeError:
                    raise Ended(self._reason()) from None

    # ------------------------------------------------------------ why it ends

    def _patience(self) -> float:
        until = self._heard + QUIET if self._greeted else self._begun + GREETING
        return until - clock()

    def _silence(self) -> str:
        if self._greeted:
            return f"nothing was heard for {QUIET:.0f} s"
        foreign = self._said.foreign
        said = last_words(self._words) or (FOREIGN.format(foreign) if foreign else "")
        return said or f"no answer within {GREETING:.0f} s"

    def _reason(self) -> str:
        with contextlib.suppress(OSError):
            self._words = (self._words + (_read(self._feed.stderr) or b""))[-LAST_WORDS:]
        code = self._feed.code(0.5)
        ended = "it has ended" if code in (0, None) else f"it ended with exit code {code}"
        said = last_words(self._words) or self._said.foreign
        if code == SSH_FAILED and not said:
            said = "the connection was lost"
        return f"{said} ({ended})" if said else ended


def _read(fd: int) -> bytes | None:
    """Return what can be read now; None if that is nothing yet, b"" at the end."""
    try:
        return os.read(fd, CHUNK)
    except BlockingIOError:
        return None
    except OSError:
        return b""
