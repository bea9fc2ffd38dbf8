"""The repository of a session's directory: its branch, its worktree, its name."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote

from ..core.evidence import learned
from ..core.text import line
from ..system.files import is_file, is_path, read, status_of
from ..system.reach import reach

if TYPE_CHECKING:
    from ..agents.need import Need

# Parse git's configuration for remotes, and the addresses of remotes.
#
# This file does no I/O. `[include]` is not followed.


LONGEST_URL: Final = 2000  # characters
ROWS: Final = 20_000  # lines of a configuration to read
ROW: Final = 4000  # characters of a line to read
NAME: Final = 500  # characters of the name of a remote
MOST: Final = 50  # remotes, and insteadOf rules

# All run in linear time, even on a mismatch: the file may come from anyone.
_SECTION: Final = re.compile(r'\[\s*([A-Za-z0-9.-]+)(?:\s*"((?:[^"\\]|\\.)*)")?\s*\]')
_ENTRY: Final = re.compile(r"([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*))?")
_WITH_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)(/.*)?", re.DOTALL)
_LIKE_SCP: Final = re.compile(r"(?:[^@/\s]+@)?(\[[^\]]+\]|[^:/@\s]{2,}):(?!:)(.*)", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "b": ""}


class Config(NamedTuple):
    """The remotes in a configuration."""

    remotes: dict[str, str]  # name → its first address
    upstreams: dict[str, str]  # branch → the name of its remote


class Remote(NamedTuple):
    """A parsed remote address."""

    owner: str  # with subgroups: group/subgroup
    name: str
    address: str  # for display, without credentials


def config_in(text: str) -> Config:
    """Parse a configuration; skip invalid lines."""
    remotes: dict[str, str] = {}
    upstreams: dict[str, str] = {}
    shorter: list[tuple[str, str]] = []  # insteadOf → its full form
    section = subsection = ""
    for row in re.sub(r"\\\r?\n", "", text).split("\n", ROWS)[:ROWS]:
        row = row[:ROW].strip()
        head = _SECTION.match(row)
        if head is not None:
            section, _, dotted = head[1].partition(".")
            section = section.lower()
            quoted = head[2]
            subsection = re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else dotted.lower()
            row = row[head.end() :].strip()
        entry = _ENTRY.match(row)
        if entry is None or section not in ("remote", "branch", "url"):
            continue
        what, raw = (section, entry[1].lower()), entry[2] or ""
        if what == ("remote", "url") and len(remotes) < MOST:
            if (url := _value(raw)) and subsection not in remotes:
                remotes[subsection] = url
        elif what == ("branch", "remote"):
            upstreams[subsection] = _value(raw[:NAME])
        elif what == ("url", "insteadof") and len(shorter) < MOST:
            shorter += [(short, subsection)] if (short := _value(raw)) else []
    for name, url in remotes.items():
        fitting = [(len(short), full, short) for short, full in shorter if url.startswith(short)]
        if fitting:
            _, full, short = max(fitting)
            remotes[name] = full + url.removeprefix(short)
    return Config(remotes, upstreams)


def _value(raw: str) -> str:
    """Unquote a value and drop its comment."""
    out: list[str] = []
    kept = 0  # trailing blanks up to here are part of the value
    quoted = False
    letters = iter(raw)
    for letter in letters:
        if letter == "\\":
            following = next(letters, "")
            out.append(_ESCAPES.get(following, following))
            kept = len(out)
        elif letter == '"':
            quoted = not quoted
            kept = len(out)
        elif letter in "#;" and not quoted:
            break
        else:
            out.append(letter)
            kept = len(out) if quoted or not letter.isspace() else kept
    return "".join(out[:kept])


def remote_in(url: str) -> Remote | None:
    """Parse an address in one of git's forms: a URL, host:path, or a path."""
    url = url.strip()[:LONGEST_URL]
    scheme, host, path = "", "", url
    if (match := _WITH_SCHEME.fullmatch(url)) is not None:
        scheme, authority, path = match[1].lower(), match[2], match[3] or ""
        host = authority.rpartition("@")[2]
        path = unquote(re.split(r"[?#]", path, maxsplit=1)[0])
    elif (match := _LIKE_SCP.fullmatch(url)) is not None:
        scheme, host, path = "ssh", match[1], match[2]
    is_local = scheme in ("", "file")
    # An address without a slash is read as a path, and may still contain a password.
    parts = [_without_password(part) for part in path.split("/")]
    path, parts = "/".join(parts), [part for part in parts if part not in ("", ".", "~")]
    if parts and parts[-1] == ".git":
        parts.pop()
    if not parts:
        return None
    name = parts[-1].removesuffix(".git")
    if is_local or not host:
        return Remote("", name, "/".join(("", *parts)) if path.startswith("/") else path)
    port = host.rpartition(":")[2] if ":" in host else ""
    port = port if port.isascii() and port.isdigit() else ""
    bare = (host.removesuffix(f":{port}") if port else host).lower()
    bare, groups = _by_host(bare, parts[:-1])
    web = f"{bare}:{port}" if port and scheme in ("http", "https") else bare
    whole = "/".join((*parts[:-1], name))
    if scheme == "ssh" and not set(".:") & set(bare):  # an alias in the ssh configuration
        return Remote("/".join(groups), name, f"{bare}:{whole}")
    kind = scheme if scheme == "http" else "https"
    return Remote("/".join(groups), name, f"{kind}://{web}/{whole}")


def _without_password(part: str) -> str:
    """Remove a leading `name:password@`."""
    before, at, after = part.partition("@")
    return after if at and ":" in before else part


def _by_host(host: str, groups: list[str]) -> tuple[str, list[str]]:
    """Remove the parts that some services put in the host or before the owner."""
    if host in ("ssh.github.com", "www.github.com"):
        return "github.com", groups
    if host == "altssh.bitbucket.org":
        return "bitbucket.org", groups
    if host == "altssh.gitlab.com":
        return "gitlab.com", groups
    if host == "ssh.dev.azure.com" and groups[:1] == ["v3"]:
        return "dev.azure.com", groups[1:]
    if groups[:1] == ["scm"]:  # self-hosted Bitbucket
        return host, groups[1:]
    if groups[-1:] == ["_git"]:  # Azure DevOps
        return host, groups[:-1]
    return host, groups


# Find the repository, branch and worktree of a directory in git's own files.
#
# git itself is not run: it would execute commands of a repository's configuration. Only a few
# small files are read, and again only when they change.


DEEPEST: Final = 64  # levels to search upwards
LIMIT: Final = 1 << 20  # bytes of a configuration
SHORT: Final = 8  # characters of a commit

_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_AGENTS: Final = re.compile(r"/\.claude/worktrees/([^/]+)")
_Stamp = tuple[int, int, int]


class Repository(NamedTuple):
    """The repository of a directory; unknown fields are empty."""

    name: str = ""  # owner/name of the remote, or the folder
    branch: str = ""  # or the short commit if no branch is checked out
    worktree: str = ""  # name of the worktree, unless it is the main one
    remote: str = ""  # address for display: no credentials, https if there is a web page
    remotes: Mapping[str, str] = {}
    head: str = ""  # file that changes with the branch


class WorkingTree(NamedTuple):
    """A working tree, and the folders of git that belong to it."""

    root: Path
    git: Path  # with HEAD of this working tree
    common: Path  # with the config of the repository


class Known(NamedTuple):
    """A repository, and the stamps of its files when they were read."""

    stamps: tuple[_Stamp | None, ...]
    tree: WorkingTree
    repository: Repository


def look_up(directory: str, known: Known | None = None) -> Known | None:
    """Return the repository of a directory: the known one if nothing changed; never raises."""
    if known is not None and known.stamps == _stamps(known.tree):
        return known
    tree = tree_of(directory)
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
    tree = tree_of(directory)
    if tree is None:
        return ""
    return str(tree.common.parent if tree.common.name == ".git" else tree.root)


def tree_of(directory: str) -> WorkingTree | None:
    """Return the nearest working tree above, as git finds it."""
    if not directory.startswith("/"):
        return None
    root = os.path.normpath(directory)
    for _ in range(DEEPEST):
        git = _git_of(root)
        if git is not None:
            text = _text(git / "commondir").strip()
            return WorkingTree(Path(root), git, Path(os.path.normpath(git / text)) if text else git)
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


def _read(tree: WorkingTree, directory: str) -> Repository:
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


def _folder_of(tree: WorkingTree) -> str:
    """Return the folder name of the main working tree, or of a bare repository."""
    if tree.common.name == ".git":
        return tree.common.parent.name
    if "modules" in tree.common.parts and tree.git == tree.common:  # a submodule
        return tree.root.name
    return tree.common.name.removesuffix(".git")


def _stamps(tree: WorkingTree) -> tuple[_Stamp | None, ...]:
    files = tree.root / ".git", tree.git / "HEAD", tree.common / "config"
    return tuple(_stamp(path, entries=n > 0) for n, path in enumerate(files))


def _stamp(path: Path, entries: bool) -> _Stamp | None:
    """Return a value that changes with a file; for `.git` itself, only its inode."""
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


# Report the repository and branch of the directories that sessions work in.


async def observe_repository(need: Need, more: Mapping[str, object]) -> None:
    """Report changes of the repository of sessions' directories.

    With `more` to find out about each branch, those facts are unknown at first.
    """
    from ..agents.need import JOINED, PATHS, RESCAN  # imported late: an answer needs no event loop

    [directory] = need.want.of
    if not is_path(directory):
        return
    known: Known | None = None
    told: dict[str, tuple[Mapping[str, object], float]] = {}  # session → facts, time
    news = {RESCAN}
    while True:
        if not news.isdisjoint({RESCAN, PATHS}):
            before = known
            known = await reach(partial(look_up, directory, known), directory)
            need.watch(*filter(None, [known.repository.head if known else ""]))
            if known is not before:
                need.joined |= need.sessions.keys()
        facts = {**facts_of(known), **more}
        for sid in sorted(need.joined & need.sessions.keys()):  # there may be thousands
            s, (reported, since) = need.sessions[sid], told.get(sid, ({}, -1.0))
            told[sid] = facts, s.learned
            # The last report may not have been folded yet.
            if reported != facts and (since == s.learned or {**s.facts, **facts} != s.facts):
                need.report(learned(need.means.clock(), s, facts, of=directory))
        need.joined.clear()
        if len(told) > 2 * len(need.sessions):
            told = {sid: told[sid] for sid in need.sessions if sid in told}
        news = await need.news(JOINED, PATHS, RESCAN)
