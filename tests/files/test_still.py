"""A host goes on beside anything that hangs: mounts, tmux, locks, programs."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bellboard.storage.spool import Spool
from rig import warm
from rig.home import Home
from rig.host.hosting import RecordedHost, put, put_raw
from rig.machines.hung_mount import HungMount
from rig.tmux import Server
from rig.waiting import eventually, leniency

Start = Callable[..., RecordedHost]
SOON = 1.0  # seconds for a host to show an event, or to end, on an idle machine
RESCAN = 2.0  # seconds until a host looks at everything again, in place of 30


@pytest.fixture
def mount(home: Home) -> Iterator[HungMount]:
    """Mount a folder of the home at `mnt`, through a file system that can hang."""
    source = home.root / "far"
    source.mkdir()
    hung = HungMount(source, home.root / "mnt")
    yield hung
    hung.close()


def canary(home: Home, host: RecordedHost, session: str = "canary") -> None:
    """Check that a new event is shown soon."""
    began = time.monotonic()
    put(Spool(home.bellboard), "UserPromptSubmit", session, cwd=str(home.project))
    eventually(lambda: host.shown.get(session) == "working", "the new event")
    assert time.monotonic() < began + SOON * leniency()


def ends_soon(host: RecordedHost) -> None:
    """Check that SIGTERM ends the host."""
    began = time.monotonic()
    host.kill(signal.SIGTERM)
    assert time.monotonic() < began + SOON * leniency()
    assert 0 == host.process.returncode


def repository(folder: Path, branch: str = "main", remote: str = "") -> Path:
    """Make a repository, as far as reading it requires."""
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text(f"ref: refs/heads/{branch}\n")
    (folder / ".git" / "config").write_text(f'[remote "origin"]\nurl = {remote}\n')
    return folder


def said(text: str) -> str:
    """Return a line of a transcript."""
    return json.dumps({"type": "custom-title", "customTitle": text}) + "\n"


def told(host: RecordedHost, session: str, key: str) -> object:
    """Return a session as the host shows it."""
    return host.sessions.get(session, {}).get(key)


def test_a_hanging_mount_stops_nobody(home: Home, mount: HungMount, start: Start) -> None:
    """With a repository and a transcript on it: health names it, and all recovers."""
    repository(mount.source / "project")
    (mount.source / "t.jsonl").write_text(said("First"))
    (mount.source / "claude" / "sessions").mkdir(parents=True)
    host = start(rescan=RESCAN, measured=True)
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
    host.says("does not respond (since")
    assert str(mount.place) in host.note
    canary(home, host, "another")
    mount.answer()
    eventually(lambda: "does not respond" not in host.note, "no more complaint")
    put(Spool(home.bellboard), "PostToolUse", "far", **place)
    eventually(lambda: told(host, "far", "title") == "Second", "what was written meanwhile")
    assert host.messages[-1]["gap"] < SOON * leniency()


def test_a_hanging_folder_on_path_stops_nobody(
    home: Home, mount: HungMount, start: Start, tmux: Server
) -> None:
    """gh, tmux, players and notifiers are searched for only where nothing can hang."""
    mount.hang()
    home.env.update({"PATH": f"{mount.place}/bin:{home.env['PATH']}", "DISPLAY": ":99"})
    host = start(pull_requests=True)
    pane = tmux.open(["sleep", "1000"])
    place = {"cwd": str(repository(home.root / "near", remote="https://github.com/owner/name"))}
    hook = {"session_id": "near", "hook_event_name": "UserPromptSubmit", **place}
    origin = {"tmux": str(tmux.socket), "pane": pane.id, "tty": pane.tty}
    line = {"t": time.time(), "hook": hook, "origin": origin}
    put_raw(Spool(home.bellboard), json.dumps(line).encode())
    eventually(lambda: told(host, "near", "repository") == "owner/name", "its repository")
    canary(home, host)
    ends_soon(host)


@pytest.mark.tmux
@pytest.mark.parametrize("what", ["server", "program"])
def test_a_hanging_tmux_stops_nobody(home: Home, start: Start, what: str) -> None:
    """A server that accepts no connection; a program that never ends."""
    path = home.tmp / "deaf"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        if what == "program":
            (home.bin / "tmux").unlink(missing_ok=True)
            (home.bin / "tmux").write_text("#!/bin/sh\nexec sleep 1000\n")
            (home.bin / "tmux").chmod(0o755)
        host = start(rescan=RESCAN)
        line = {"session_id": "there", "hook_event_name": "UserPromptSubmit"}
        origin = {"tmux": str(path), "pane": "%1", "tty": "/dev/pts/999"}
        Spool(home.bellboard).write({"t": time.time(), "hook": line, "origin": origin}, "there")
        eventually(lambda: host.shown.get("there") == "working")
        host.says("does not respond")
        assert str(path) in host.note
        canary(home, host)
        ends_soon(host)


HOLD = """
import fcntl, os, signal, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(fd, fcntl.LOCK_EX)
os.write(fd, str(os.getpid()).encode())
print("held", flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
"""


@contextmanager
def suspended(lock: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a process that holds a lock, and suspend it."""
    run = [sys.executable, "-c", HOLD, str(lock)]
    with subprocess.Popen(run, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert "held\n" == holder.stdout.readline()
        try:
            yield holder
        finally:
            holder.kill()


def test_a_suspended_holder_of_the_hooks_lock_stops_nobody(home: Home, start: Start) -> None:
    """Host and command line name it; both continue once it is gone."""
    Spool(home.bellboard).prepare()
    with suspended(home.bellboard / "hooks.lock") as holder:
        host = start()
        canary(home, host)
        held = f"hooks.lock is held by process {holder.pid}, which is suspended"
        host.says(held)
        canary(home, host, "another")
        done = warm.run(["-m", "bellboard", "hooks", "install", "--yes"], env=home.env)
        assert 1 == done.returncode
        assert held in done.stderr
        assert "Traceback" not in done.stderr
    eventually(lambda: not host.note, "no more complaint")
    assert (home.bellboard / "emit").exists()


def test_settings_of_60_mb_are_refused(home: Home, start: Start) -> None:
    """The command line and a host that looks for its hooks refuse them."""
    install = ["-m", "bellboard", "hooks", "install", "--yes"]
    settings = home.claude / "settings.json"
    assert 0 == warm.run(install, env=home.env).returncode
    host = start(measured=True)
    with settings.open("w") as file:
        file.write('{"a": [')
        for _ in range(60):
            file.write("1," * (1 << 19))
        file.write("1]}")
    canary(home, host)
    began = time.monotonic()
    done = warm.run(install, env=home.env)
    assert 1 == done.returncode
    assert f"{settings}: larger than 8 MB" in done.stderr
    assert time.monotonic() < began + 5 * leniency()
    canary(home, host, "another")
    assert host.messages[-1]["gap"] < SOON * leniency()


def odd_places(home: Home) -> dict[str, str]:
    """Return odd paths for sessions, by session."""
    (home.root / "loop").symlink_to("loop")
    (home.project / ".git").symlink_to("/proc/self/mem")
    os.mkfifo(home.root / "fifo")
    theirs = home.root / "theirs.jsonl"
    theirs.write_text(said("Theirs"))
    os.chown(theirs, 65534, 65534)
    return {
        "nul": "/no\0where",
        "long": f"/tmp/{'x' * 269}",
        "longer": "/x" * 3000,
        "loop": f"{home.root}/loop/x",
        "fifo": f"{home.root}/fifo",
        "relative": "../x",
        "half": "/tmp/\ud83d",
        "theirs": str(theirs),
        "device": "/dev/zero",
        "process": "/proc/self/mem",
        "git": str(home.project),
    }


def begin(home: Home, session: str, text: str) -> None:
    """Start a session with that path in every field."""
    place = {"cwd": text, "transcript_path": text}
    hook = {"session_id": session, "hook_event_name": "UserPromptSubmit", **place}
    origin = {"env": {"CLAUDE_CONFIG_DIR": text}, "tmux": text, "pane": "%1", "nvim": text}
    line = {"t": time.time(), "hook": hook, "origin": origin}
    put_raw(Spool(home.bellboard), json.dumps(line).encode())


def test_an_odd_path_of_one_session_does_not_affect_others(home: Home, start: Start) -> None:
    """Invalid, strange, or another user's."""
    host, places = start(), odd_places(home)
    for name, text in places.items():
        begin(home, name, text)
    eventually(lambda: set(host.shown) >= places.keys(), "all of them shown")
    good = repository(home.root / "good")
    (home.root / "t.jsonl").write_text(said("Good"))
    place = {"cwd": str(good), "transcript_path": str(home.root / "t.jsonl")}
    put(Spool(home.bellboard), "UserPromptSubmit", "good", **place)
    eventually(lambda: told(host, "good", "branch") == "main", "its branch")
    eventually(lambda: told(host, "good", "title") == "Good", "its title")
    host.says("belongs to another user")
    assert host.process.poll() is None


# Commands


def commanded(home: Home, *words: str, **environ: str) -> tuple[int, str, float]:
    """Run a command; return its exit code, what it printed, and how long it took."""
    run = [sys.executable, "-m", "bellboard", *words]
    began = time.monotonic()
    done = subprocess.run(
        run, env={**home.env, **environ}, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr, time.monotonic() - began


def test_commands_name_a_state_folder_that_does_not_respond(home: Home, mount: HungMount) -> None:
    """In time, each time, and leaving one process behind that waits for it."""
    place = mount.place / "board"
    (mount.source / "board").mkdir(0o700)
    where = {"BELLBOARD_HOME": str(place), "TMPDIR": str(home.root)}
    mount.hang()
    for words in (["status"], ["list"], ["list", "--json"], ["status"]):
        code, text, took = commanded(home, *words, **where)
        assert code == 1
        assert text.startswith(f"bellboard: cannot access {place}: ")
        assert f"the mount {mount.place} (fuse.hung) does not respond" in text
        assert text.count("\n") == 1
        assert took < 5.0 * leniency()
    assert mount.asked == 1
    assert "does not respond" in " ".join(commanded(home, "doctor", **where)[1].split())
    mount.answer()
    eventually(lambda: "does not respond" not in commanded(home, "status", **where)[1], "an answer")


def test_commands_name_a_folder_of_tmux_that_does_not_respond(home: Home, mount: HungMount) -> None:
    mount.hang()
    code, text, took = commanded(home, "tmux", "--apply", TMUX="", TMUX_TMPDIR=str(mount.place))
    assert code == 1
    assert f"the mount {mount.place} (fuse.hung) does not respond" in text
    assert took < 5.0 * leniency()
