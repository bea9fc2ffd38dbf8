"""Check the addresses that sessions name: only those that the gate admits are published.

A check touches files, which may hang.  A new address is waited for only a moment, which is enough;
after that it is checked beside the event loop, and not published until then.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from ..core.published import Published
from ..core.text import line
from ..system import gate
from ..system.notes import Notes
from ..system.reach import Hangs, Rounds, reach, run_alone

GLANCE: Final = 0.005  # seconds for a host to wait for a check, which takes 0.1 ms
MOST_LATE: Final = 4  # checks that did not end in time; no other is waited for then
RETRY: Final = 1.0  # seconds until a missing address is checked again
MOST_NOTES: Final = 5


class Admission(NamedTuple):
    """The gate's verdict on an address."""

    why: str  # why it is denied; empty if it is admitted
    there: bool
    at: float


class Addresses:
    """Checks addresses; `moved` is called in the event loop when a verdict changes.

    Without it, as there is none, what does not answer at a glance is not published.
    """

    def __init__(self, moved: Callable[[], None] | None, glance: float = GLANCE) -> None:
        self.notes = Notes()
        self._moved, self._glance = moved, glance
        self._named: dict[str, tuple[str, ...]] = {}  # session → its addresses
        self._given: dict[str, str | None] = {}  # address → the last answer given
        self._verdicts: dict[str, Admission] = {}
        self._late: set[str] = set()  # addresses that did not answer at a glance
        self._rounds = Rounds()

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
        self._given = {a: why for a, why in self._given.items() if a in used}
        self._verdicts = {a: verdict for a, verdict in self._verdicts.items() if a in used}
        self._late &= used
        self._note()
        for address in used:
            self._ask(address)

    def outdated(self) -> set[str]:
        """Return the sessions with a changed verdict."""
        other = {a for a, why in self._given.items() if why != self._known(a)}
        return {sid for sid, named in self._named.items() if other.intersection(named)}

    def _why_not(self, address: str) -> str | None:
        """Return why an address is denied, "" if it is admitted, or None if not known yet."""
        known = self._verdicts.get(address)
        if known is None and address not in self._late and len(self._late) < MOST_LATE:
            self._look_at(address)
        elif known is None or (not known.there and time.monotonic() > known.at + RETRY):
            self._ask(address)
        why = self._given[address] = self._known(address)
        return why

    def _known(self, address: str) -> str | None:
        verdict = self._verdicts.get(address)
        return verdict.why if verdict else None

    def _look_at(self, address: str) -> None:
        """Check a new address at once."""
        try:
            verdict = run_alone(reach(partial(judged, address), within=self._glance))
        except Hangs:
            self._late.add(address)
            self._ask(address)
        else:
            self._take(address, verdict)

    def _ask(self, address: str) -> None:
        """Check an address soon."""
        if self._moved is not None:
            self._rounds.run(f"address {address}", partial(self._check, address))

    async def _check(self, address: str) -> None:
        # The gate itself touches nothing where a thread could hang for ever.
        verdict = await reach(partial(judged, address), f"address {address}")
        self._take(address, verdict)
        if self._moved is not None and self._given.get(address, verdict.why) != verdict.why:
            self._moved()

    def _take(self, address: str, verdict: Admission) -> None:
        self._late.discard(address)
        self._verdicts[address] = verdict
        self._note()

    def _note(self) -> None:
        """Note in health what is denied and why."""
        bad = {a: verdict.why for a, verdict in self._verdicts.items() if verdict.why}
        few = sorted(bad)[:MOST_NOTES]
        notes = {line(a, 80): f"not connecting: {line(bad[a])}" for a in few}
        if len(bad) > len(few):
            notes["addresses"] = f"not connecting to {len(bad) - len(few)} more"
        self.notes.replace(notes)


def judged(address: str) -> Admission:
    """Return the gate's verdict on an address now."""
    why, there = "", True
    try:
        gate.admitted(address)
    except FileNotFoundError:
        there = False
    except gate.Denied as denial:
        why = str(denial)
    return Admission(why, there, time.monotonic())
