"""Sees that the hooks are still in the settings files that they were put into.

Other programs write these files too, and some write back what they read long ago.  Who took the
hooks out with bellboard is not reminded of them: then no file says that they ought to be there.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Final

from ..core import words
from ..witnesses.watch import Watch
from . import installed

SETTLE: Final = 1.0  # after a change: many a program writes twice, or empties a file first

Look = tuple[int, int, int] | None


class Guard:
    """Looks, in the loop that runs, and calls `changed` when it has found something else.

    One that `tells` claims to be the one in the world that tells somebody that hooks are gone.
    """

    def __init__(
        self,
        home: Path,
        environ: Mapping[str, str],
        watch: Watch,
        changed: Callable[[], None],
        tells: bool,
    ) -> None:
        self.vanished = ""  # what this one has to tell
        self._home, self._environ, self._watch = home, environ, watch
        self._changed, self._tells = changed, tells
        self._loop = asyncio.get_running_loop()
        self._missing: dict[str, str] = {}  # settings file → what is wrong with it
        self._looks: dict[str, tuple[Look, list[str]]] = {}  # file → how it was, and ought to be
        self._watched: set[str] = set()
        self._note = ""
        self._timer: asyncio.TimerHandle | None = self._loop.call_later(SETTLE, self._begin)

    @property
    def notes(self) -> dict[str, str]:
        """For health: what is not as it should be."""
        told = [*self._missing.values()]
        if told:
            told.append("another program wrote it: `bellboard hooks install` puts them back")
        if self._note:
            told.append(self._note)
        return {"hooks": "; ".join(told)} if told else {}

    def changed(self, paths: Collection[str]) -> None:
        """A watch named these paths; those that are not ours are ignored."""
        if self._timer is None and not self._watched.isdisjoint(paths):
            self._timer = self._loop.call_later(SETTLE, self._settled)

    def look(self) -> None:
        """Look at what has changed since the last time; cheap if nothing has."""
        if self._timer is not None:
            return  # that comes soon
        before = self.notes, self.vanished
        places = installed.places(self._home)
        self._attend({str(installed.record(self._home)), *places, *map(os.path.realpath, places)})
        for path in self._missing.keys() - places.keys():
            del self._missing[path]
        for path, place in places.items():
            look = _look(path), place.events
            if self._looks.get(path) != look:
                self._looks[path] = look
                self._compare(path, place)
        self.vanished = self.vanished if self._missing else ""
        if (self.notes, self.vanished) != before:
            self._changed()

    def close(self) -> None:
        """End it."""
        if self._timer is not None:
            self._timer.cancel()

    def _begin(self) -> None:
        try:
            installed.keep_script(self._home)
        except OSError as e:
            self._note = f"the script of the hooks cannot be kept in {self._home}: {e.strerror}"
        self._settled()

    def _settled(self) -> None:
        self._timer = None
        self.look()

    def _attend(self, paths: set[str]) -> None:
        for path in self._watched - paths:
            self._watch.remove(path)
            self._looks.pop(path, None)
        for path in paths - self._watched:
            self._watch.add(path)
        self._watched = paths

    def _compare(self, path: str, place: installed.Place) -> None:
        from .settings import Settings

        state = Settings(self._home, self._environ).check(Path(path))
        if state.problem:
            return  # being written, or broken: that says nothing of the hooks
        gone = [event for event in place.events if event not in state.events]
        if not gone:
            self._missing.pop(path, None)
            if place.told:
                self._tell(path, False)
            return
        what = "hooks" if len(gone) == len(place.events) else f"{len(gone)} hooks"
        where = words.tilde(path, self._environ.get("HOME", ""))
        self._missing[path] = words.plain(f"{what} gone from {where}")
        if self._tells and not place.told and self._tell(path, True):
            self.vanished = self._missing[path]

    def _tell(self, path: str, told: bool) -> bool:
        """Remember whether somebody was told; False if another has been faster."""
        with contextlib.suppress(OSError), installed.changing(self._home) as places:
            if path in places and places[path].told != told:
                places[path].told = told
                return True
        return False


def _look(path: str) -> Look:
    with contextlib.suppress(OSError):
        status = os.stat(path)  # noqa: PTH116 - a string, from a record
        return status.st_ino, status.st_mtime_ns, status.st_size
    return None
