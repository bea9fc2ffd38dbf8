"""Which repository, branch and worktree a directory belongs to, from git's own files.

git itself is never run: it would execute what a repository's configuration says.  Only a handful of
small files is read, and again only when they have changed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from ..core.detail import line
from ..core.finding import Finding
from ..system.files import read, touch
from .gitconfig import Config, Remote, config_in, remote_in

DEEPEST: Final = 64  # levels up; paths have 4096 characters
LIMIT: Final = 1 << 20  # bytes of a configuration
SHORT: Final = 8  # characters of a commit
KEPT: Final = 1000  # directories remembered

_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_AGENTS: Final = re.compile(r"/\.claude/worktrees/([^/]+)")
_Stamp = tuple[int, int, int]


class Repository(NamedTuple):
    """What is known of a directory's repository; what is not is empty."""

    name: str  # owner/name of its remote, else its folder
    root: str  # the working tree that the directory is in
    branch: str  # or the short commit, if no branch is checked out
    worktree: str  # its name, unless it is the main one
    remote: str  # its address for people: no credentials, https where it has a web page
    remotes: Mapping[str, str]
    head: str  # the file that changes with the branch


class _Place(NamedTuple):
    root: Path
    git: Path  # of this working tree: HEAD
    common: Path  # of the repository: config


class Known(NamedTuple):
    """What was found of a directory, and how its files looked then."""

    stamps: tuple[_Stamp | None, ...]
    place: _Place
    repository: Repository


class Repositories:
    """Knows the repository of each directory asked for; looks again at what has changed."""

    def __init__(self) -> None:
        self._known: dict[str, Known] = {}

    def of(self, directory: str) -> Repository | None:
        """The repository that a directory is in, if any; never raises."""
        found = self.take(directory, look_up(directory, self.known(directory)))
        return found.repository if found else None

    def known(self, directory: str) -> Known | None:
        """As of the last look."""
        return self._known.get(directory)

    def take(self, directory: str, found: Known | None) -> Known | None:
        """Remember what `look_up` found."""
        if found is None:
            self._known.pop(directory, None)
            return None
        if directory not in self._known and len(self._known) >= KEPT:
            del self._known[next(iter(self._known))]
        self._known[directory] = found
        return found

    def forget(self, directory: str) -> None:
        """Nobody works there any more."""
        self._known.pop(directory, None)


def look_up(directory: str, known: Known | None = None) -> Known | None:
    """The repository of a directory: what is known, if nothing has changed; never raises."""
    if known is not None and known.stamps == _stamps(known.place):
        return known
    place = _place_of(directory)
    if place is None:
        return None
    return Known(_stamps(place), place, _read(place, directory))


def facts_of(now: float, session_id: str, known: Known | None) -> Finding:
    """The trace line of a session that works there; all empty outside of any repository."""
    found = known.repository if known else None
    facts: dict[str, object] = {"session_id": session_id}
    facts |= {
        "repository": found.name if found else "",
        "branch": found.branch if found else "",
    }
    facts |= {"worktree": found.worktree if found else ""}
    facts |= {"remote": found.remote if found else ""}
    facts["remotes"] = [f"{n} {url}" for n, url in found.remotes.items()] if found else []
    # The branch may come back to what it was: with the same key it would be told only once.
    return Finding({"t": now, "facts": facts}, f"facts {facts} {known.stamps if known else ()}")


def _place_of(directory: str) -> _Place | None:
    """The nearest working tree above, as git finds it."""
    if not directory.startswith("/"):
        return None
    here = Path(os.path.normpath(directory))
    for root in (here, *here.parents)[:DEEPEST]:
        git = _git_of(root)
        if git is not None:
            told = _text(git / "commondir").strip()
            return _Place(root, git, Path(os.path.normpath(git / told)) if told else git)
    return None


def _git_of(root: Path) -> Path | None:
    """The git directory of a working tree whose root this is."""
    dot = root / ".git"
    try:
        touch(dot)
        if dot.is_dir():
            return dot if (dot / "HEAD").is_file() else None
        told = _text(dot)
        if not told.startswith("gitdir:"):
            return None
        git = Path(os.path.normpath(root / told.removeprefix("gitdir:").strip()))
        touch(git)
        return git if (git / "HEAD").is_file() else None
    except (OSError, ValueError):
        return None


def _read(place: _Place, directory: str) -> Repository:
    config = config_in(_text(place.common / "config"))
    branch, is_branch = _branch_of(place.git)
    chosen = _remote_of(config, branch if is_branch else "")
    worktree = "" if place.git == place.common else place.git.name
    inside = _AGENTS.search(f"{directory}/")
    name = f"{chosen.owner}/{chosen.name}" if chosen and chosen.owner else ""
    name = name or (chosen.name if chosen else "") or _folder_of(place)
    known = {n: found.address for n, url in config.remotes.items() if (found := remote_in(url))}
    return Repository(
        name=line(name),
        root=str(place.root),
        branch=line(branch),
        worktree=line(worktree or (inside[1] if inside else "")),
        remote=line(chosen.address if chosen else ""),
        remotes={line(n): line(address) for n, address in known.items()},
        head=str(place.git / "HEAD"),
    )


def _branch_of(git: Path) -> tuple[str, bool]:
    head = _text(git / "HEAD").strip()
    if head.startswith("ref:"):
        ref = head.removeprefix("ref:").strip()
        # Where references are kept in tables, HEAD is there for older programs only.
        return ("" if ref == "refs/heads/.invalid" else ref.removeprefix("refs/heads/")), True
    return (head[:SHORT] if _COMMIT.fullmatch(head) else ""), False


def _remote_of(config: Config, branch: str) -> Remote | None:
    """The remote that names the repository: origin, else that of the branch, else the first."""
    order = ("origin", config.upstreams.get(branch, ""), *config.remotes)
    urls = (config.remotes[n] for n in order if n in config.remotes)
    return next((found for url in urls if (found := remote_in(url))), None)


def _folder_of(place: _Place) -> str:
    """The main working tree's folder, or that of a repository without one."""
    if place.common.name == ".git":
        return place.common.parent.name
    if "modules" in place.common.parts and place.git == place.common:  # a submodule
        return place.root.name
    return place.common.name.removesuffix(".git")


def _stamps(place: _Place) -> tuple[_Stamp | None, ...]:
    files = place.root / ".git", place.git / "HEAD", place.common / "config"
    return tuple(_stamp(path, entries=n > 0) for n, path in enumerate(files))


def _stamp(path: Path, entries: bool) -> _Stamp | None:
    """What changes with a file; of `.git` itself only which one it is."""
    touch(path)
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_ino, status.st_size * entries, status.st_mtime_ns * entries


def _text(path: Path) -> str:
    try:
        return read(path, LIMIT, ours=False)[0].decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
