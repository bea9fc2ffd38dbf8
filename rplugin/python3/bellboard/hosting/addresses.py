"""Check the addresses that sessions name: only those that the gate admits are published.

The caller never touches a file, which may hang: threads do, and the result follows soon.  An
address that is not checked yet is not published either.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from ..core.published import Published
from ..core.text import line
from ..system import gate
from ..system.threads import Thread

GLANCE: Final = 0.005  # seconds for a host to wait for a check, which takes 0.1 ms
PATIENCE: Final = 1.0  # seconds until an address counts as not responding
MOST_CHECKS: Final = 4  # hanging checks at a time
RETRY: Final = 1.0  # seconds until a missing address is checked again
MOST_NOTES: Final = 5


class Admission(NamedTuple):
    """The gate's verdict on an address."""

    why: str  # why it is denied; empty if it is admitted
    there: bool
    at: float


class Addresses:
    """Checks addresses; `moved` is called in a thread when a verdict changes."""

    def __init__(self, moved: Callable[[], None], glance: float = GLANCE) -> None:
        self._moved, self._glance = moved, glance
        self._named: dict[str, tuple[str, ...]] = {}  # session → its addresses
        self._given: dict[str, str | None] = {}  # address → the last answer given
        # shared with the threads, under the lock
        self._lock = threading.Condition()
        self._verdicts: dict[str, Admission] = {}
        self._waiting: deque[str] = deque()
        self._checks: dict[threading.Thread, tuple[str, float]] = {}  # at what, since when

    def shown(self, p: Published) -> Published:
        """Return a session without the addresses that the gate denies."""
        named = tuple({p[key]: None for key in ("nvim", "tmux", "kitty") if p.get(key)})
        if not named:
            self.leave(p["session_id"])
            return p
        self._named[p["session_id"]] = named
        refused = [address for address in named if self._why_not(address) != ""]
        hidden = {key for key in ("nvim", "kitty") if p.get(key) in refused}
        hidden |= {"tmux", "pane"} if p.get("tmux") in refused else set()
        return {key: value for key, value in p.items() if key not in hidden} if hidden else p

    def leave(self, sid: str) -> None:
        """Drop a session that is no longer published."""
        self._named.pop(sid, None)

    def renew(self) -> None:
        """Check all addresses in use again, and forget the rest."""
        used = {address for named in self._named.values() for address in named}
        with self._lock:
            self._given = {a: why for a, why in self._given.items() if a in used}
            self._verdicts = {a: verdict for a, verdict in self._verdicts.items() if a in used}
        self._queue(used)

    def outdated(self) -> set[str]:
        """Return the sessions with a changed verdict."""
        with self._lock:
            other = {a for a, why in self._given.items() if why != self._known(a)}
        return {sid for sid, named in self._named.items() if other.intersection(named)}

    @property
    def notes(self) -> dict[str, str]:
        """Return what is denied and why, for health."""
        with self._lock:
            bad = {a: verdict.why for a, verdict in self._verdicts.items() if verdict.why}
            for address, since in self._checks.values():
                if time.monotonic() > since + PATIENCE:
                    bad[address] = "it does not respond"
        few = sorted(bad)[:MOST_NOTES]
        notes = {line(a, 80): f"not connecting: {line(bad[a])}" for a in few}
        if len(bad) > len(few):
            notes["addresses"] = f"not connecting to {len(bad) - len(few)} more"
        return notes

    def _why_not(self, address: str) -> str | None:
        """Return why an address is denied, "" if it is admitted, or None if not known yet."""
        with self._lock:
            known = self._verdicts.get(address)
        if known is None or (not known.there and time.monotonic() > known.at + RETRY):
            self._queue([address])
        with self._lock:
            if known is None and not self._hang():
                self._lock.wait_for(lambda: address in self._verdicts, self._glance)
            why = self._given[address] = self._known(address)
        if why is None:
            self._queue(())
        return why

    def _known(self, address: str) -> str | None:
        verdict = self._verdicts.get(address)
        return verdict.why if verdict else None

    def _hang(self) -> bool:
        """Return whether all threads are late."""
        late = time.monotonic() - self._glance
        return all(since < late for _, since in self._checks.values())

    def _queue(self, addresses: Iterable[str]) -> None:
        """Queue addresses for the threads; start another thread if all of them hang."""
        with self._lock:
            out = {*self._waiting, *(at for at, _ in self._checks.values())}
            self._waiting.extend(a for a in addresses if a not in out)
            if not self._waiting or not self._hang() or len(self._checks) >= MOST_CHECKS:
                return
            thread = Thread(target=self._check, name="bellboard addresses")
            self._checks[thread] = "", time.monotonic()
        try:
            thread.start()
        except BaseException:  # the next address tries again
            with self._lock:
                self._checks.pop(thread, None)
            raise

    def _check(self) -> None:
        me = threading.current_thread()
        while True:
            with self._lock:
                if not self._waiting:
                    del self._checks[me]
                    return
                address = self._waiting.popleft()
                self._checks[me] = address, time.monotonic()
            verdict = _judged(address)
            with self._lock:
                self._verdicts[address] = verdict
                moved = self._given.get(address, verdict.why) != verdict.why
                self._lock.notify_all()
            if moved:
                self._moved()


def _judged(address: str) -> Admission:
    why, there = "", True
    try:
        gate.admitted(address)
    except FileNotFoundError:
        there = False
    except gate.Denied as denial:
        why = str(denial)
    return Admission(why, there, time.monotonic())
