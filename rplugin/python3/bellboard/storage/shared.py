"""What hosts share in board.db besides sessions: claims, open editors, and options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from ..core.records import HIGHEST
from .history import History
from .rows import Cells, blob, moderate, number, text, time

#: The types of the shared options.
OPTIONS: Final[dict[str, Any]] = {
    "config": dict[str, Any],
    "watched_since": float,
    "mode": str,
    "bars": list[str],
    "database": str,
    "followers": dict[str, str],
    "looked": dict[str, Any],
    "space": str,
}

ICONS: Final = "icons"  # the option with the icons that were set last
LOOKED: Final = "looked"  # the option with the result of the last look: `hosting/look.py`
SPACE: Final = "space"  # the option with the pid namespace in which processes are looked up
DATABASE: Final = "database"  # the option with the id of this database: another one has another

_encode = msgspec.msgpack.Encoder().encode


class Editor(NamedTuple):
    """An open Neovim, by the process of its host."""

    pid: int
    server: str  # its address
    tmux: str  # socket of the tmux server that it runs in
    pane: str
    focused: float  # when it last got the focus; 0: it has no screen


class Option(NamedTuple):
    """A shared option."""

    value: Any
    t: float  # when it was set


Claim = tuple[int, str]  # a transition and an effect


class Shared(History):
    """What any host may write, and all may read."""

    # ------------------------------------------------------------ claims

    def claim(self, wanted: Sequence[Claim], pid: int, now: float) -> list[Claim]:
        """Claim effects; return those that this host got.  Each is granted once per machine."""
        with self.lock():
            return [each for each in wanted if self._insert(each, pid, now)]

    def grant(self, claim: Claim, to: str, pid: int, now: float) -> bool:
        """Claim an effect for somebody; return whether it is theirs, also if they ask again."""
        transition, effect = claim
        own = transition, f"granted to {to}: {effect}"
        with self.lock():
            if self._insert(claim, pid, now):
                return not to or self._insert(own, pid, now)
            where = "transition_id = ? AND effect = ?"
            return bool(self.all(f"SELECT 1 FROM claims WHERE {where}", *own))

    def _insert(self, claim: Claim, pid: int, now: float) -> bool:
        query = "INSERT OR IGNORE INTO claims VALUES (?, ?, ?, ?)"
        return self.db.execute(query, (*claim, pid, now)).rowcount == 1

    # ------------------------------------------------------------ editors

    def editors(self) -> list[Editor]:
        """Return the editors that are open, or were when their host died."""
        rows = self.all("SELECT pid, server, tmux, pane, focused FROM editors ORDER BY pid")
        return self.sound("editors", rows, _editor)

    def set_editor(self, editor: Editor) -> None:
        """Record an editor; call this within the lock."""
        self.db.execute("INSERT OR REPLACE INTO editors VALUES (?, ?, ?, ?, ?)", editor)

    def drop_editor(self, pid: int) -> None:
        """Remove an editor; call this within the lock."""
        self.db.execute("DELETE FROM editors WHERE pid = ?", (pid,))

    # ------------------------------------------------------------ options

    def option(self, key: str) -> Any:
        """Return a shared option, or None."""
        rows = self.all(f"SELECT key, {moderate('value')} FROM options WHERE key = ?", key)
        found = self.sound("options", rows, _option)
        return found[0] if found else None

    def options(self) -> dict[str, Option]:
        """Return all shared options."""
        rows = self.all(f"SELECT key, {moderate('value')}, t FROM options")
        return dict(self.sound("options", rows, lambda r: (text(r[0]), _dated(r))))

    def set_option(self, key: str, value: object, pid: int, now: float) -> None:
        """Set a shared option, within the lock; `pid` is the process that sets it."""
        self.is_changed = True  # for those who cache options
        self.db.execute(
            "INSERT OR REPLACE INTO options VALUES (?, ?, ?, ?)", (key, _encode(value), pid, now)
        )


def _editor(r: Cells) -> Editor:
    if not 0 < number(r[0]) < HIGHEST:
        raise ValueError("invalid process id")
    return Editor(r[0], text(r[1]), text(r[2]), text(r[3]), time(r[4]))


def _option(r: Cells) -> Any:
    value = msgspec.msgpack.decode(blob(r[1]), type=OPTIONS.get(r[0], Any))
    return time(value) if isinstance(value, float) else value


def _dated(r: Cells) -> Option:
    return Option(_option(r), time(r[2]))
