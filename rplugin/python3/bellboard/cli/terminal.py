"""What the terminal of a command can do: take an answer to a question, show a whole screen."""

from __future__ import annotations

import os
import sys


def has_terminal() -> bool:
    """Return whether somebody sees what a command prints, and can type."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def paints() -> bool:
    """Return whether what a command prints goes to a terminal whose cursor can be moved."""
    from ..screen.terminal import COLOURLESS

    term = os.environ.get("TERM", "").lower()
    return sys.stdout.isatty() and term not in ("", *COLOURLESS)


def agrees(question: str) -> bool:
    """Ask a question; anything but yes means no, also if nothing is typed before CTRL-D."""
    sys.stdout.flush()
    try:
        typed = input(f"{question} [y/N] ")
    except (EOFError, UnicodeDecodeError):
        print()
        return False
    return typed.strip().lower() in ("y", "yes")
