"""Report the repository, branch and pull request of the directories that sessions work in."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Final

from ..agents.cli import Means
from ..core.finding import learned
from ..core.session import Session
from ..system.files import is_path
from .pull_requests import Branch, PullRequest, PullRequests
from .repository import Known, facts_of, look_up

WATCHES: Final = "branch"


class Directories:
    """Calls `report` with what changed about the directories of sessions."""

    def __init__(self, means: Means, pull_requests: bool = False) -> None:
        self._reach, self._watched = means.reach, means.watched
        self._report, self._clock = means.report, means.clock
        self._pull_requests = (
            PullRequests(self._answered, means.environ, means.reach) if pull_requests else None
        )
        self._sessions: dict[str, Session] = {}
        self._of: dict[str, str] = {}  # session → its directory
        self._at: dict[str, set[str]] = {}  # directory → its sessions
        self._known: dict[str, Known | None] = {}  # directory → its repository
        self._reported: dict[str, tuple[Mapping[str, object], float]] = {}  # by session

    def attend(self, s: Session) -> None:
        """Note what is known of a session now, and where it works."""
        sid, directory = s.session_id, s.cwd
        if self._of.get(sid) != directory and is_path(directory):
            self.leave(sid)
            self._of[sid] = directory
            self._sessions[sid] = s
            self._at.setdefault(directory, set()).add(sid)
            self._check(directory)
        elif sid in self._of:
            self._sessions[sid] = s

    def leave(self, sid: str) -> None:
        """Note that a session no longer works in its directory."""
        self._reported.pop(sid, None)
        self._sessions.pop(sid, None)
        directory = self._of.pop(sid, "")
        there = self._at.get(directory, set())
        there.discard(sid)
        if directory and not there:
            del self._at[directory]
            self._watched.leave(self._head_of(directory), WATCHES, directory)
            self._known.pop(directory, None)

    def renew(self) -> None:
        """Report everything again at the next check."""
        self._reported.clear()

    def changed(self, paths: Collection[str]) -> None:
        """Check the directories whose HEAD is among these paths."""
        for path in paths:
            for directory in self._watched.who(path, WATCHES):
                self._check(directory)

    def rescan(self) -> None:
        """Check all directories."""
        for directory in list(self._at):
            self._check(directory)

    def _check(self, directory: str) -> None:
        work = partial(look_up, directory, self._known.get(directory))
        key = f"repository of {directory}"
        self._reach.do(directory, work, partial(self._took, directory), key=key)

    def _took(self, directory: str, found: Known | None) -> None:
        if directory not in self._at:
            return  # no session works there any longer
        before = self._head_of(directory)
        self._known[directory] = found
        head = self._head_of(directory)
        if head != before:
            self._watched.leave(before, WATCHES, directory)
            if head:
                self._watched.need(head, WATCHES, directory)
        self._report_all(directory)

    def _report_all(self, directory: str) -> None:
        now, request = self._clock(), self._request_of(directory)
        facts = facts_of(self._known.get(directory)) | (request.facts() if request else {})
        # There may be thousands, and each new one leads here.
        fresh = [sid for sid in self._at[directory] if self._told(sid)[0] != facts]
        for sid in sorted(fresh):
            s, (_, since) = self._sessions[sid], self._told(sid)
            self._reported[sid] = facts, s.learned
            # What was reported last may not have been folded yet.
            if since == s.learned or {**s.facts, **facts} != s.facts:
                self._report(learned(now, s, facts, of=directory))

    def _told(self, sid: str) -> tuple[Mapping[str, object], float]:
        """Return what was reported of a session, and after which change."""
        return self._reported.get(sid, ({}, -1.0))

    def _head_of(self, directory: str) -> str:
        """Return the file that changes with the branch, or ""."""
        known = self._known.get(directory)
        return known.repository.head if known else ""

    def _branch_of(self, directory: str) -> Branch | None:
        known = self._known.get(directory)
        return Branch(known.repository.remote, known.repository.branch) if known else None

    def _answered(self, branch: Branch) -> None:
        """Report the new pull request of a branch."""
        for directory in list(self._at):
            if self._branch_of(directory) == branch:
                self._report_all(directory)

    def _request_of(self, directory: str) -> PullRequest | None:
        """Return the pull request of the branch checked out there, if pull requests are enabled."""
        branch = self._branch_of(directory)
        if self._pull_requests is None or branch is None:
            return None
        return self._pull_requests.of(branch, self._clock())
