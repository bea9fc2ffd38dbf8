"""The shell command of a hook: write it, and recognise it.

This file does no I/O.  A command is recognised by the script that it runs, never by other text:
somebody else's hook may mention bellboard too.
"""

from __future__ import annotations

import re
from typing import Final

_WORD: Final = re.compile(r"""(?:'[^']*'|"(?:[^"\\]|\\.)*"|\\.|[^\s;'"\\])+|;""", re.S)
_PIECE: Final = re.compile(r"""'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)|([^'"\\]+)""", re.S)
_HOME: Final = re.compile(r"\$(?:HOME|\{HOME\})(?![A-Za-z0-9_])|\\([$`\"\\])")
_EVENT: Final = re.compile(r"[A-Za-z]{1,40}")


def hook_line(script: str, event: str, user_home: str, agent: str = "") -> str:
    """Return the command for an event: silent, with exit code 0 even if the script is gone.

    It runs the script only if the user owns it, so that nobody can put another in its place.

    The script is sourced by the shell that the CLI starts: the parent of that shell is the CLI,
    and it saves a fork.  A path below the user's home is written with $HOME.
    """
    path, said = _quoted(script, user_home), f'{event} "$PPID"' + (f" {agent}" if agent else "")
    return f"[ -r {path} ] && [ -O {path} ] && {{ set -- {said}; . {path}; }}; exit 0"


def script_of(command: str, user_home: str) -> str | None:
    """Return the script that a command of ours runs, or None if the command is not ours."""
    words = [_plain(word, user_home) for word in _WORD.findall(command)]
    if words[:2] == ["[", "-r"] and len(words) > 7:
        path = words[2]
        ours = ["[", "-O", path, "]", "&&"]  # older versions wrote no such test
        rest = words[10:] if words[5:10] == ours else words[5:]
        event, agent = (rest[3], rest[5:-8]) if len(rest) > 3 else ("", [])
        run = ["{", "set", "--", event, "$PPID", *agent, ";", ".", path, ";", "}", ";", "exit", "0"]
        if len(agent) > 1 or not all(map(_EVENT.fullmatch, agent)):
            return None
        if words[3:5] != ["]", "&&"] or rest != run:
            return None
    elif len(words) == 3 and words[2] == "$PPID":
        path, event = words[:2]
    else:
        return None
    return path if path.startswith("/") and _EVENT.fullmatch(event) else None


def _quoted(path: str, user_home: str) -> str:
    base = user_home.rstrip("/") + "/"
    if base != "/" and path.startswith(base):
        rest = re.sub(r'([$`"\\])', r"\\\1", path[len(base) :])
        return f'"$HOME/{rest}"'
    return "'" + path.replace("'", "'\\''") + "'"


def _plain(word: str, user_home: str) -> str:
    """Unquote a shell word, as far as paths need it."""
    text = ""
    for single, double, escaped, bare in _PIECE.findall(word):
        text += single + escaped
        for piece in (double, bare):
            text += _HOME.sub(lambda found: found.group(1) or user_home, piece)
    return text
