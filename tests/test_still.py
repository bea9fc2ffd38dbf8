"""A host does not stand still, whatever hangs: mounts, tmux, locks, programs."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bellboard.storage.spool import Spool
from hosting import Telling, put
from rig.home import Home
from rig.hung_mount import HungMount
from rig.waiting import eventually

pytestmark = pytest.mark.files

Start = Callable[..., Telling]
SOON = 1.0  # seconds in which a host shows an event, and in which it ends


@pytest.fixture
def mount(home: Home) -> Iterator[HungMount]:
    """A folder of the home at `mnt`, by way of a file system that can hang."""
    source = home.root / "far"
    source.mkdir()
    hung = HungMount(source, home.root / "mnt")
    yield hung
    hung.close()


def canary(home: Home, host: Telling, session: str = "canary") -> None:
    """An event is shown soon, whatever else there is."""
    began = time.monotonic()
    put(Spool(home.bellboard), "UserPromptSubmit", session, cwd=str(home.project))
    eventually(lambda: host.shown.get(session) == "working", "the canary")
    assert time.monotonic() < began + SOON


def ends_soon(host: Telling) -> None:
    """SIGTERM is enough."""
    began = time.monotonic()
    host.kill(signal.SIGTERM)
    assert time.monotonic() < began + SOON
    assert 0 == host.process.returncode


def repository(folder: Path, branch: str = "main") -> Path:
    """As git makes one, for those who only read it."""
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text(f"ref: refs/heads/{branch}\n")
    return folder


def said(text: str) -> str:
    """A line of a transcript."""
    return json.dumps({"type": "custom-title", "customTitle": text}) + "\n"


def told(host: Telling, session: str, key: str) -> object:
    """What the host shows of a session."""
    return host.sessions.get(session, {}).get(key)


def test_a_mount_that_does_not_answer_stops_nobody(
    home: Home, mount: HungMount, start: Start
) -> None:
    """Repository and transcript lie on it: it is named, and heals by itself."""
    repository(mount.source / "project")
    (mount.source / "t.jsonl").write_text(said("First"))
    (mount.source / "claude" / "sessions").mkdir(parents=True)
    host = start()
    place = {"cwd": f"{mount.place}/project", "transcript_path": f"{mount.place}/t.jsonl"}
    put(Spool(home.bellboard), "UserPromptSubmit", "far", **place)
    eventually(lambda: told(host, "far", "branch") == "main", "its branch")
    eventually(lambda: told(host, "far", "title") == "First", "its title")
    mount.hang()
    (mount.source / "project" / ".git" / "HEAD").write_text("ref: refs/heads/topic\n")
    (mount.source / "t.jsonl").write_text(said("Second"))
    put(Spool(home.bellboard), "PostToolUse", "far", **place)
    put(Spool(home.bellboard), "UserPromptSubmit", "other", cwd=f"{mount.place}/other")
    mount.is_asked()
    canary(home, host)
    host.says("does not answer since")
    assert str(mount.place) in host.note
    canary(home, host, "another")
    mount.answer()
    eventually(lambda: "does not answer" not in host.note, "no more complaint")
    put(Spool(home.bellboard), "PostToolUse", "far", **place)
    eventually(lambda: told(host, "far", "title") == "Second", "what was written meanwhile")
    assert host.messages[-1]["gap"] < SOON


@pytest.mark.parametrize("how", ["cwd", "transcript_path", "CLAUDE_CONFIG_DIR", "link"])
def test_a_host_ends_while_a_mount_hangs(
    home: Home, mount: HungMount, start: Start, how: str
) -> None:
    """A thread that waits for FUSE cannot be killed, and would keep the process."""
    mount.hang()
    place = f"{mount.place}/x"
    if how == "link":
        (home.root / "link").symlink_to(place)
        how, place = "cwd", str(home.root / "link")
    if how == "CLAUDE_CONFIG_DIR":
        home.env[how] = place
    host = start()
    put(Spool(home.bellboard), "UserPromptSubmit", "far", **{"cwd": str(home.project), how: place})
    mount.is_asked()
    canary(home, host)
    host.says("does not answer")
    assert place in host.note
    ends_soon(host)
