"""The whole terminal: an alternate screen without echo, restored however the program ends.

Only SIGKILL prevents that.  A stopped program also restores it until it continues.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import signal
import sys
import termios
import threading
import tty
from collections.abc import Callable, Sequence
from typing import Any, Final

from ..core.program_status import sequence
from ..system.ending import suspending
from .styled import StyledText
from .terminal import console

#: Escape sequences of keys, and control characters with the same meaning; "reads" is the reply of a
#: terminal to `ask`.
KEYS: Final = {
    "\x1b[A": "up", "\x1bOA": "up", "\x10": "up", "\x1b[Z": "up",
    "\x1b[B": "down", "\x1bOB": "down", "\x0e": "down", "\t": "tab",
    "\x1b[5~": "page up", "\x02": "page up", "\x1b[6~": "page down", "\x06": "page down",
    "\x1b[H": "first", "\x1b[1~": "first", "\x1bOH": "first",
    "\x1b[F": "last", "\x1b[4~": "last", "\x1bOF": "last",
    "\r": "take", "\n": "take",
    "\x1b": "leave", "\x03": "leave", "\x04": "leave", "\x07": "leave",
    "\x1b]7501;?\x1b\\": "reads", "\x1b]7501;?\x07": "reads",
    "\x7f": "rub", "\x08": "rub", "\x15": "clear", "\x17": "clear", "\x0b": "up",
}  # fmt: skip
PASTED: Final = "\x1b[200~"  # start of a pasted text, in which keys have no meaning
_ENDS: Final = "\x1b[201~"
#: A key whose rest is still to come, or the start of such a reply.
_BEGUN: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|\](?:7(?:5(?:0(?:1(?:;(?:\?\x1b?)?)?)?)?)?)?)\Z")
_KEY: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\]7501;\?(?:\x1b\\|\x07)|\x1bO.|\x1b[a-z]|\x1b|.", re.S
)
_ENTER: Final = b"\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?2004h"
_LEAVE: Final = b"\x1b[?2004l\x1b[?7h\x1b[?25h\x1b[?1049l"
_CLEAR: Final = sequence("state=clear").encode()
_PATIENCE: Final = 0.2  # seconds to let a write finish before the terminal is restored


class FullScreen:
    """Paints pictures, one line of text for each row; `resized` is called when it must paint again.

    Use it in the main thread; `paint` may be called in another one.
    """

    def __init__(self, resized: Callable[[], None], raw: bool = False) -> None:
        self._resized = resized
        self._raw = raw  # Ctrl-C and Ctrl-Z are keys like others
        self._console = console()
        self._lock = threading.RLock()  # signals come while the same thread paints
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._rest = ""  # unfinished paste or key at the end of the input
        self.keys = sys.stdin.fileno() if sys.stdin.isatty() else -1  # descriptor; -1: none
        self._before: list[Any] = []
        self._is_open = False
        self.opened = 0  # how often: each time, the terminal has no reports of ours
        self._asks = False  # whether the terminal has not replied, if it ever does
        self._has_reported = False
        self._left = contextlib.ExitStack()

    def __enter__(self) -> FullScreen:
        before = signal.signal(signal.SIGWINCH, lambda *_: self._resized())
        self._left.callback(signal.signal, signal.SIGWINCH, before)
        self._left.enter_context(suspending(self.close, self._continue))
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._left.close()

    def size(self) -> tuple[int, int]:
        """Return the terminal's columns and lines; the environment may have outdated ones."""
        try:
            columns, lines = os.get_terminal_size(sys.stdout.fileno())
        except OSError:
            columns = lines = 0
        return columns or 80, lines or 24

    def paint(self, lines: Sequence[StyledText]) -> None:
        """Replace the picture, while the terminal is ours."""
        height = self.size()[1]
        drawn = map(self._console.drawn, lines[:height])
        # Each row is cleared before it is written: clearing afterwards would take its last cell.
        rows = [f"\x1b[K{row}" for row in drawn]
        rest = "\r\n\x1b[J" if len(rows) < height else ""
        with self._lock:
            if self._is_open:
                self._write(("\x1b[H" + "\r\n".join(rows) + rest).encode("utf-8", "replace"))

    def ask(self) -> None:
        """Ask whether the terminal reads reports; `named` returns its reply."""
        with self._lock:
            if self._is_open and self.keys >= 0:
                self._asks = True
                self._write(sequence("?").encode())

    def report(self, text: str) -> None:
        """Write reports, which end with this screen."""
        with self._lock:
            if self._is_open:
                self._has_reported = True
                self._write(text.encode())

    def named(self, data: bytes) -> list[str]:
        """Decode keys: names in KEYS, characters, `M-a` for Alt, or all of a paste after PASTED."""
        keys: list[str] = []
        text, self._rest = self._rest + self._decode(data), ""
        while PASTED in text:
            before, _, after = text.partition(PASTED)
            inside, ends, text = after.partition(_ENDS)
            keys += _named(before)
            if not ends:
                self._rest = PASTED + after
                return keys
            keys.append(PASTED + re.sub("\r\n?", "\n", inside))
        if begun := _BEGUN.search(text):
            self._rest, text = begun[0], text[: begun.start()]
        keys += _named(text)
        self._asks = self._asks and "reads" not in keys
        return keys

    def close(self) -> None:
        """Restore the terminal."""
        owned = self._lock.acquire(timeout=_PATIENCE)  # the current write may never end
        try:
            if self._is_open:
                self._is_open = False
                cleared, self._has_reported = self._has_reported, False
                with contextlib.suppress(OSError):  # the terminal is gone
                    self._write(_CLEAR + _LEAVE if cleared else _LEAVE)
                if self._before:
                    # The shell must not get the reply.
                    how = termios.TCSAFLUSH if self._asks else termios.TCSADRAIN
                    with contextlib.suppress(termios.error):
                        termios.tcsetattr(self.keys, how, self._before)
        finally:
            if owned:
                self._lock.release()

    def _open(self) -> None:
        with self._lock:
            if not self._is_open:
                if self.keys >= 0:
                    with contextlib.suppress(termios.error):
                        self._before = self._before or termios.tcgetattr(self.keys)
                        (tty.setraw if self._raw else set_quiet)(self.keys)
                self._is_open = True
                self.opened += 1
                self._write(_ENTER)

    def _continue(self) -> None:
        # After SIGSTOP, which cannot be caught, the shell has used the terminal.
        self._is_open = False
        self._open()
        self._resized()

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(sys.stdout.fileno(), data) :]


def pasted(key: str) -> str:
    """Return the text of a paste, or "" for another key."""
    return key.removeprefix(PASTED) if key.startswith(PASTED) else ""


def _named(text: str) -> list[str]:
    return [KEYS.get(key) or _other(key) for key in _KEY.findall(text)]


def _other(key: str) -> str:
    """Return a character, `M-a` for one with Alt, or "" for a key without a name."""
    is_alt = len(key) == 2 and key.startswith("\x1b")
    return f"M-{key[1]}" if is_alt else key if len(key) == 1 else ""


def set_quiet(keys: int) -> None:
    """Read each key at once, without echo; Ctrl-C, Ctrl-Z and the like still send their signals."""
    mode = termios.tcgetattr(keys)
    mode[0] &= ~termios.IXON  # Ctrl-S would stop the output, and so the program
    mode[3] &= ~(termios.ECHO | termios.ICANON)
    mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
    termios.tcsetattr(keys, termios.TCSADRAIN, mode)
