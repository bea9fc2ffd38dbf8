"""Run something full screen that is operated with keys, such as in a tmux popup."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from ..core import text, words
from ..core.published import Published
from . import line
from .full import FullScreen, pasted
from .styled import StyledText

ESCAPE: Final = 0.05  # seconds to wait for the rest of a key that starts with Esc


class Operated(Protocol):
    """A screen that is shown and takes keys."""

    @property
    def over(self) -> bool: ...

    def press(self, key: str, now: float) -> None:
        """Apply a key: a name in `full.KEYS`, a character, or what was pasted."""
        ...

    def lines(self, now: float, columns: int, height: int) -> Sequence[StyledText]: ...


def operate(shown: Operated, every: float | None = None) -> None:
    """Show a screen and apply keys until it is over; refresh it every `every` seconds."""
    resized, wake = os.pipe()
    os.set_blocking(wake, False)

    def renew() -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(wake, b".")

    def end(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    before = {n: signal.signal(n, end) for n in (signal.SIGTERM, signal.SIGHUP)}
    try:
        with FullScreen(renew, raw=True) as screen:
            _run(shown, screen, resized, every)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(resized)
        os.close(wake)


def _run(shown: Operated, screen: FullScreen, resized: int, every: float | None) -> None:
    keys = screen.keys
    while True:
        screen.paint(shown.lines(time.time(), *screen.size()))
        if shown.over:
            return
        ready = select.select([keys, resized], [], [], every)[0]
        if resized in ready:
            os.read(resized, 512)
        if keys not in ready:
            continue
        data = os.read(keys, 4096)
        if data.endswith(b"\x1b") and select.select([keys], [], [], ESCAPE)[0]:
            data += os.read(keys, 4096)
        if not data:  # the terminal is gone
            return
        for key in screen.named(data):
            shown.press(key, time.time())
            if shown.over:
                return


# Pick a session from a list in a terminal, such as a tmux popup.
#
# Type to filter, move with Up and Down, choose with Enter, cancel with Esc. `Choice` holds the
# state and applies keys.


HINT: Final = "type to filter, Enter to jump, Esc to cancel"
ANSWERS: Final = "Enter to jump, M-a to answer, Esc to cancel"  # where that can be done as well


class Selection:
    """The typed filter, the sessions that match it, and the selected one."""

    def __init__(
        self,
        sessions: Sequence[Published],
        icons: Mapping[str, str] = words.ICONS,
        typed: str = "",
        can_answer: bool = False,
    ) -> None:
        self._icons, self._can_answer = icons, can_answer
        self.answers = False  # whether the one taken is to be answered, or its reply read
        self.typed = typed
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
        elif key == "take" or (key in ("M-a", "M-r") and self._can_answer):
            self.taken, self.answers = found[self._at] if found else None, key != "take"
            self.over = bool(found)
        elif key in ("up", "down", "tab"):
            step = -1 if key == "up" else 1
            self._at = (self._at + step) % len(found) if found else 0
        elif key in ("first", "last", "page up", "page down"):
            self._at = len(found) - 1 if key in ("last", "page down") and found else 0
        elif key in ("rub", "clear"):
            self.typed = self.typed[:-1] if key == "rub" else ""
            self._at = 0
        elif text := pasted(key) or (key if len(key) == 1 and key.isprintable() else ""):
            self.typed += text
            self._at = 0

    def lines(self, now: float, columns: int, height: int) -> list[StyledText]:
        """Return the prompt, the sessions and a hint, limited to the height."""
        found = self.matching
        head = StyledText(" > ", "bold").append(words.plain(self.typed), "")
        head.append(f"  {len(found)}/{len(self._all)}", "dim")
        room = max(1, height - 2)
        begin = max(0, min(self._at - room // 2, len(found) - room))
        rows = line.lines(found, now, columns, self._icons)[begin : begin + room]
        for n, row in enumerate(rows):
            row.truncate(columns, pad=True)
            if begin + n == self._at:
                rows[n] = StyledText(
                    f">{row.plain[1:]}", "reverse bold"
                )  # ">": visible without colors
        if not found:
            rows = [StyledText(" No session matches." if self._all else " No sessions yet.", "dim")]
        hint = ANSWERS if self._can_answer else HINT
        return [head, *rows, StyledText(text.cut(f" {hint}", columns), "dim")][:height]


def choose(
    sessions: Sequence[Published], icons: Mapping[str, str], typed: str = ""
) -> Published | None:
    """Let the user choose a session; return None if they cancel. A filter may be typed already."""
    choice = Selection(sessions, icons, typed)
    operate(choice)
    return choice.taken


def _text(p: Published) -> str:
    """Return the text that a filter searches: what `lua/bellboard/filter.lua` searches, too."""
    parts = (words.repository(p), words.project(p), words.branch(p), words.title(p))
    named = ("status", "kind", "label", "agent", "model", "machine", "session_id", "cwd")
    shown = (words.plain(p.get(name)) for name in named)
    return " ".join([*parts, *words.doing(p), *shown, *map(words.plain, p["markers"])]).lower()
