"""The last turn of a session that rests: its reply whole, and what it changed.

The tools of an agent say in its log which files they changed.  Whether its commands changed others
cannot be known: what git shows may have been anybody's, and is never claimed as the agent's.
"""

from __future__ import annotations

import posixpath
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import msgspec.structs

from ..agents.registry import agent_of, is_known_agent
from ..core.clock import is_recent
from ..core.last_turn import (
    LONGEST_REPLY,
    MOST_FILES,
    ChangedFile,
    LastTurn,
    Touched,
    TurnLog,
    about_turn,
    file_words,
)
from ..core.published import publish
from ..core.request import Reply
from ..core.session import Session, status_of
from ..core.text import line, plain, visible
from ..core.words import branch, title
from ..system.failures import Declined
from ..system.files import changed_at
from ..witnesses.repository import WorkingTree, tree_of
from ..witnesses.working_tree import Base, Difference, Git, base_of

AT_WORK: Final = {
    "working": "it is still working; its reply is whole when it rests",
    "blocked": "it asks something: answer that first",
}
NO_REPOSITORY: Final = "not in a git repository"
UNTRACKED: Final = "not tracked by git"
ITS_EDITS: Final = "# the edits of its tools, from its log: {}\n--- a{}\n+++ b{}\n{}\n"
LATE: Final = 1.0  # seconds until a log has what a hook has reported; it takes 0.1
FRESH: Final = 5.0  # seconds after its end in which a log may be late
LOOK: Final = 0.05
COMPARED: Final = 40  # characters of that
READ: Final = 4000  # characters of the log's message in which these are looked for
LONGEST_DIFF: Final = 400_000  # characters; a line of a feed has 1 MB


def show(s: Session, environ: Mapping[str, str]) -> Reply:
    """Return the last turn of a session; raise `Declined` unless it rests.  May hang."""
    return {"turn": msgspec.to_builtins(_Turn(s, environ).told())}


def diff(s: Session, path: str, environ: Mapping[str, str]) -> Reply:
    """Return the diff of a file that its last turn names; raise `Declined` with the reason."""
    return {"diff": _Turn(s, environ).diff(path)[:LONGEST_DIFF]}


@dataclass
class _Turn:
    """A last turn, and the working trees that it is about."""

    s: Session
    environ: Mapping[str, str]

    def __post_init__(self) -> None:
        if why := AT_WORK.get(status_of(self.s)):
            raise Declined(why)
        if not (self.log.text or self.log.prompt):
            raise Declined("it has said nothing yet")

    @cached_property
    def log(self) -> TurnLog:
        """Return what its log says, or else its hooks."""
        s, found, begun = self.s, None, self.s.message[:COMPARED]
        late = time.monotonic() + (LATE if is_recent(s.over, time.time(), FRESH) else 0.0)
        while is_known_agent(s.agent):
            found = agent_of(s.agent).last_turn(s, self.environ)
            is_behind = found is not None and s.hooked and begun not in line(found.text, READ)
            if not is_behind or time.monotonic() > late:
                break
            time.sleep(LOOK)
        if found is not None and (found.text or found.prompt):
            found.text = found.text or s.message or s.error
            if not found.prompt:
                found.prompt, found.note = s.prompt, "it began before what was read of its log"
            return found
        edited = [Touched(path) for path, t in s.edited.items() if t >= s.began]
        took = max(0.0, s.over - s.began) if s.began else 0.0
        note = "only what its hooks report is known" + ": the beginning of its reply" * bool(
            s.message
        )
        return TurnLog(s.prompt, s.message or s.error, s.began, s.over, took, 0, edited, note=note)

    def told(self) -> LastTurn:
        """Return it in the form for readers."""
        p, log = publish(self.s), self.log
        files, notes = [self._own(each) for each in log.touched], [log.note]
        if log.runs:
            try:
                files += self._unclaimed({x for each in log.touched for x in (each.path, each.was)})
            except Declined as why:
                notes.append(f"its commands may have changed other files: {why}")
        if len(files) > MOST_FILES:
            notes.append(f"{len(files) - MOST_FILES} more files")
        if len(log.text) > LONGEST_REPLY:
            notes.append("the end of its reply is left out: it is too long")
        files = [msgspec.structs.replace(each, words=file_words(each)) for each in files]
        return LastTurn(
            session_id=self.s.session_id,
            title=title(p),
            branch=branch(p),
            cwd=self.s.cwd,
            prompt=_shown(log.prompt),
            text=_shown(log.text),
            since=log.ended or self.s.since,
            took=round(log.took, 1),
            tokens=log.tokens or None,
            files=tuple(files[:MOST_FILES]),
            note="; ".join(filter(None, notes)),
            about=about_turn(branch(p), log.took, log.tokens),
        )

    def _own(self, each: Touched) -> ChangedFile:
        is_there = changed_at(each.path) > 0
        tree = tree_of(posixpath.dirname(each.path))
        how = "created" if each.created else "renamed" if each.was else "changed"
        return ChangedFile(
            path=self._name(each.path),
            whole=each.path,
            how=how if is_there else "deleted",
            added=each.count("+"),
            removed=each.count("-"),
            was=self._name(each.was) if each.was else "",
            why="" if tree is not None else NO_REPOSITORY,
        )

    def _unclaimed(self, own: set[str]) -> Iterator[ChangedFile]:
        for root, found in self._differences():
            path = f"{root}/{found.path}"
            if path not in own:
                was = self._name(f"{root}/{found.was}") if found.was else ""
                why = "" if found.is_tracked else UNTRACKED
                yield ChangedFile(
                    self._name(path), path, found.how, was=was, unclaimed=True, why=why
                )

    def _differences(self) -> Iterator[tuple[str, Difference]]:
        """Yield what else differs in the repository where it works."""
        if (tree := tree_of(self.s.cwd)) is None:
            raise Declined(f"{self.s.cwd} is {NO_REPOSITORY}")
        base, git = self._compared(tree)
        for found in git.differences(base, self.log.began):
            yield str(tree.root), found

    def _compared(self, tree: WorkingTree) -> tuple[Base, Git]:
        return base_of(tree, self.log.began), Git(tree, self.environ)

    def _name(self, path: str) -> str:
        inside = posixpath.relpath(path, self.s.cwd) if self.s.cwd.startswith("/") else path
        return plain(path if inside.startswith("..") else inside)

    def diff(self, path: str) -> str:
        """Return the diff of a file of it: of the working tree, else of its own edits."""
        own = next((each for each in self.log.touched if each.path == path), None)
        tree = tree_of(posixpath.dirname(path))
        if tree is None:
            if own is None or not own.hunks:
                raise Declined(NO_REPOSITORY)
            return ITS_EDITS.format(NO_REPOSITORY, path, path, "\n".join(own.hunks))
        root = str(tree.root)
        was = posixpath.relpath(own.was, root) if own is not None and own.was else ""
        if own is None:
            found = next((x for r, x in self._differences() if f"{r}/{x.path}" == path), None)
            if found is None:
                raise Declined("its last turn does not name that file")
            was = found.was
        base, git = self._compared(tree)
        made = git.diff(base, posixpath.relpath(path, root), was)
        if not made:
            raise Declined(f"it is as in {base.words}")
        return f"# the working tree against {base.words}: whoever changed it\n{made}"


def _shown(text: str) -> str:
    """Return the start of a text with its line breaks, and nothing that a terminal acts on."""
    return visible(text[:LONGEST_REPLY].expandtabs(4))
