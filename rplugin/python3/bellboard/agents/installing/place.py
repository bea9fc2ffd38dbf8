"""Where a CLI looks for hooks: one entry per CLI, which its installer works from."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

Environ = Mapping[str, str]

#: What shows of a CLI that lists its open sessions and logs them, if it runs no hooks.
NOT_SHOWN: Final = "its sessions do not show"
SHOWN_IN_PART: Final = "its sessions show, but not always what they do"


class Looked(NamedTuple):
    """The file for all sessions, with hooks of ours in it."""

    path: Path
    text: str  # without comments
    ours: Callable[[str], bool]  # whether a command is ours


def nothing(looked: Looked) -> Iterable[str]:
    """Return no obstacle, and no remark."""
    return ()


class HooksFile(NamedTuple):
    """The file for all sessions of a user."""

    folder: Callable[[Environ], Path]  # where the CLI keeps its settings; if relative, unknown
    name: str  # of the file, in that folder
    own: bool = False  # a file of our own; otherwise everybody's hooks are in it
    mark: str = ""  # how a file of our own begins, if it is a program
    comments: bool = False  # whether the CLI allows them in it
    note: str = ""  # what the user has to know or do once the hooks are there
    obstacles: Callable[[Looked], Iterable[str]] = nothing  # what keeps them from running
    remarks: Callable[[Looked], Iterable[str]] = nothing  # what else is wrong with them

    def path(self, environ: Environ) -> Path:
        return self.folder(environ) / self.name


class Hooked(ABC):
    """A CLI, as its installer knows it."""

    key: str  # its name in evidence
    name: str  # its name for people
    program: ClassVar[str] = ""  # on PATH; chats in Neovim have none
    hooks: ClassVar[HooksFile | None] = None  # where it looks for them, if they can be installed
    without_hooks: ClassVar[str] = NOT_SHOWN  # what happens then

    def reporting(self, line: Callable[[str], str]) -> str:
        """Return the file that lets the CLI report; `line` gives the shell command of an event."""
        return ""

    def is_used(self, environ: Environ) -> bool:
        """Return whether it is on this machine."""
        import shutil

        if shutil.which(self.program, path=environ.get("PATH", "")) is not None:
            return True
        folder = self.hooks.folder(environ) if self.hooks else Path()
        return folder.is_absolute() and folder.is_dir()


def below_home(name: str, variable: str = "") -> Callable[[Environ], Path]:
    """Return where a folder of the user's home is, if the environment names no other."""

    def folder(environ: Environ) -> Path:
        given = environ.get(variable, "")
        return Path(given) if given else Path(environ.get("HOME", "")) / name

    return folder
