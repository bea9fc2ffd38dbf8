"""Sees that the hooks are still in the settings files that they were put into.

Other programs write these files too, and some write back what they read long ago.  Who took the
hooks out with bellboard is not reminded of them: then no file says that they ought to be there.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from ....core import words
from ....system.doer import Doer
from ....system.watch import Watch
from . import installed

SETTLE: Final = 1.0  # after a change: many a program writes twice, or empties a file first
AGAIN: Final = 5.0  # after something could not be done
SCRIPT: Final = "script"
PATIENCE: Final = 5.0  # seconds; the lock is waited for as well


class Guard:
    """Looks, beside the loop that runs, and calls `changed` in it when it finds something else.

    One that `tells` claims to be the one in the world that tells somebody that hooks are gone.
    """

    def __init__(
        self,
        home: Path,
        environ: Mapping[str, str],
        watch: Watch,
        reach: Doer,
        changed: Callable[[], None],
        tells: bool,
    ) -> None:
        self.vanished = ""  # what this one has to tell
        self._home, self._environ, self._watch = home, dict(environ), watch
        self._reach = reach.lane("hooks", PATIENCE)
        self._changed, self._tells = changed, tells
        self._loop = asyncio.get_running_loop()
        self._places: installed.Places = {}
        self._missing: dict[str, str] = {}  # settings file → what is wrong with it
        self._looks: dict[str, Look] = {}  # settings file → what was seen of it
        self._watched: set[str] = set()
        self._notes: dict[str, str] = {}  # what could not be done, by what it was
        self._timer: asyncio.TimerHandle | None = self._loop.call_later(SETTLE, self._begin)

    @property
    def notes(self) -> dict[str, str]:
        """For health: what is not as it should be."""
        told = [*self._missing.values()]
        if told:
            told.append("another program wrote it: `bellboard hooks install` puts them back")
        told += self._notes.values()
        return {"hooks": "; ".join(told)} if told else {}

    def changed(self, paths: Collection[str]) -> None:
        """A watch named these paths; those that are not ours are ignored."""
        if self._timer is None and not self._watched.isdisjoint(paths):
            self._timer = self._loop.call_later(SETTLE, self._settled)

    def look(self) -> None:
        """Look at what has changed since the last time; cheap if nothing has."""
        if self._timer is None:  # else that comes soon
            if SCRIPT in self._notes:
                self._keep_script()
            path = str(installed.record(self._home))
            self._reach.do(path, partial(installed.places, self._home), self._listed)

    def close(self) -> None:
        """End it."""
        if self._timer is not None:
            self._timer.cancel()

    def _begin(self) -> None:
        self._keep_script()
        self._settled()

    def _keep_script(self) -> None:
        path = str(installed.script(self._home))
        self._reach.do(path, partial(keep_script, self._home), partial(self._note, SCRIPT))

    def _settled(self) -> None:
        self._timer = None
        self.look()

    def _listed(self, places: installed.Places) -> None:
        self._places = places
        for known in (self._missing, self._looks):
            for path in known.keys() - places.keys():
                del known[path]
        self._attend()
        for path, place in places.items():
            work = partial(look_at, self._home, self._environ, path, place, self._looks.get(path))
            self._reach.do(path, work, partial(self._looked, path))
        self._update(self.notes, self.vanished if self._missing else "")

    def _attend(self) -> None:
        paths = {str(installed.record(self._home)), *self._places}
        paths |= {look.real for look in self._looks.values()}
        for path in self._watched - paths:
            self._watch.remove(path)
        for path in paths - self._watched:
            self._watch.add(path)
        self._watched = paths

    def _looked(self, path: str, look: Look) -> None:
        place = self._places.get(path)
        if place is None:
            return
        before, self._looks[path] = self.notes, look
        self._attend()
        if look.gone is None:
            return  # being written, or broken: that says nothing of the hooks
        if look.gone:
            every = len(look.gone) == len(place.events)
            what = "hooks" if every else f"{len(look.gone)} hooks"
            where = words.tilde(path, self._environ.get("HOME", ""))
            self._missing[path] = words.plain(f"{what} gone from {where}")
        else:
            self._missing.pop(path, None)
        self._update(before, self.vanished if self._missing else "")
        if place.told != bool(look.gone) and (self._tells or place.told):
            record, gone = str(installed.record(self._home)), bool(look.gone)
            work = partial(tell, self._home, path, gone)
            self._reach.do(record, work, partial(self._told, path, gone), key=f"told of {path}")

    def _told(self, path: str, gone: bool, told: bool | str) -> None:
        """Remembered whether somebody was told; False if another has been faster."""
        before = self.notes
        self._note(path, told if isinstance(told, str) else "")
        if told is True and path in self._places:
            self._places[path].told = gone
        is_news = told is True and gone and path in self._missing
        self._update(before, self._missing[path] if is_news else self.vanished)

    def _note(self, what: str, why: str) -> None:
        before = self.notes
        self._notes.pop(what, None)
        if why:
            self._notes[what] = why
            self._timer = self._timer or self._loop.call_later(AGAIN, self._settled)
        self._update(before, self.vanished)

    def _update(self, before: Mapping[str, str], vanished: str) -> None:
        if (before, self.vanished) != (self.notes, vanished):
            self.vanished = vanished
            self._changed()


class Look(NamedTuple):
    """What was seen of a settings file."""

    stamp: tuple[int, int, int] | None
    events: list[str]  # that ought to be in it
    real: str  # where it leads
    gone: list[str] | None  # of those, what is not there; None if that cannot be said


def look_at(
    home: Path, environ: Mapping[str, str], path: str, place: installed.Place, before: Look | None
) -> Look:
    """Look whether our hooks are in a settings file, if it is not as it was before."""
    from .settings import Settings

    stamp, real = None, path
    with contextlib.suppress(OSError):
        real = os.path.realpath(path)
        status = os.stat(path)  # noqa: PTH116 - a string, from a record
        stamp = status.st_ino, status.st_mtime_ns, status.st_size
    if before is not None and before[:3] == (stamp, place.events, real):
        return before
    state = Settings(home, environ).check(Path(path))
    gone = [event for event in place.events if event not in state.events]
    return Look(stamp, place.events, real, None if state.problem else gone)


def keep_script(home: Path) -> str:
    """Have the script that the hooks run there; why not, if that cannot be done."""
    try:
        installed.keep_script(home)
    except OSError as e:
        return f"the script of the hooks cannot be kept in {home}: {e.strerror}"
    return ""


def tell(home: Path, path: str, told: bool) -> bool | str:
    """Record whether somebody was told; False if that was recorded already, or why not."""
    try:
        with installed.changing(home) as places:
            if path not in places or places[path].told == told:
                return False
            places[path].told = told
            return True
    except OSError as e:
        return f"{installed.record(home)} cannot be written: {e.strerror}"
