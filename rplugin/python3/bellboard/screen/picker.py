"""Pick a session from a list in a terminal, such as a tmux popup.

Type to filter, move with Up and Down, choose with Enter, cancel with Esc.  `Choice` holds the state
and applies keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ..core import cells, words
from ..core.published import Published
from . import terminal
from .full import pasted
from .operating import operate
from .styled import Text

HINT: Final = "type to filter, Enter to jump, Esc to cancel"


class Choice:
    """The typed filter, the sessions that match it, and the selected one."""

    def __init__(
        self, sessions: Sequence[Published], icons: Mapping[str, str] = words.ICONS
    ) -> None:
        self._icons = icons
        self.typed = ""
        self.over = False
        self.taken: Published | None = None
        self._all = list(sessions)
        self._at = 0

    @property
    def matching(self) -> list[Published]:
        """Return the sessions that contain every typed word, in the original order."""
        wanted = self.typed.lower().split()
        return [p for p in self._all if all(w in _text(p) for w in wanted)]

    def press(self, key: str, now: float = 0.0) -> None:
        """Apply a key: a name in `full.KEYS`, a character, or what was pasted."""
        found = self.matching
        if key == "leave":
            self.over = True
        elif key == "take":
            self.taken = found[self._at] if found else None
            self.over = bool(found)
        elif key in ("up", "down"):
            step = 1 if key == "down" else -1
            self._at = (self._at + step) % len(found) if found else 0
        elif key in ("first", "last", "page up", "page down"):
            self._at = len(found) - 1 if key in ("last", "page down") and found else 0
        elif key in ("rub", "clear"):
            self.typed = self.typed[:-1] if key == "rub" else ""
            self._at = 0
        elif text := pasted(key) or (key if key.isprintable() else ""):
            self.typed += text
            self._at = 0

    def lines(self, now: float, columns: int, height: int) -> list[Text]:
        """Return the prompt, the sessions and a hint, limited to the height."""
        found = self.matching
        head = Text(" > ", "bold").append(words.plain(self.typed), "")
        head.append(f"  {len(found)}/{len(self._all)}", "dim")
        room = max(1, height - 2)
        begin = max(0, min(self._at - room // 2, len(found) - room))
        shown = found[begin : begin + room]
        rows = terminal.rows(shown, now, columns, self._icons)
        for n, row in enumerate(rows):
            row.truncate(columns, pad=True)
            if begin + n == self._at:
                rows[n] = Text(f">{row.plain[1:]}", "reverse bold")  # ">": visible without colours
        if not found:
            rows = [Text(" No session matches." if self._all else " No sessions yet.", "dim")]
        return [head, *rows, Text(cells.cut(f" {HINT}", columns), "dim")][:height]


def choose(sessions: Sequence[Published], icons: Mapping[str, str]) -> Published | None:
    """Let the user choose a session; return None if they cancel."""
    choice = Choice(sessions, icons)
    operate(choice)
    return choice.taken


def _text(p: Published) -> str:
    """Return the text that a filter searches."""
    parts = (words.repository(p), words.branch(p), words.title(p), *words.doing(p), p["status"])
    return " ".join([*parts, words.plain(p.get("label")), words.plain(p.get("cwd"))]).lower()
