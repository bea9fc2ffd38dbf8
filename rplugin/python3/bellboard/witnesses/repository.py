"""Find the repository, branch and worktree of a directory in git's own files.

git itself is never run: it would execute what a repository's configuration says.  Only a few small
files are read, and only again when they change.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from ..core.detail import line
from ..system.files import is_file, read, status_of
from .gitconfig import Config, Remote, config_in, remote_in

DEEPEST: Final = 64  # levels to search upwards
LIMIT: Final = 1 << 20  # bytes of a configuration
SHORT: Final = 8  # characters of a commit

_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_AGENTS: Final = re.compile(r"/\.claude/worktrees/([^/]+)")
_Stamp = tuple[int, int, int]


class Repository(NamedTuple):
    """The repository of a directory; what is not known is empty."""

    name: str = ""  # owner/name of its remote, or its folder
    branch: str = ""  # or the short commit if no branch is checked out
    worktree: str = ""  # its name, unless it is the main one
    remote: str = ""  # its address for display: no credentials, https if it has a web page
    remotes: Mapping[str, str] = {}
    head: str = ""  # the file that changes with the branch


class _Tree(NamedTuple):
    root: Path
    git: Path  # with HEAD of this working tree
    common: Path  # with the config of the repository


class Known(NamedTuple):
    """A repository, and the stamps of its files when they were read."""

    stamps: tuple[_Stamp | None, ...]
    tree: _Tree
    repository: Repository


def look_up(directory: str, known: Known | None = None) -> Known | None:
    """Return the repository of a directory: the known one if nothing changed; never raises."""
    if known is not None and known.stamps == _stamps(known.tree):
        return known
    tree = _tree_of(directory)
    if tree is None:
        return None
    return Known(_stamps(tree), tree, _read(tree, directory))


def facts_of(known: Known | None) -> dict[str, object]:
    """Return the facts to report for a session; all empty outside of any repository."""
    found = known.repository if known else Repository()
    where = {"repository": found.name, "branch": found.branch, "worktree": found.worktree}
    urls = [f"{name} {url}" for name, url in found.remotes.items()]
    return {**where, "remote": found.remote, "remotes": urls}


def main_of(directory: str) -> str:
    """Return the main working tree of a directory's repository; "" outside of any."""
    tree = _tree_of(directory)
    if tree is None:
        return ""
    return str(tree.common.parent if tree.common.name == ".git" else tree.root)


def _tree_of(directory: str) -> _Tree | None:
    """Return the nearest working tree above, as git finds it."""
    if not directory.startswith("/"):
        return None
    root = os.path.normpath(directory)
    for _ in range(DEEPEST):
        git = _git_of(root)
        if git is not None:
            text = _text(git / "commondir").strip()
            return _Tree(Path(root), git, Path(os.path.normpath(git / text)) if text else git)
        below, root = root, os.path.dirname(root)  # noqa: PTH120 - a Path costs more than the check
        if root == below:
            break
    return None


def _git_of(root: str) -> Path | None:
    """Return the git directory if this is the root of a working tree."""
    dot = f"{root}/.git"
    try:
        if stat.S_ISDIR(status_of(dot).st_mode):
            git = Path(dot)
        else:
            text = _text(Path(dot))
            if not text.startswith("gitdir:"):
                return None
            git = Path(os.path.normpath(Path(root) / text.removeprefix("gitdir:").strip()))
        return git if is_file(git / "HEAD") else None
    except OSError:
        return None


def _read(tree: _Tree, directory: str) -> Repository:
    config = config_in(_text(tree.common / "config"))
    branch, is_branch = _branch_of(tree.git)
    chosen = _remote_of(config, branch if is_branch else "")
    worktree = "" if tree.git == tree.common else tree.git.name
    inside = _AGENTS.search(f"{directory}/")
    name = f"{chosen.owner}/{chosen.name}" if chosen and chosen.owner else ""
    name = name or (chosen.name if chosen else "") or _folder_of(tree)
    known = {n: found.address for n, url in config.remotes.items() if (found := remote_in(url))}
    return Repository(
        name=line(name),
        branch=line(branch),
        worktree=line(worktree or (inside[1] if inside else "")),
        remote=line(chosen.address if chosen else ""),
        remotes={line(n): line(address) for n, address in known.items()},
        head=str(tree.git / "HEAD"),
    )


def _branch_of(git: Path) -> tuple[str, bool]:
    head = _text(git / "HEAD").strip()
    if head.startswith("ref:"):
        ref = head.removeprefix("ref:").strip()
        # With reftables, HEAD exists only for older programs.
        return ("" if ref == "refs/heads/.invalid" else ref.removeprefix("refs/heads/")), True
    return (head[:SHORT] if _COMMIT.fullmatch(head) else ""), False


def _remote_of(config: Config, branch: str) -> Remote | None:
    """Return the remote that names the repository: origin, the branch's, or the first."""
    order = ("origin", config.upstreams.get(branch, ""), *config.remotes)
    urls = (config.remotes[n] for n in order if n in config.remotes)
    return next((found for url in urls if (found := remote_in(url))), None)


def _folder_of(tree: _Tree) -> str:
    """Return the folder name of the main working tree, or of a bare repository."""
    if tree.common.name == ".git":
        return tree.common.parent.name
    if "modules" in tree.common.parts and tree.git == tree.common:  # a submodule
        return tree.root.name
    return tree.common.name.removesuffix(".git")


def _stamps(tree: _Tree) -> tuple[_Stamp | None, ...]:
    files = tree.root / ".git", tree.git / "HEAD", tree.common / "config"
    return tuple(_stamp(path, entries=n > 0) for n, path in enumerate(files))


def _stamp(path: Path, entries: bool) -> _Stamp | None:
    """Return what changes with a file; for `.git` itself, only its inode."""
    try:
        status = status_of(path)
    except OSError:
        return None
    return status.st_ino, status.st_size * entries, status.st_mtime_ns * entries


def _text(path: Path) -> str:
    try:
        return read(path, LIMIT, ours=False)[0].decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
