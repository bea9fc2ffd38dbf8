"""What a simulated agent asks in its terminal: drawn as Claude Code 2.1.330 draws it, same keys.

So Bellboard types an answer here as it does there. Each dialog gives its answer in the words in
which a hook would (`decision`).
"""

# ruff: noqa: T201  what it prints is what it is for
from __future__ import annotations

import os
import re
import select
import shutil
import sys
import textwrap
from typing import Any

ESCAPE, ENTER, TAB, UP, DOWN = "\x1b", "\r", "\t", "\x1b[A", "\x1b[B"
CLEAR = "\x15"  # CTRL-U
BEGIN, END = "\x1b[200~", "\x1b[201~"  # of a paste
LONG, MANY = 800, 10  # characters, lines from which on only a word of a paste is shown
_KEY = re.compile(r"\x1b\[20[01]~|\x1b[\[O][A-D]|[\x00-\U0010ffff]")


class Interrupted(Exception):
    """The turn was stopped, as by Esc, which no hook reports."""


def keys(seconds: float | None) -> list[str]:
    """Return the keys that are pressed in time."""
    ready, _, _ = select.select([sys.stdin], [], [], seconds)
    typed = os.read(sys.stdin.fileno(), 4096).decode(errors="replace") if ready else ""
    return [key.replace("\x1bO", "\x1b[").replace("\n", ENTER) for key in _KEY.findall(typed)]


def width() -> int:
    return min(shutil.get_terminal_size().columns - 2, 76)


class Drawn:
    """Rows at the end of a terminal, which are drawn over themselves."""

    _drawn = 0  # rows on the screen

    def rows(self) -> list[str]:
        raise NotImplementedError

    def draw(self) -> None:
        """Draw them as they are now."""
        rows = self.rows()
        self.erase()
        print("".join(f"{row}\r\n" for row in rows), end="", flush=True)
        self._drawn = len(rows)

    def erase(self) -> None:
        back = f"\x1b[{self._drawn}A" if self._drawn else ""
        print(f"\r{back}\x1b[J", end="", flush=True)
        self._drawn = 0


class Input(Drawn):
    """The input of an agent at rest, which takes what is typed or pasted, and Enter."""

    def __init__(self) -> None:
        self.text = ""
        self._pasted: str | None = None  # so far, while a paste arrives

    def read(self) -> str:
        """Return the text that is submitted; "" if Enter is pressed without one."""
        print("\x1b[?2004h", end="")  # a paste comes in brackets
        while True:
            self.draw()
            for key in keys(None):
                if self._takes(key):
                    self.erase()
                    print("\x1b[?2004l", end="", flush=True)
                    return self.text.strip()

    def _takes(self, key: str) -> bool:
        """Take a key; return whether it submits the text."""
        if key == BEGIN:
            self._pasted = ""
        elif key == END:
            self.text, self._pasted = self.text + (self._pasted or ""), None
        elif self._pasted is not None:
            self._pasted += "\n" if key == ENTER else key
        elif key == ENTER:
            return True
        elif key == "\x7f":
            self.text = self.text[:-1]
        elif key == CLEAR:
            self.text = ""
        else:
            self.text += key * key.isprintable()
        return False

    def rows(self) -> list[str]:
        lines = self.text.split("\n")
        if len(self.text) > LONG or len(lines) > MANY:
            lines = [f"[Pasted text #1 +{len(lines) - 1} lines]"]
        wrapped = [part for line in lines for part in textwrap.wrap(line, width() - 2) or [""]]
        hint = "Enter sends it" if self.text else "? for shortcuts · Enter: the same again"
        rule = "─" * width()
        return [rule, f"❯ {wrapped[0]}", *(f"  {row}" for row in wrapped[1:]), rule, f"  {hint}"]


class Dialog(Drawn):
    """Numbered choices. The last one takes a text, once it is opened."""

    def __init__(self, choices: list[str]) -> None:
        self.choices = choices
        self.at, self.text, self.is_open = 0, "", False

    @property
    def is_last(self) -> bool:
        return self.at == len(self.choices) - 1

    @property
    def decision(self) -> dict[str, Any]:
        """The answer; raise `Interrupted` if it stops the turn."""
        raise NotImplementedError

    def last(self) -> str:
        """Return the words of the last choice."""
        return self.choices[-1]

    def press(self, key: str) -> bool:
        """Take a key; return whether it gives the answer."""
        if key == ESCAPE:
            raise Interrupted
        if key in (UP, DOWN):
            step = 1 if key == DOWN else -1
            self.at = max(0, min(len(self.choices) - 1, self.at + step))
            self.is_open = False
        elif key == ENTER:
            return bool(self.text) or not self.is_open
        elif self.is_open:
            self.text = self.text[:-1] if key == "\x7f" else self.text + key * key.isprintable()
        elif key in "123456789"[: len(self.choices)]:
            self.at = int(key) - 1
            return True
        return False

    def options(self, indent: str) -> list[str]:
        """Return the choices with their numbers, and the arrow of the chosen one."""
        rows = []
        for n, words in enumerate([*self.choices[:-1], self.last()]):
            first, *more = textwrap.wrap(words, width() - len(indent) - 5)
            rows.append(f"{indent}{'❯' if n == self.at else ' '} {n + 1}. {first}")
            rows += [f"{indent}     {row}" for row in more]
        return rows


class Permission(Dialog):
    """May it run a command? Tab opens the text of the no, and a no without one stops the turn."""

    def __init__(self, command: str, why: str) -> None:
        super().__init__(["Yes", "No"])
        self._command, self._why = command, why

    @property
    def decision(self) -> dict[str, Any]:
        if not self.is_last:
            return {"behavior": "allow"}
        if not self.text:
            raise Interrupted
        return {"behavior": "deny", "message": self.text}

    def press(self, key: str) -> bool:
        if key == TAB:
            self.is_open = self.is_last
            return False
        return super().press(key)

    def last(self) -> str:
        if not self.is_open:
            return "No"
        return f"No, {self.text or 'and tell Claude what to do differently'}"

    def rows(self) -> list[str]:
        line = "╌" * width()
        asks = [" Bash command", f" {self._why}", line, f" {self._command}", line]
        hint = " · Tab to amend" if self.is_last and not self.is_open else ""
        below = ["", f" Esc to cancel{hint}"]
        return ["─" * width(), *asks, " Do you want to proceed?", *self.options(" "), *below]


class Choice(Dialog):
    """Which option? The last one is a text."""

    def __init__(self, question: str, header: str, *options: str) -> None:
        super().__init__([*options, "Type something."])
        self._question, self._header = question, header

    @property
    def decision(self) -> dict[str, Any]:
        chosen = self.text if self.is_last else self.choices[self.at]
        return {"behavior": "allow", "updatedInput": {"answers": {self._question: chosen}}}

    def press(self, key: str) -> bool:
        was_open, is_given = self.is_open, super().press(key)
        self.is_open = self.is_last
        return is_given and (was_open or not self.is_last)

    def last(self) -> str:
        return self.text or super().last()

    def rows(self) -> list[str]:
        rule = "─" * width()
        asks = [rule, f" ☐ {self._header}", "", self._question, ""]
        hint = "Enter to select · ↑/↓ to navigate · Esc to cancel"
        return [*asks, *self.options(""), rule, "", hint]
