"""What differs in a working tree since a turn began, and the diff of one file.

A commit is compared with the files as they are now, whoever changed them.  git reads objects and
lists names; it never looks at the contents of a working tree, as that would run the filters of its
configuration.  Nothing here runs a hook, a filter, an external diff or a transport.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from ..core.text import whole
from ..system.failures import Declined
from ..system.files import changed_at, opened, read
from ..system.mounts import near
from ..system.programs import run
from .repository import WorkingTree

PATIENCE: Final = 5.0  # seconds for one run of git
MOST_NAMES: Final = 50_000  # of a working tree; to look at more takes too long
MOST_HASHED: Final = 300  # new versions to compare with those of the commit
LARGEST_FILE: Final = 1 << 20  # bytes
REFLOG: Final = 64 << 10  # bytes from its end
CLOCK: Final = 0.02  # seconds that the time of a file may be behind
PASSED: Final = ("HOME", "PATH", "XDG_CONFIG_HOME")  # the user's own list of ignored files is there
GUARDED: Final = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
HEAD: Final = "HEAD"
TOO_LARGE: Final = "its repository is too large to say which other files changed"


class Base(NamedTuple):
    """The commit to compare with: HEAD, unless it has moved since the turn began.

    It is empty if there was none.
    """

    revision: str

    @property
    def words(self) -> str:
        """Return it in words."""
        if self.revision == HEAD:
            return HEAD
        if not self.revision:
            return "nothing, as there was no commit when its turn began"
        return f"{self.revision[:8]}, which was HEAD when its turn began"


class Difference(NamedTuple):
    """A file that changed since the turn began."""

    path: str  # relative to the root
    how: str
    was: str = ""
    is_tracked: bool = True


def base_of(tree: WorkingTree, since: float) -> Base:
    """Return what HEAD was then, by its log: the agent may have committed."""
    try:
        with opened(tree.git / "logs/HEAD", ours=False) as (fd, status):
            raw = os.pread(fd, REFLOG, max(0, status.st_size - REFLOG))
    except OSError:
        return Base(HEAD)
    for row in raw.decode("utf-8", "replace").split("\n"):
        head = row.split("\t")[0].split()
        if len(head) > 4 and head[-2].isdecimal() and int(head[-2]) > since:
            is_sound = len(head[0]) in (40, 64) and head[0].isalnum()
            return Base(head[0] if head[0].strip("0") else "") if is_sound else Base(HEAD)
    return Base(HEAD)


class Git:
    """Runs git on the objects of a working tree's repository."""

    def __init__(self, tree: WorkingTree, environ: Mapping[str, str]) -> None:
        """Raise `Declined` if there is no git."""
        program = near("git", environ.get("PATH", ""))
        if program is None:
            raise Declined("git is not installed here")
        passed = {name: environ[name] for name in PASSED if name in environ}
        self._env = {**passed, **GUARDED}
        where = (f"--git-dir={tree.git}", f"--work-tree={tree.root}", "-c", "core.fsmonitor=false")
        self._argv = (program, "--no-pager", "--no-replace-objects", *where)
        self._tree, self._program = tree, program

    def output(self, *args: str) -> bytes | None:
        """Return what it prints; None if it fails."""
        return self._ran((*self._argv, *args), str(self._tree.root), self._env, 0)

    def differences(self, base: Base, since: float) -> Iterator[Difference]:
        """Yield the files that are ignored by nothing and changed since then, or are gone."""
        listed = self.output("ls-files", "-z", "--cached", "--others", "--exclude-standard")
        before = self._blobs(base)
        if listed is None or max(listed.count(b"\0"), len(before)) > MOST_NAMES:
            raise Declined(TOO_LARGE)
        names = {*map(os.fsdecode, filter(None, listed.split(b"\0"))), *before}
        times = {name: changed_at(self._tree.root / name) for name in names}
        gone = {before[name]: name for name in names if name in before and not times[name]}
        new = sorted(name for name, t in times.items() if t >= since - CLOCK)
        for n, name in enumerate(new):
            blob = self._hash(name, before) if n < MOST_HASHED else ""
            if name in before:
                if blob != before[name]:
                    yield Difference(name, "changed")
            elif blob in gone:
                yield Difference(name, "renamed", gone.pop(blob))
            else:
                yield Difference(name, "created", is_tracked=False)
        for name in sorted(gone.values()):
            folder = (self._tree.root / name).parent
            if not 0 < changed_at(folder) < since - CLOCK:
                yield Difference(name, "deleted")

    def _blobs(self, base: Base) -> dict[str, str]:
        """Return the files of the commit, and the hash of each; none before the first commit."""
        made: dict[str, str] = {}
        if not base.revision:
            return made
        listed = self.output("ls-tree", "-r", "-z", base.revision)
        if listed is None and self.output("rev-parse", "-q", "--verify", base.revision) is not None:
            raise Declined(TOO_LARGE)
        for row in (listed or b"").split(b"\0"):
            head, _, name = row.partition(b"\t")
            if len(parts := head.split()) == 3 and parts[1] == b"blob":
                made[os.fsdecode(name)] = parts[2].decode()
        return made

    def _hash(self, name: str, before: Mapping[str, str]) -> str:
        """Return the hash that git gives the contents of a file."""
        try:
            data = read(self._tree.root / name, LARGEST_FILE, ours=False)[0]
        except OSError:
            return ""
        is_long = len(next(iter(before.values()), "")) == 64
        made = hashlib.sha256 if is_long else partial(hashlib.sha1, usedforsecurity=False)
        return made(b"blob %d\0" % len(data) + data).hexdigest()

    def diff(self, base: Base, path: str, was: str = "") -> str:
        """Return the unified diff of one file; raise `Declined` with the reason if there is none.

        `path` and `was` are relative to the root.
        """
        old = self.output("cat-file", "blob", f"{base.revision}:{was or path}") if base[0] else None
        file = self._tree.root / path
        try:
            new = read(file, LARGEST_FILE, ours=False)[0] if changed_at(file) else None
        except OSError as error:
            raise Declined(f"it cannot be read: {error.strerror or error}") from None
        if old is None and new is None:
            raise Declined(f"it is neither in {base.words} nor there now")
        if old is not None and old.startswith(b"version https://git-lfs"):
            raise Declined("git-lfs keeps it")
        names = (
            (f"a/{was or path}" if old is not None else "/dev/null"),
            (f"b/{path}" if new is not None else "/dev/null"),
        )
        return self._compared(old or b"", new or b"", *map(whole, names))

    def _compared(self, old: bytes, new: bytes, before: str, after: str) -> str:
        with TemporaryDirectory(prefix="bellboard-") as folder:
            for name, data in (("a", old), ("b", new)):
                (Path(folder) / name).write_bytes(data)
            plain = ("--no-ext-diff", "--no-textconv", "--no-color", "--text", "a", "b")
            none = {"GIT_DIR": f"{folder}/none", "GIT_CONFIG_GLOBAL": "/dev/null"}
            env = {**self._env, **none, "GIT_CONFIG_NOSYSTEM": "1", "GIT_ATTR_NOSYSTEM": "1"}
            if b"\0" in old + new:
                raise Declined("it is not a text")
            argv = (self._program, "--no-pager", "diff", "--no-index", *plain)
            made = self._ran(argv, folder, env, 1)
        if made is None:
            raise Declined("git cannot compare it")
        _, at, hunks = made.partition(b"\n@@ ")
        head = f"diff --git {before} {after}\n--- {before}\n+++ {after}"
        return head + (at + hunks).decode("utf-8", "replace") if at else ""

    def _ran(
        self, argv: tuple[str, ...], cwd: str, env: Mapping[str, str], most: int
    ) -> bytes | None:
        try:
            done = run(argv, PATIENCE, env, cwd)
        except subprocess.TimeoutExpired:
            raise Declined(f"git took more than {PATIENCE:.0f} s") from None
        except (OSError, ValueError):
            return None
        return done.output if 0 <= done.code <= most else None
