"""The shell command of a hook: how it is written, and which script a written one runs.

Rules of this file: it does no I/O.  An entry is known by the script that its command runs, never by
a part of its text: somebody else's may well speak of bells.
"""

from __future__ import annotations

import re
from typing import Final

_WORD: Final = re.compile(
    r"""(?:'[^']*'|"(?:[^"\\]|\\.)*"|\\.|[^\s;'"\\])+|;""",
    re.S,
)
_PIECE: Final = re.compile(r"""'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)|([^'"\\]+)""", re.S)
_HOME: Final = re.compile(r"\$(?:HOME|\{HOME\})(?![A-Za-z0-9_])|\\([$`\"\\])")
_EVENT: Final = re.compile(r"[A-Za-z]{1,40}")


def hook_line(script: str, event: str, home: str) -> str:
    """The command of that event: silent, and done with 0, also once the script is gone.

    A script that is not ours is never run: whoever could put another into its place.

    The script runs in the shell that the CLI starts, whose parent is the CLI; that is also the
    fastest.  Below the user's home it is written so that another home may hold it.
    """
    path = _quoted(script, home)
    return f'[ -r {path} ] && [ -O {path} ] && {{ set -- {event} "$PPID"; . {path}; }}; exit 0'


def script_of(command: str, home: str) -> str | None:
    """The script that a command in one of our forms runs; None if it is in none."""
    words = [_plain(word, home) for word in _WORD.findall(command)]
    if words[:2] == ["[", "-r"] and len(words) > 7:
        path = words[2]
        ours = ["[", "-O", path, "]", "&&"]  # not in the lines of older versions
        rest = words[10:] if words[5:10] == ours else words[5:]
        event = rest[3] if len(rest) > 3 else ""
        run = ["{", "set", "--", event, "$PPID", ";", ".", path, ";", "}", ";", "exit", "0"]
        if words[3:5] != ["]", "&&"] or rest != run:
            return None
    elif len(words) == 3 and words[2] == "$PPID":
        path, event = words[:2]
    else:
        return None
    return path if path.startswith("/") and _EVENT.fullmatch(event) else None


def _quoted(path: str, home: str) -> str:
    base = home.rstrip("/") + "/"
    if base != "/" and path.startswith(base):
        rest = re.sub(r'([$`"\\])', r"\\\1", path[len(base) :])
        return f'"$HOME/{rest}"'
    return "'" + path.replace("'", "'\\''") + "'"


def _plain(word: str, home: str) -> str:
    """A word as the shell reads it, as far as paths need."""
    text = ""
    for single, double, escaped, bare in _PIECE.findall(word):
        text += single + escaped
        for piece in (double, bare):
            text += _HOME.sub(lambda found: found.group(1) or home, piece)
    return text
