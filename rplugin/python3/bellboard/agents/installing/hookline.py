"""The hooks of a CLI: the file that it reads them from, and the command of each."""

from __future__ import annotations

import re
from abc import ABC
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

Environ = Mapping[str, str]

#: Shown without hooks, of a CLI that lists its open sessions and logs them.
NOT_SHOWN: Final = "its sessions do not show"
SHOWN_IN_PART: Final = "its sessions show, but not always what they do"


class GlobalHooks(NamedTuple):
    """The file for all sessions, with our hooks in it."""

    path: Path
    text: str  # without comments
    ours: Callable[[str], bool]  # whether a command is ours


def nothing(looked: GlobalHooks) -> Iterable[str]:
    """Return no obstacle, and no remark."""
    return ()


class HooksFile(NamedTuple):
    """The file for all sessions of a user."""

    folder: Callable[[Environ], Path]  # the folder of the CLI's settings; if relative, unknown
    name: str  # the file's name in the folder
    own: bool = False  # a file of our own; otherwise everybody's hooks are in it
    mark: str = ""  # the start of a file of our own, if it is a program
    comments: bool = False  # whether the CLI allows comments in the file
    note: str = ""  # advice for the user once the hooks are there
    obstacles: Callable[[GlobalHooks], Iterable[str]] = nothing  # reasons why no hook runs
    remarks: Callable[[GlobalHooks], Iterable[str]] = nothing  # other faults of the hooks

    def path(self, environ: Environ) -> Path:
        return self.folder(environ) / self.name


class Hooked(ABC):
    """A CLI, as its installer knows it."""

    key: str  # its name in evidence
    name: str  # its name for people
    program: ClassVar[str] = ""  # on PATH; chats in Neovim have none
    hooks: ClassVar[HooksFile | None] = None  # its file of hooks, if we can install them
    place: ClassVar[str] = ""  # that file, for the user, if we can only print them
    without_hooks: ClassVar[str] = NOT_SHOWN  # how sessions are shown then

    def reporting(self, line: Callable[[str], str]) -> str:
        """Return the file that lets the CLI report; `line` gives the shell command of an event."""
        return ""

    def is_used(self, environ: Environ) -> bool:
        """Return whether the CLI is on this machine."""
        import shutil

        if shutil.which(self.program, path=environ.get("PATH", "")) is not None:
            return True
        folder = self.hooks.folder(environ) if self.hooks else Path()
        return folder.is_absolute() and folder.is_dir()


def below_home(name: str, variable: str = "") -> Callable[[Environ], Path]:
    """Return the finder of a folder in the user's home, unless the environment names another."""

    def folder(environ: Environ) -> Path:
        given = environ.get(variable, "")
        return Path(given) if given else Path(environ.get("HOME", "")) / name

    return folder


# ---------------------------------------------------------------- the command
#
# A hook is ours if it runs our script, whatever its other text: somebody else's hook may mention
# bellboard too.

_WORD: Final = re.compile(r"""(?:'[^']*'|"(?:[^"\\]|\\.)*"|\\.|[^\s;'"\\])+|;""", re.S)
_PIECE: Final = re.compile(r"""'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)|([^'"\\]+)""", re.S)
_HOME: Final = re.compile(r"\$(?:HOME|\{HOME\})(?![A-Za-z0-9_])|\\([$`\"\\])")
#: Names of events that `hooks/emit` accepts, and names of agents that we write.
_EMITTED: Final = re.compile(r"[A-Za-z0-9_]{1,60}")


def hook_line(script: str, event: str, user_home: str, agent: str = "") -> str:
    """Return the command for an event: silent, with exit code 0 even if the script is gone.

    The command runs the script only if the user owns it, so that nobody can put another there.

    The shell that the CLI starts sources the script: the parent of that shell is the CLI, and a
    fork is saved.  A path below the user's home is written with $HOME.

    Raise ValueError for a name that the script would not pass on.
    """
    takes = "hooks/emit takes letters, digits and _ only, at most 60"
    if agent and not _EMITTED.fullmatch(agent):
        raise ValueError(f'agent "{agent}": {takes}; give it another key in agents/registry.py')
    if not _EMITTED.fullmatch(event):
        other = "give the line another name, and let the payload name the event"
        raise ValueError(f'event "{event}" of {agent or "an agent"}: {takes}; {other}')
    path, said = _quoted(script, user_home), f'{event} "$PPID"' + (f" {agent}" if agent else "")
    return f"[ -r {path} ] && [ -O {path} ] && {{ set -- {said}; . {path}; }}; exit 0"


def script_of(command: str, user_home: str) -> str | None:
    """Return the script of a command, or None if the command is not ours."""
    words = [_plain(word, user_home) for word in _WORD.findall(command)]
    if words[:2] == ["[", "-r"] and len(words) > 7:
        path = words[2]
        ours = ["[", "-O", path, "]", "&&"]  # older versions wrote no test
        rest = words[10:] if words[5:10] == ours else words[5:]
        event, agent = (rest[3], rest[5:-8]) if len(rest) > 3 else ("", [])
        run = ["{", "set", "--", event, "$PPID", *agent, ";", ".", path, ";", "}", ";", "exit", "0"]
        if len(agent) > 1 or not all(map(_EMITTED.fullmatch, agent)):
            return None
        if words[3:5] != ["]", "&&"] or rest != run:
            return None
    elif len(words) == 3 and words[2] == "$PPID":
        path, event = words[:2]
    else:
        return None
    return path if path.startswith("/") and _EMITTED.fullmatch(event) else None


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
