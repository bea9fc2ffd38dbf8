"""The pull request of a branch, from a small program that stands in for `gh`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from bellboard.storage.spool import Spool
from rig.home import Home
from rig.host.hosting import RecordedHost, made, put
from rig.waiting import eventually

Start = Callable[..., RecordedHost]
BRANCH = "fix/$(id);`id`"
OPEN = {"number": 12, "state": "OPEN", "url": "https://github.com/owner/name/pull/12"}


def program(home: Home, answer: str) -> Path:
    """Make a `gh` that prints this, and records its arguments and directory."""
    asked = home.root / "asked"
    path = home.bin / "gh"
    path.write_text(f'#!/bin/sh\nprintf "%s\\n" "$PWD" "$@" "" >>{asked}\n{answer}\n')
    path.chmod(0o755)
    return asked


def work_on(home: Home) -> Spool:
    """Start a session in a repository with a remote."""
    git = ("git", "-C", str(home.project))
    for argv in (
        ("init", "-q", "-b", "main"),
        ("remote", "add", "origin", "git@github.com:owner/name.git"),
        ("symbolic-ref", "HEAD", f"refs/heads/{BRANCH}"),
    ):
        subprocess.run([*git, *argv], check=True, env=home.env)
    spool = made(home.bellboard)
    put(spool, "SessionStart", cwd=str(home.project), source="startup")
    return spool


def test_a_branchs_pull_request_is_found(home: Home, start: Start) -> None:
    """Asked for once, outside the working tree; a hostile branch name stays one argument."""
    asked = program(home, f"echo '{json.dumps(OPEN)}'")
    spool = work_on(home)
    host = start(pull_requests=True)
    eventually(lambda: host.sessions.get("s", {}).get("pull_request") == "#12", "its number")
    known = host.sessions["s"]
    assert ("open", OPEN["url"]) == (known["pull_request_state"], known["pull_request_url"])
    put(spool, "UserPromptSubmit", "other", cwd=str(home.project))
    eventually(lambda: host.sessions.get("other", {}).get("pull_request") == "#12", "the same")
    place, *words = asked.read_text().splitlines()
    assert ("/", ["pr", "list"], 1) == (place, words[:2], words.count("pr"))
    assert f"--head={BRANCH}" in words
    assert "--repo=https://github.com/owner/name" in words


@pytest.mark.parametrize("answer", ["exit 1", "echo '['", "echo '{}'", "echo '{\"number\": []}'"])
def test_without_a_usable_answer_no_pull_request_is_shown(
    home: Home, start: Start, answer: str
) -> None:
    """Not logged in, junk, none: the session is shown without one."""
    asked = program(home, answer)
    work_on(home)
    host = start(pull_requests=True)
    eventually(lambda: asked.exists(), "the question")
    eventually(lambda: host.sessions.get("s", {}).get("branch") == BRANCH, "its branch")
    assert "pull_request" not in host.sessions["s"]


def test_nothing_is_asked_unless_it_is_configured(home: Home, start: Start) -> None:
    """No code uses the network without being configured."""
    asked = program(home, f"echo '{json.dumps(OPEN)}'")
    work_on(home)
    host = start()
    eventually(lambda: host.sessions.get("s", {}).get("branch") == BRANCH, "its branch")
    assert not asked.exists()
