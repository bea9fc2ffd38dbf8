"""Malformed files of the CLI, under a complete running host."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bellboard.core.untrusted import decimal
from bellboard.storage.spool import Spool
from bellboard.system import tmux
from bellboard.system.processes import started_of
from rig.home import Home
from rig.host.hosting import RecordedHost, put_raw, start
from rig.waiting import eventually

__all__ = ["start"]
Start = Callable[..., RecordedHost]
DEEP = b"[" * 50_000


class Running:
    """Starts programs that wait; `one(…)` returns the pid of a new one."""

    def __init__(self) -> None:
        self.started: list[subprocess.Popen[bytes]] = []

    def one(self, **how: Any) -> int:
        self.started.append(subprocess.Popen(["sleep", "300"], **how))
        return self.started[-1].pid


@pytest.fixture
def running() -> Iterator[Running]:
    made = Running()
    yield made
    for child in made.started:
        child.kill()
        child.wait()


def record(pid: int, status: str, at: int, **changed: Any) -> bytes:
    """Return a session file as the CLI writes it."""
    known = {"pid": pid, "sessionId": f"s{pid}", "cwd": "/srv", "procStart": started_of(pid)}
    said = {"status": status, "statusUpdatedAt": at}
    asks = {"waitingFor": "permission prompt"} if status == "waiting" else {}
    return json.dumps({**known, **said, **asks, **changed}).encode()


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def folder(path: Path) -> None:
    path.mkdir()


def broken_records(pid: int) -> dict[str, bytes | Callable[[Path], Any]]:
    """Return replacements of a session file: bytes, or a function that makes it."""
    good = record(pid, "idle", 9)
    return {
        "half-written": good[: len(good) // 2],
        "empty": b"",
        "binary": bytes(range(256)) * 8,
        "deep": DEEP,
        "deep inside": good[:-1] + b', "x": ' + DEEP,
        "a list": b"[]",
        "null": b"null",
        "a session id that is a number": record(pid, "idle", 9, sessionId=7),
        "a session id without end": record(pid, "idle", 9, sessionId="x" * 300),
        "another pid inside": record(pid + 1, "idle", 9),
        "far too large": record(pid, "idle", 9, cwd="x" * 100_000),
        "a directory": folder,
        "a pipe": os.mkfifo,
        "a link into nothing that is a file": lambda path: path.symlink_to(path.parent),
    }


def test_a_broken_session_file_leaves_the_last_good_value(
    home: Home, start: Start, running: Running
) -> None:
    """Health reports each kind by path; the next good value counts."""
    sessions = home.claude / "sessions"
    sessions.mkdir()
    pid = running.one()
    path = sessions / f"{pid}.json"
    path.write_bytes(record(pid, "busy", 1))
    host = start()
    expected = {f"s{pid}": "working"}
    eventually(lambda: host.shown == expected, "the session")
    for n, (how, bad) in enumerate(broken_records(pid).items(), 2):
        remove(path) if callable(bad) else None
        bad(path) if callable(bad) else path.write_bytes(bad)
        eventually(lambda: host.notes.get(str(path)), f"a note of {how}")
        assert expected == host.shown, how
        status, shown = ("waiting", "blocked") if n % 2 == 0 else ("busy", "working")
        remove(path) if callable(bad) else None
        path.write_bytes(record(pid, status, n))
        expected = {f"s{pid}": shown}
        eventually(lambda: host.shown == expected, f"{shown} after {how}")  # noqa: B023
        eventually(lambda: str(path) not in host.notes, f"no note after {how}")
    assert host.process.poll() is None


def test_an_unusable_session_file_lists_no_session(
    home: Home, start: Start, running: Running
) -> None:
    """Of another user's process, a reused process id, this host itself, or no process."""
    sessions = home.claude / "sessions"
    sessions.mkdir()
    theirs = running.one(user=65534) if os.geteuid() == 0 else 1
    again, mine = running.one(), running.one()
    dead = subprocess.Popen(["true"])
    dead.wait()
    host = start()
    expected = {
        theirs: "its process belongs to another user",
        again: "its process is dead and the pid was reused",
        host.pid: "it names this background process",
        dead.pid: "its process is dead",
    }
    for pid in expected:
        start_time = {"procStart": "1"} if pid == again else {}
        (sessions / f"{pid}.json").write_bytes(record(pid, "busy", 1, **start_time))
    for name in ("0.json", "-1.json", "99999999999.json", "x.json", f"{mine}.key", f"{mine}.json~"):
        (sessions / name).write_bytes(record(mine, "busy", 1))
    for pid, why in expected.items():
        path = str(sessions / f"{pid}.json")
        eventually(lambda: host.notes.get(path) == why, why)  # noqa: B023
    (sessions / f"{mine}.json").write_bytes(record(mine, "busy", 1))
    eventually(lambda: host.shown == {f"s{mine}": "working"}, "the valid one")
    assert set(expected) == {int(Path(p).stem) for p in host.notes if p.endswith(".json")}


def title(name: str) -> bytes:
    return json.dumps({"type": "custom-title", "customTitle": name}).encode() + b"\n"


class Followed:
    """A working session whose transcript a host follows."""

    def __init__(self, home: Home, host: RecordedHost, pid: int) -> None:
        self.path = home.root / "transcript.jsonl"
        self.host = host
        payload = {"session_id": "s", "cwd": "/srv", "transcript_path": str(self.path)}
        payload |= {"hook_event_name": "UserPromptSubmit", "prompt": "go"}
        header = f"bellboard 1\0agent=claude\0event=UserPromptSubmit\0pid={pid}\0\0".encode()
        put_raw(Spool(home.bellboard), header + json.dumps(payload).encode())

    def add(self, data: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(data)

    def has_title(self, name: str) -> None:
        """Wait until the host publishes that title."""
        eventually(lambda: self.host.sessions.get("s", {}).get("title") == name, name)

    def noted(self, text: str) -> None:
        notes = lambda: self.host.notes.get(str(self.path), "")  # noqa: E731
        eventually(lambda: text in notes(), f"{text}, not {notes()}")

    def memory(self) -> int:
        """Return the peak memory of the host, in MB."""
        status = Path(f"/proc/{self.host.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) >> 10


@pytest.fixture
def followed(home: Home, start: Start, running: Running) -> Followed:
    made = Followed(home, start(), running.one())
    made.add(title("first"))
    made.has_title("first")
    return made


def test_malformed_lines_of_a_transcript(followed: Followed) -> None:
    """A partial last line waits for its rest; junk is counted; what follows is read."""
    torn = title("whole")
    followed.add(torn[:20])
    followed.add(torn[20:])
    followed.has_title("whole")
    for junk in (bytes(range(10)) * 9, DEEP, b"{", b'"text"', b"\xff\xfe"):
        followed.add(junk + b"\n")
    followed.add(b'{"type": 7}\n{"type": "user", "message": [[]], "timestamp": {}}\n')
    followed.add(title("after junk"))
    followed.has_title("after junk")
    followed.noted("5 lines that cannot be parsed")
    assert followed.host.shown == {"s": "working"}


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_a_line_of_30_mb_costs_no_memory(followed: Followed) -> None:
    """Whether it arrives at once or while the host reads; the next line counts."""
    before = followed.memory()
    followed.add(b'{"type":"user","message":{"content":"' + b"x" * (30 << 20) + b'"}}\n')
    followed.add(title("after it"))
    followed.has_title("after it")
    for _ in range(30):
        followed.add(b"y" * (1 << 20))
    followed.add(b"\n" + title("after another"))
    followed.has_title("after another")
    assert followed.memory() < before + 16
    assert followed.host.shown == {"s": "working"}


def test_a_transcript_replaced_truncated_or_deleted(followed: Followed) -> None:
    """Each new one is read; anything that is not a file is reported."""
    path = followed.path
    other = path.with_suffix(".new")
    other.write_bytes(title("another file"))
    other.replace(path)
    followed.has_title("another file")
    path.write_bytes(b"")
    followed.add(title("cut"))
    followed.has_title("cut")
    path.unlink()
    followed.add(title("new"))
    followed.has_title("new")
    for make in (folder, os.mkfifo):
        path.unlink()
        make(path)
        followed.noted("not a file")
        remove(path)
        followed.add(title(f"after {make.__name__}"))
        followed.has_title(f"after {make.__name__}")
    eventually(lambda: str(path) not in followed.host.notes, "no note any more")
    if os.geteuid() != 0:  # root may read everything
        path.chmod(0)
        followed.noted("Permission denied")
    assert followed.host.shown == {"s": "working"}


# Numbers


@pytest.mark.parametrize(
    "text", ["²", "٣", "1²", "-1", "+1", " 1", "1_0", "", "9" * 16, "9" * 5000]
)
def test_strings_that_only_look_like_numbers_are_rejected(text: str) -> None:
    """str.isdigit accepts more than int, and int more than any process id."""
    assert decimal(text) is None


def test_a_pane_without_a_proper_process_is_left_out() -> None:
    """The other panes of the same answer are read."""
    row = "%{} {} 0 $1 @1 /dev/pts/1 0 0"
    told = "\n".join([row.format(1, "²"), row.format(2, 4711), row.format(3, "9" * 5000)])
    assert [pane.id for pane in tmux._panes(told)] == ["%2"]
