"""Pick a session from a list in a terminal, such as a tmux popup.

Type to filter, move with Up and Down, choose with Enter, cancel with Esc.  `Choice` holds the state
and applies keys; `choose` handles the terminal.
"""

from __future__ import annotations

import codecs
import os
import re
import select
import shutil
import signal
import sys
import termios
import time
import tty
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from rich.text import Text

from ..core import words
from ..core.published import Published
from . import terminal

KEYS: Final = {
    "\x1b[A": "up", "\x1bOA": "up", "\x10": "up", "\x0b": "up", "\x1b[Z": "up",
    "\x1b[B": "down", "\x1bOB": "down", "\x0e": "down", "\t": "down",
    "\x1b[H": "first", "\x1b[1~": "first", "\x1b[F": "last", "\x1b[4~": "last",
    "\r": "take", "\n": "take",
    "\x1b": "leave", "\x03": "leave", "\x04": "leave", "\x07": "leave",
    "\x7f": "rub", "\x08": "rub", "\x15": "clear", "\x17": "clear",
}  # fmt: skip
ESCAPE: Final = 0.05  # seconds to wait for the rest of a key that starts with Esc
HINT: Final = "type to filter, Enter to jump, Esc to cancel"
_KEY: Final = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1bO.|\x1b|.", re.S)


class Choice:
    """The typed filter, the sessions that match it, and the selected one."""

    def __init__(self, sessions: Sequence[Published]) -> None:
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

    def press(self, key: str) -> None:
        """Apply a key: a name in KEYS, or a character."""
        found = self.matching
        if key == "leave":
            self.over = True
        elif key == "take":
            self.taken = found[self._at] if found else None
            self.over = bool(found)
        elif key in ("up", "down"):
            step = 1 if key == "down" else -1
            self._at = (self._at + step) % len(found) if found else 0
        elif key in ("first", "last"):
            self._at = len(found) - 1 if key == "last" and found else 0
        elif key in ("rub", "clear"):
            self.typed = self.typed[:-1] if key == "rub" else ""
            self._at = 0
        elif key.isprintable():
            self.typed += key
            self._at = 0

    def lines(self, now: float, columns: int, height: int) -> list[Text]:
        """Return the prompt, the sessions and a hint, limited to the height."""
        found = self.matching
        head = Text(" > ", "bold").append(words.plain(self.typed), "")
        head.append(f"  {len(found)}/{len(self._all)}", "dim")
        room = max(1, height - 2)
        begin = max(0, min(self._at - room // 2, len(found) - room))
        shown = found[begin : begin + room]
        rows = terminal.rows(shown, now, columns)
        for n, row in enumerate(rows):
            row.truncate(columns, pad=True)
            if begin + n == self._at:
                row.stylize("reverse")
        if not found:
            rows = [Text(" No session matches." if self._all else " No sessions yet.", "dim")]
        return [head, *rows, Text(words.cut(f" {HINT}", columns), "dim")][:height]


def choose(sessions: Sequence[Published]) -> Published | None:
    """Let the user choose a session; return None if they cancel."""
    choice = Choice(sessions)
    out = terminal.console()
    keys = sys.stdin.fileno()
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    with _raw() as resized:
        while not choice.over:
            columns, height = shutil.get_terminal_size()
            out.width = columns
            with out.capture() as drawn:
                for line in choice.lines(time.time(), columns, height):
                    out.print(line, end="\n", soft_wrap=True)
            body = drawn.get().rstrip("\n").replace("\n", "\x1b[K\r\n")
            os.write(1, f"\x1b[H{body}\x1b[J".encode("utf-8", "replace"))
            if resized in select.select([keys, resized], [], [])[0]:
                os.read(resized, 512)
                continue
            data = os.read(keys, 4096)
            if data.endswith(b"\x1b") and select.select([keys], [], [], ESCAPE)[0]:
                data += os.read(keys, 4096)
            if not data:  # the terminal is gone
                return None
            for key in _KEY.findall(decode(data)):
                choice.press(KEYS.get(key, key if len(key) == 1 else ""))
                if choice.over:
                    break
    return choice.taken


@contextmanager
def _raw() -> Iterator[int]:
    """Use the alternate screen in raw mode; yield a descriptor that is readable on a resize."""
    before = termios.tcgetattr(sys.stdin)
    read, write = os.pipe()
    os.set_blocking(write, False)
    old_wakeup = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    old = signal.signal(signal.SIGWINCH, lambda *_: None)
    os.write(1, b"\x1b[?1049h\x1b[?25l\x1b[?7l")
    tty.setraw(sys.stdin)
    try:
        yield read
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
        os.write(1, b"\x1b[?7h\x1b[?25h\x1b[?1049l")
        signal.signal(signal.SIGWINCH, old)
        signal.set_wakeup_fd(old_wakeup)
        os.close(read)
        os.close(write)


def _text(p: Published) -> str:
    """Return the text that a filter searches."""
    parts = (words.repository(p), words.branch(p), words.title(p), *words.doing(p), p["status"])
    return " ".join([*parts, words.plain(p.get("label")), words.plain(p.get("cwd"))]).lower()
