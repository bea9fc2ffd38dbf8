"""What the terminal of a command can do: take an answer to a question."""

from __future__ import annotations

import sys


def has_terminal() -> bool:
    """Return whether somebody sees what a command prints, and can type."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def agrees(question: str) -> bool:
    """Ask a question; anything but yes means no, also if nothing is typed before CTRL-D."""
    sys.stdout.flush()
    try:
        typed = input(f"{question} [y/N] ")
    except (EOFError, UnicodeDecodeError):
        print()
        return False
    return typed.strip().lower() in ("y", "yes")
