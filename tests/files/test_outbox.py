"""Evidence counts once it is in the spool; until then it waits, and health says so."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bellboard.hosting.host import Host
from bellboard.hosting.outbox import MOST, Outbox
from bellboard.storage.spool import Spool
from rig import warm
from rig.fixtures import Editors
from rig.home import Home
from rig.host.hosting import Mounts, RecordedHost, made, put
from rig.host.session_files import write_session_file
from rig.waiting import GLANCE, eventually, leniency

Start = Callable[..., RecordedHost]
SOON = 2.0  # seconds for a host to come to rest, or to write what waits


class Trouble:
    """The spool of a home on a disk of its own, which can be filled."""

    def __init__(self, home: Home, mount: Mounts, kind: str) -> None:
        self.kind, self.mount = kind, mount
        self.spool = made(home.bellboard)
        self.place = self.spool.home / "spool"
        size = "nr_inodes=40" if kind == "no inodes" else "size=300k"
        mount("-t", "tmpfs", "-o", f"{size},mode=700", "tmpfs", at=self.place)
        self.spool.prepare()
        self.fillers: list[Path] = []

    def begins(self) -> None:
        """Fill the disk, once everything pending has been written."""
        eventually(lambda: not any(self.spool.new.iterdir()), "an empty spool")
        if self.kind == "read-only":
            self.mount("-o", "remount,ro", at=self.place, again=True)
            return
        fill = self.take_inodes if self.kind == "no inodes" else self.take_blocks
        eventually(lambda: not fill(), "a disk that stays full", pause=GLANCE)

    def take_inodes(self) -> int:
        """Use up all inodes; return how many."""
        before = len(self.fillers)
        with contextlib.suppress(OSError):
            while True:
                path = self.place / f"filler{len(self.fillers)}"
                path.touch()
                self.fillers.append(path)
        return len(self.fillers) - before

    def take_blocks(self) -> int:
        """Use up all blocks; return how many bytes."""
        self.fillers[:] = [self.place / "filler"]
        with self.fillers[0].open("ab", buffering=0) as file:
            before = file.tell()
            with contextlib.suppress(OSError):
                while file.write(b"x" * 4096):
                    pass
            return file.tell() - before

    def ends(self) -> None:
        if self.kind == "read-only":
            self.mount("-o", "remount,rw", at=self.place, again=True)
        for filler in self.fillers:
            filler.unlink()
        self.fillers.clear()


KINDS = pytest.mark.parametrize("kind", ["full", "no inodes", "read-only"])


@KINDS
def test_findings_on_a_full_disk_are_reported_later(
    home: Home, mount: Mounts, start: Start, kind: str
) -> None:
    """A session once showed `working` for ever: its end was lost and never looked for again."""
    trouble = Trouble(home, mount, kind)
    host = start()
    write_session_file(home, "busy")
    eventually(lambda: host.shown == {"one": "working"}, "a session at work")
    trouble.begins()
    write_session_file(home, "waiting")
    host.says("waiting to be written")
    assert host.shown == {"one": "working"}
    trouble.ends()
    eventually(lambda: host.shown == {"one": "blocked"}, "its question")
    eventually(lambda: "write" not in host.notes, "no more complaint")


@KINDS
def test_user_actions_on_a_full_disk_are_done_later(
    home: Home, mount: Mounts, nvim: Editors, kind: str
) -> None:
    """A label: the message says why it is late, and it is set once there is room."""
    trouble = Trouble(home, mount, kind)
    editor = nvim(config={"python": sys.executable}, ui=False)
    eventually(lambda: any((home.bellboard / "hosts").glob("*")), "a host")
    put(trouble.spool, "UserPromptSubmit")
    session = "return require('bellboard').session('s')"
    eventually(lambda: editor.lua(session), "a session")
    trouble.begins()
    editor.lua("require('bellboard').label('s', 'HEAVY')")
    eventually(lambda: "label is delayed" in editor.messages(), "a message")
    assert len(editor.messages().splitlines()) == 1
    trouble.ends()
    eventually(lambda: editor.lua(session).get("label") == "HEAVY", "the label")


@KINDS
def test_a_command_that_cannot_be_written_fails(home: Home, mount: Mounts, kind: str) -> None:
    """The command prints one line, and has an exit code."""
    trouble = Trouble(home, mount, kind)
    put(trouble.spool, "UserPromptSubmit")
    assert 0 == warm.run(["-m", "bellboard", "list"], env=home.env).returncode
    trouble.begins()
    try:
        done = warm.run(["-m", "bellboard", "label", "s", "HEAVY"], env=home.env)
    finally:
        trouble.ends()
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("bellboard: ")


def test_a_waiting_line_is_written_soon(home: Home) -> None:
    """A line once waited for another reason to wake the host, up to 30 seconds."""
    messages: list[Any] = []
    host = Host(home.bellboard, messages.append, {}, home.env)
    folder = home.bellboard / "spool" / "tmp"

    async def live() -> None:
        running = asyncio.create_task(host.run())
        while not messages:
            await asyncio.sleep(GLANCE)
        await asyncio.sleep(SOON)  # until it is at rest
        host.loop.run_in(1000.0)
        folder.rename(home.root / "away")
        assert "No such file" in host.report({"forget": {"session_id": "s"}})
        (home.root / "away").rename(folder)
        await asyncio.wait_for(written(), SOON * leniency())
        host.stop()
        await running

    async def written() -> None:
        while host.outbox.notes:
            await asyncio.sleep(GLANCE)

    asyncio.run(live())


def test_waiting_lines_keep_their_order_and_are_limited(tmp_path: Path) -> None:
    """The oldest is dropped, one per key; later everything is reported again."""
    spool = made(tmp_path / "home")
    outbox = Outbox(spool)
    (spool.home / "spool" / "tmp").rename(spool.home / "away")
    for n in range(MOST + 5):
        assert "No such file" in outbox.put({"t": 1.0 + n, "tick": {}}, f"key {n}")
        outbox.put({"t": 1.0 + n, "tick": {}}, f"key {n}")
    assert f"{MOST} changes are waiting to be written, 5 dropped" in outbox.notes["write"]
    (spool.home / "away").rename(spool.home / "spool" / "tmp")
    eventually(lambda: outbox.send() == 0.0 or not outbox.notes, "all of it")
    assert outbox.notes == {}
    assert outbox.has_spilled
    times = sorted(path.stat().st_mtime for path in spool.new.iterdir())
    assert times == [1.0 + n for n in range(5, MOST + 5)]


def test_what_a_user_did_is_kept_before_findings(tmp_path: Path) -> None:
    """Hosts find the same state again; a user does not act again."""
    spool = made(tmp_path / "home")
    outbox = Outbox(spool)
    (spool.home / "spool" / "tmp").rename(spool.home / "away")
    outbox.put({"t": 1.0, "park": {"session_id": "s", "parked": True}})
    for n in range(MOST + 5):
        outbox.put({"t": 2.0 + n, "tick": {}}, f"key {n}")
    (spool.home / "away").rename(spool.home / "spool" / "tmp")
    eventually(lambda: outbox.send() == 0.0 or not outbox.notes, "all of it")
    times = sorted(path.stat().st_mtime for path in spool.new.iterdir())
    assert times == [1.0, *(2.0 + n for n in range(6, MOST + 5))]
    (spool.home / "spool" / "tmp").rename(spool.home / "away")
    for n in range(MOST + 1):
        outbox.put({"t": 1.0 + n, "park": {"session_id": f"s{n}", "parked": True}})
    assert f"{MOST} changes are waiting" in outbox.notes["write"]


def test_unencodable_text_is_written_as_far_as_possible(tmp_path: Path) -> None:
    """Half a character in a path once lost the whole finding, silently."""
    spool = made(tmp_path / "home")
    outbox = Outbox(spool)
    assert outbox.put({"t": 1.0, "facts": {"session_id": "s", "cwd": "/x/\udcff"}}) == ""
    (path,) = spool.new.iterdir()
    assert b"/x/\xef\xbf\xbd" in path.read_bytes()


def test_evidence_before_the_home_exists_waits(home: Home) -> None:
    """The evidence is written once the host runs."""
    spool = Spool(home.bellboard)
    outbox = Outbox(spool)
    outbox.put({"t": 1.0, "tick": {}})
    spool.prepare()
    eventually(lambda: outbox.send() == 0.0 or not outbox.notes, "it")
    assert len(list(spool.new.iterdir())) == 1
