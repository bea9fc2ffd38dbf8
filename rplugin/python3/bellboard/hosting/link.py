"""One followed machine: its program, its lines, and our requests to it."""

from __future__ import annotations

import contextlib
import os
import selectors
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from ..core.feed import (
    BEAT,
    FOREIGN,
    MOST,
    NO_PROTOCOL,
    OWN,
    QUIET,
    TOO_MANY,
    Beat,
    FeedChange,
    FeedLines,
    FeedProblem,
    FeedState,
    HealthNotes,
    Hello,
    Junk,
    Line,
    Of,
    Reply,
    asking,
)
from ..core.request import refusal
from ..storage.machines import OLD, Mailbox
from ..system.clock import boot_id, clock
from ..system.failures import Backoff, described
from ..system.programs import Leashed, last_words
from ..system.remotely import is_slow
from ..system.threads import Thread
from .far_evidence import Follower
from .fleet import Members, Post

# One connection to a machine: read its feed, and send what is asked.
#
# What it sends is limited: the length of a line, the amount in a second, and lines that are not
# of a feed. A machine that sends more is read more slowly, or the link ends with the reason.


LINE_CHUNK: Final = 1 << 16
GREETING: Final = 25.0  # seconds until the hello: ssh may take 5 to connect, and has logins to make
AWAKE: Final = 5.0  # seconds after a sleep of this machine until it is noticed
SSH_FAILED: Final = 255  # the exit code of ssh itself
LAST_WORDS: Final = 4096  # bytes of its standard error to keep
#: Bytes that may come at once, and then in each second; the state of 2,000 sessions has 1 MB.
BURST, STEADY = 4 << 20, 256 << 10
#: The same for lines, and for what they list: each row becomes a file in the spool.
LINES, STEADY_LINES = 4096, 256
CALM: Final = 10.0  # seconds for which a machine that was read slowly is reported
PAUSE: Final = 0.1  # seconds until it is looked again whether what a fleet says can be taken
AGAIN: Final = 1.0  # seconds until a line of a fleet is written again that could not be
MOST_UNSENT: Final = 4 << 20  # bytes of requests that it does not read


class LinkEnded(Exception):
    """The link has ended; the text says why."""


class Silent(LinkEnded):
    """The link has ended because nothing more came."""


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
    """One connection to a machine: its lines, and our requests."""

    def __init__(self, feed: Leashed, wakes: int, is_limited: bool) -> None:
        """`wakes` is a descriptor that can be read when there is something to do here."""
        self._feed, self._wakes, self._is_limited = feed, wakes, is_limited
        self._said = FeedLines()
        self._words = b""  # the end of its standard error
        self._unsent = bytearray()
        self.greeted = 0.0  # since when it has said which protocol it speaks
        self.shown = -BEAT  # when we last sent a sign of life
        self._is_silent = False  # its standard error is closed
        self._bytes, self._lines = Budget(BURST, STEADY), Budget(LINES, STEADY_LINES)
        self._slow_until = 0.0
        self._begun = self._heard = clock()
        self._ready = selectors.DefaultSelector()

    @property
    def is_slow(self) -> bool:
        """Return whether it has lately sent more than was read."""
        return time.monotonic() < self._slow_until + CALM

    def lines(self) -> Iterator[Line | None]:
        """Yield the lines of a machine, and None whenever all of them are handled."""
        with self._ready as ready:
            ready.register(self._wakes, selectors.EVENT_READ)
            while True:
                yield None
                slow = self._slow_until - time.monotonic()
                if slow > 0:
                    self.wait_for_us()
                self._listen(slow <= 0)
                wait = slow if slow > 0 else self._patience()
                beat = self.shown + BEAT - time.monotonic() if self.greeted else BEAT
                for key, _ in ready.select(max(0.0, min(wait, beat, AWAKE))):
                    yield from self._take(key.fd)
                is_read = not self.greeted or self._slow_until <= time.monotonic()
                if is_read and self._patience() <= 0:
                    raise Silent(self._silence())

    def send(self, data: bytes) -> None:
        """Write as much as the program takes now, and the rest later."""
        self._unsent += data
        if len(self._unsent) > MOST_UNSENT:
            raise LinkEnded("it takes no requests")
        with contextlib.suppress(BlockingIOError):
            while self._unsent:
                try:
                    del self._unsent[: os.write(self._feed.stdin, self._unsent[:LINE_CHUNK])]
                except BrokenPipeError:
                    raise LinkEnded(self._reason()) from None

    def spend(self, size: int, lines: int = 0) -> None:
        """Spend some of what it may send; once that is gone, read slowly."""
        if self._is_limited:
            self.rest(max(self._bytes.spend(size), self._lines.spend(lines)))

    def rest(self, seconds: float) -> None:
        """Read nothing for a while."""
        if seconds:
            self._slow_until = max(self._slow_until, time.monotonic() + seconds)

    def wait_for_us(self) -> None:
        """Note that the silence is ours: nobody reads the machine's lines."""
        self._heard = clock()

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

    def _take(self, fd: int) -> Iterator[Line | None]:
        if fd == self._feed.stdin:
            self.send(b"")
        elif fd == self._feed.stderr:
            data = _read(fd)
            self._words = (self._words + (data or b""))[-LAST_WORDS:]
            self.spend(len(data or b""))
            self._is_silent = data == b""
        elif fd == self._feed.stdout and (data := _read(fd)) is not None:
            if not data:
                raise LinkEnded(self._reason())
            self.spend(len(data))
            self._heard = clock()
            yield from self._said.take(data)

    # ------------------------------------------------------------ why it ends

    def _patience(self) -> float:
        until = self._heard + QUIET if self.greeted else self._begun + GREETING
        return until - clock()

    def _silence(self) -> str:
        if self.greeted:
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
    """Return the bytes that can be read now; None if there are none yet, b"" at the end."""
    try:
        return os.read(fd, LINE_CHUNK)
    except BlockingIOError:
        return None
    except OSError:
        return b""


# The link to one machine: a thread that runs its command again whenever that has ended.


WAKE_CHUNK: Final = 1 << 16
#: Part of an outage from one try to the next.  A machine that takes two minutes to start again, and
#: refuses at once meanwhile, is followed within three seconds.
SHARE: Final = 60.0
SHORTEST: Final = 1.0  # seconds from one try to the next
LONGEST: Final = 60.0
JITTER: Final = 0.25
SOONEST: Final = 0.1  # seconds until the next try, if the last one took longer than that
LOGIN: Final = 4.0  # seconds of a login; a slower machine is given more time
ALONE: Final = 600.0  # seconds not to share a connection, after one went silent
MOST_PENDING: Final = 100  # requests without a reply
BRIEF: Final = 10.0  # seconds: a link up for less may fail each time, and each try is a login
FAILING: Final = 600.0  # seconds of outage that a brief connection counts as, at most


def _size(said: Line) -> int:
    """Return how much a line lists."""
    if isinstance(said, FeedState | FeedChange):
        return len(said.sessions) + len(said.transitions) + said.skipped
    return 0


class Link:
    """Keeps the link until `stop`; may be used from any thread."""

    def __init__(
        self,
        command: Callable[[str, bool, bool], Sequence[str]],
        follower: Follower | Members,
        mailbox: Mailbox | Post,
        changed: Callable[[], None],
    ) -> None:
        """`command` gives the words for a cursor, whether to share a connection, and whether to let
        it take long; `changed` is called, in a thread, when health or its sessions change."""
        self.follower = follower
        self.why = "it is being connected"  # while it is not up
        self.is_slow = False  # it sends more than we read
        self.own = ""  # the id of our own board
        self._is_greeted = True  # whether the machine knows who sits here
        self._alone = False  # nobody is at this machine
        self.refused = 0  # rows and transitions that could not be used, since the last state
        self._command, self._mailbox, self._changed = command, mailbox, changed
        self._wakes, self._wake = os.pipe()
        os.set_blocking(self._wakes, False)
        os.set_blocking(self._wake, False)
        self._lock = threading.Lock()  # of the descriptor above
        self._is_stopped = threading.Event()
        self._leaves = False
        self._silent = -ALONE  # when a connection was
        self._begun = 0.0  # when the last try was
        self._takes_long = False  # to log in
        self._backoff = Backoff(SHORTEST, LONGEST, SHARE, JITTER, times=1, since=time.monotonic())
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
            os.close(self._wakes)
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
            is_limited = not isinstance(self.follower, Members)  # which merges changes itself
            return self._follow_lines(Hearing(feed, self._wakes, is_limited))
        except OSError as e:
            return f"its changes cannot be written: {described(e)}"
        except LinkEnded as e:
            if isinstance(e, Silent):
                self._silent = time.monotonic()
            self._takes_long = self._takes_long or is_slow(str(e))
            return str(e)
        except Exception as e:
            return described(e)

    def _follow_lines(self, hearing: Hearing) -> str:
        for said in hearing.lines():
            if self._is_stopped.is_set():
                break
            if said is not None:
                self._take(hearing, said)
                continue
            if self.is_slow != hearing.is_slow:
                self.is_slow = hearing.is_slow
                self._changed()
            if self._drain():
                self._ask(hearing)
            if hearing.greeted:
                self._greet(hearing)
        return "stopped"

    def _lose(self, why: str) -> None:
        if self._is_stopped.is_set():
            return
        if self.follower.is_up:
            now = time.monotonic()
            is_brief = now < self._up_since + BRIEF
            since = max(self._backoff.since, now - FAILING) if is_brief else now
            self._backoff.since = since
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
        until = max(begun + self._backoff.fail(), now + SOONEST)
        self._refuse_new()  # what came when it went down
        with selectors.DefaultSelector() as ready:
            ready.register(self._wakes, selectors.EVENT_READ)
            while (left := until - time.monotonic()) > 0 and not self._is_stopped.is_set():
                if ready.select(left):
                    self._drain()
                    if self._refuse_new():
                        return  # it is needed now

    def _drain(self) -> bool:
        """Take the wakes that have come; return whether there were any."""
        with contextlib.suppress(OSError):
            return bool(os.read(self._wakes, WAKE_CHUNK))
        return False

    # ------------------------------------------------------------ what it says

    def _take(self, hearing: Hearing, said: Line) -> None:
        follower = self.follower
        if isinstance(said, FeedProblem):
            raise LinkEnded(said.text)
        if (
            hearing.greeted
            and not isinstance(said, FeedState)
            and self._lacks_state(hearing.greeted)
        ):
            raise LinkEnded("it does not send its sessions: update bellboard there")
        if isinstance(said, Junk):
            return
        if isinstance(said, Of | HealthNotes):
            if isinstance(follower, Members) and hearing.greeted:
                self._pass_on(hearing, follower, said)
            else:
                hearing.spend(0, 1)  # one machine cannot speak for others
            return
        if isinstance(follower, Members):
            hearing.rest(PAUSE if follower.is_full else 0.0)
        hearing.spend(0, 1 + _size(said))
        if isinstance(said, Hello):
            hearing.greeted = clock()
            follower.take(said)
            self._greet(hearing)
        elif isinstance(said, Reply):
            self._reply(said)
        else:
            self._take_rows(hearing, said)

    def _take_rows(self, hearing: Hearing, said: Beat | FeedState | FeedChange) -> None:
        follower = self.follower
        if not hearing.greeted:
            raise LinkEnded(NO_PROTOCOL)
        if self._is_own(said.cursor):
            raise LinkEnded(OWN)
        if isinstance(said, FeedChange) and (count := follower.count(said)) > MOST:
            raise LinkEnded(TOO_MANY.format(count, "sessions"))
        if isinstance(said, FeedState | FeedChange):
            self._refuse_rows(said.skipped, isinstance(said, FeedState))
        was_up = follower.is_up
        follower.take(said)
        if follower.is_up and not was_up:
            self.why, self._up_since = "", time.monotonic()
            self._takes_long = self._takes_long and time.monotonic() > self._begun + LOGIN
            self._changed()
            self._ask(hearing)

    def _pass_on(self, hearing: Hearing, members: Members, said: Of | HealthNotes) -> None:
        """Write a line from a machine of a fleet as evidence; the program goes on if that fails."""
        while not self._is_stopped.is_set():
            try:
                members.take(said)
                return
            except (OSError, ValueError) as e:  # the fold refuses duplicates
                members.fail(said, e)
            self._is_stopped.wait(AGAIN)
            hearing.wait_for_us()

    def _lacks_state(self, greeted: float) -> bool:
        """Return whether other lines come, but no state, which comes before them."""
        return not self.follower.is_up and clock() > greeted + GREETING

    def _is_own(self, cursor: str) -> bool:
        """Return whether a feed is of our own board: a copy of that is on another machine."""
        is_ours = bool(self.own) and cursor.startswith(f"{self.own}.")
        return is_ours and self.follower.hello.boot == boot_id()

    def _refuse_rows(self, count: int, is_first: bool) -> None:
        """Count the rows that could not be used; health shows their number."""
        was, self.refused = self.refused, count + (0 if is_first else self.refused)
        if self.refused != was:
            self._changed()

    # ------------------------------------------------------------ requests

    def _ask(self, hearing: Hearing) -> None:
        if self.follower.is_up:
            hearing.send(b"".join(self._requests()))
        else:
            self._refuse_new()  # it may take half a minute until it is up, if ever

    def _greet(self, hearing: Hearing) -> None:
        """Say now and then that somebody follows, and whether somebody sits here.

        It then leaves notifications to us, and ends when it no longer hears from us.
        """
        now = time.monotonic()
        if now < hearing.shown + BEAT and self._is_greeted:
            return
        hearing.shown, self._is_greeted = now, True
        self._count += 1
        hearing.send(asking(self._count, "clock", {"alone": self._alone}))

    def _requests(self) -> list[bytes]:
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

    def sit(self, alone: bool) -> None:
        """Note whether nobody is at this machine to be notified: then others notify."""
        if alone != self._alone:
            self._alone, self._is_greeted = alone, False
            self.wake()

    def _reply(self, said: Reply) -> None:
        """Pass on a reply."""
        name, _ = self._pending.pop(said.id, ("", 0.0))
        if name:
            self._mailbox.reply(name, said.fields)

    def _refuse_new(self) -> int:
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
