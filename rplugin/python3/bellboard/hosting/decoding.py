"""Decode the files of the spool into events."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from ..agents import evidence
from ..agents.dialects import dialect_of
from ..agents.origins import origin_of
from ..core.bounds import bounded
from ..core.events import ASKING, Event, Origin
from ..storage.item import Item
from ..system.processes import Ttys, argv_of

ORIGINS: Final = 256  # origins to cache; the spool caches as many headers
SMALL: Final = 4096  # bytes of a payload that cannot contain anything too large to store


class Decoder:
    """Decodes files, and finds the terminals that their events came from."""

    def __init__(self) -> None:
        self._ttys = Ttys()
        self._origins: dict[int, tuple[object, Origin]] = {}

    def events(self, item: Item, clock: float) -> list[Event]:
        """Decode a file for a board with that clock; limit values, so that they can be stored."""
        events = self._decoded(item, clock)
        if item.kind == "hook" and len(item.payload) <= SMALL:
            return events  # the decoder has checked its numbers
        return [bounded(event) for event in events]

    def _decoded(self, item: Item, clock: float) -> list[Event]:
        if item.kind == "line":
            event = evidence.read(item.payload, clock)
            return [event if event.clock == clock else replace(event, clock=clock)]
        if item.event == "view":
            return evidence.of_tmux(item.payload, item.t, clock, origin_of(item.origin))
        origin = self._origin(item.origin)
        dialect = dialect_of(origin.agent)
        event = dialect.event(item.payload, item.t, clock, origin, item.truncated, item.event)
        if event.kind in ASKING:
            event = replace(event, request=item.name, pipe=item.pipe)
        return [event]

    def _origin(self, given: dict[str, object] | None) -> Origin:
        """Decode an origin and add its terminal; cached, as the spool shares equal origins."""
        known = self._origins.get(id(given))
        if known is not None and known[0] is given:
            return known[1]
        origin = origin_of(given)
        if origin.tty is None and origin.pid is not None:
            tty = self._ttys.of(origin.pid)
            origin = replace(origin, tty=tty) if tty else _placed(origin, origin.pid)
        if len(self._origins) >= ORIGINS:
            self._origins.clear()
        self._origins[id(given)] = (given, origin)
        return origin


def _placed(origin: Origin, pid: int) -> Origin:
    """Drop the place of a server: it is that of whoever happened to start it."""
    if not dialect_of(origin.agent).serves(argv_of(pid)):
        return origin
    return Origin(origin.agent, pid, shared=True, env=origin.env)
