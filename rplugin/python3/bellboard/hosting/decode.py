"""Decode the files of the spool into events."""

from __future__ import annotations

import re
import time
from typing import Final

from msgspec.structs import replace

from ..agents import trace_line
from ..agents.registry import agent_of
from ..agents.trace_line import origin_of
from ..core.events import ASKING, Event, Origin, junk
from ..core.untrusted import bounded
from ..storage.event_file import Item
from ..system.processes import argv_of, ran_at, tty_of
from ..witnesses.proof import located

ORIGINS: Final = 256  # origins to cache; the spool caches as many headers
LASTING: Final = 2.0  # seconds to cache one: after that, another process may have its pid
SMALL: Final = 4096  # bytes of a payload that cannot contain anything too large to store
#: What a tmux client can do.
CLIENT_DOES: Final = frozenset({"looks", "focus", "away", "gone"})
_PANE: Final = re.compile(r"%[0-9]{1,9}", re.ASCII)


class Decoder:
    """Decodes files, and finds the terminals that their events came from."""

    def __init__(self) -> None:
        self._origins: dict[int, tuple[object, Origin, float]] = {}  # until when each counts

    def events(self, item: Item, clock: float) -> list[Event]:
        """Decode a file for a board with that clock; limit values, so that they can be stored."""
        events = self._decoded(item, clock)
        if item.kind == "hook" and len(item.payload) <= SMALL:
            return events  # the decoder has checked its numbers
        return [bounded(event) for event in events]

    def _decoded(self, item: Item, clock: float) -> list[Event]:
        if item.kind == "line":
            event = trace_line.event_in(item.payload, clock)
            return [event if event.clock == clock else replace(event, clock=clock)]
        if item.event == "view":
            return of_tmux(item.payload, item.t, clock, origin_of(item.origin))
        origin = self._origin(item.origin, item.t)
        dialect = agent_of(origin.agent)
        event = dialect.event(item.payload, item.t, clock, origin, item.truncated, item.event)
        if event.kind in ASKING:
            event = replace(event, request=item.name, pipe=item.pipe)
        return [event]

    def _origin(self, given: dict[str, object] | None, t: float) -> Origin:
        """Decode the origin of an event and add its terminal.

        Cached, as the spool shares equal origins.
        """
        known, now = self._origins.get(id(given)), time.monotonic()
        if known is not None and known[0] is given and now < known[2]:
            return known[1]
        origin = origin_of(given)
        if origin.started or _is_recent(t):
            here = located(origin, t)
            origin, pid = here or origin, here.pid if here else None
        else:
            pid = origin.pid if origin.pid and ran_at(origin.pid, t) else None
        if origin.tty is None and pid is not None:
            tty = tty_of(pid)
            origin = replace(origin, tty=tty) if tty else _placed(origin, pid)
        if len(self._origins) >= ORIGINS:
            self._origins.clear()
        self._origins[id(given)] = (given, origin, now + LASTING)
        return origin


def _is_recent(t: float) -> bool:
    """Return whether a pid still means the process that it meant in an event of that time."""
    return time.time() < t + LASTING


def _placed(origin: Origin, pid: int) -> Origin:
    """Drop the place of a server: it belongs to whoever happened to start it."""
    if not agent_of(origin.agent).serves(argv_of(pid)):
        return origin
    return Origin(origin.agent, pid, shared=True, env=origin.env)


def of_tmux(said: bytes, t: float, now: float, origin: Origin) -> list[Event]:
    """Decode a report of tmux, one event per client: `looks %3 /dev/pts/5,/dev/pts/6`.

    `cli/wiring.py` sets up its hooks.  A client `looks` at a pane, regains the focus there
    (`focus`), has lost it (`away`) or is `gone`.
    """
    how, pane, clients = [*said[:4096].decode("utf-8", "replace").split(), "", "", ""][:3]
    if how not in CLIENT_DOES or not _PANE.fullmatch(pane):
        return [junk("invalid report from tmux", t, now, "view")]
    seen = pane if how in ("looks", "focus") else None
    where = Origin(tmux=origin.tmux, pane=seen)
    source = how if how != "looks" else ""
    return [
        Event("view", "view", t, now, origin=where, viewer=f"{origin.tmux} {x}", source=source)
        for x in clients.split(",")
        if x
    ]
