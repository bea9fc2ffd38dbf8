"""The places that sessions name, of which only those are published that the gate lets us talk to.

Whoever asks never looks at a file, for that may hang: threads do, and soon have the answer.  What
is not judged yet is not published either.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from ..core.detail import line
from ..core.published import Published
from ..system import gate

GLANCE: Final = 0.005  # seconds that a host waits for a judgement, which takes 0.1 ms
PATIENCE: Final = 1.0  # seconds after which a place does not answer
MOST_LOOKS: Final = 4  # that may hang at a time
AGAIN: Final = 1.0  # seconds after which a place that was not there is looked for again
MOST_NOTES: Final = 5


class Verdict(NamedTuple):
    """What the gate says of an address."""

    why: str  # it is not connected to; empty: it is
    there: bool
    at: float


class Places:
    """Judges places; `moved` is called in a thread when one is judged differently now."""

    def __init__(self, moved: Callable[[], None], glance: float = GLANCE) -> None:
        self._moved, self._glance = moved, glance
        self._named: dict[str, tuple[str, ...]] = {}  # session → the addresses that it names
        self._told: dict[str, str | None] = {}  # address → why not, as it was last asked for
        # and, under the lock, what the threads share
        self._lock = threading.Condition()
        self._verdicts: dict[str, Verdict] = {}
        self._waiting: deque[str] = deque()
        self._looks: dict[threading.Thread, tuple[str, float]] = {}  # at what, since when

    def shown(self, p: Published) -> Published:
        """A session without the places that may not be jumped to."""
        named = tuple({p[key]: None for key in ("nvim", "tmux") if p.get(key)})
        if not named:
            self.leave(p["session_id"])
            return p
        self._named[p["session_id"]] = named
        refused = [address for address in named if self._why_not(address) != ""]
        hidden = {"nvim"} if p.get("nvim") in refused else set()
        hidden |= {"tmux", "pane"} if p.get("tmux") in refused else set()
        return {key: value for key, value in p.items() if key not in hidden} if hidden else p

    def leave(self, sid: str) -> None:
        """That session is not published any more."""
        self._named.pop(sid, None)

    def renew(self) -> None:
        """Judge what is named once more, and forget the rest."""
        used = {address for named in self._named.values() for address in named}
        with self._lock:
            self._told = {a: why for a, why in self._told.items() if a in used}
            self._verdicts = {a: verdict for a, verdict in self._verdicts.items() if a in used}
        self._look_at(used)

    def outdated(self) -> set[str]:
        """The sessions that would be shown differently now."""
        with self._lock:
            other = {a for a, why in self._told.items() if why != self._known(a)}
        return {sid for sid, named in self._named.items() if other.intersection(named)}

    @property
    def notes(self) -> dict[str, str]:
        """For health: what is not connected to, and why not."""
        with self._lock:
            bad = {a: verdict.why for a, verdict in self._verdicts.items() if verdict.why}
            for address, since in self._looks.values():
                if time.monotonic() > since + PATIENCE:
                    bad[address] = "it does not answer"
        few = sorted(bad)[:MOST_NOTES]
        notes = {line(a, 80): f"not connected to: {line(bad[a])}" for a in few}
        if len(bad) > len(few):
            notes["places"] = f"{len(bad) - len(few)} more are not connected to"
        return notes

    def _why_not(self, address: str) -> str | None:
        """Why it is not connected to; None if that is not known yet."""
        with self._lock:
            known = self._verdicts.get(address)
        if known is None or (not known.there and time.monotonic() > known.at + AGAIN):
            self._look_at([address])
        with self._lock:
            if known is None and not self._hang():
                self._lock.wait_for(lambda: address in self._verdicts, self._glance)
            why = self._told[address] = self._known(address)
        if why is None:
            self._look_at(())
        return why

    def _known(self, address: str) -> str | None:
        verdict = self._verdicts.get(address)
        return verdict.why if verdict else None

    def _hang(self) -> bool:
        """Whether all that look have done so for longer than it takes."""
        late = time.monotonic() - self._glance
        return all(since < late for _, since in self._looks.values())

    def _look_at(self, addresses: Iterable[str]) -> None:
        """Have threads look; another one if those that there are hang."""
        with self._lock:
            out = {*self._waiting, *(at for at, _ in self._looks.values())}
            self._waiting.extend(a for a in addresses if a not in out)
            if not self._waiting or not self._hang() or len(self._looks) >= MOST_LOOKS:
                return
            look = threading.Thread(target=self._look, name="bellboard places", daemon=True)
            self._looks[look] = "", time.monotonic()
        look.start()

    def _look(self) -> None:
        me = threading.current_thread()
        while True:
            with self._lock:
                if not self._waiting:
                    del self._looks[me]
                    return
                address = self._waiting.popleft()
                self._looks[me] = address, time.monotonic()
            verdict = _judged(address)
            with self._lock:
                self._verdicts[address] = verdict
                moved = self._told.get(address, verdict.why) != verdict.why
                self._lock.notify_all()
            if moved:
                self._moved()


def _judged(address: str) -> Verdict:
    why, there = "", True
    try:
        gate.admitted(address)
    except FileNotFoundError:
        there = False
    except gate.Refused as refusal:
        why = str(refusal)
    return Verdict(why, there, time.monotonic())
