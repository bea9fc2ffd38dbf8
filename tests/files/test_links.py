"""Links to other machines: claimed, taken over, bounded, and nothing announced twice."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bellboard.hosting.links import Links
from bellboard.storage import machines
from bellboard.storage.machines import Mailbox
from bellboard.storage.spool import Spool
from bellboard.system.locks import locked
from bellboard.system.watch import Watch
from rig.home import Home
from rig.host.far_feed import FarFeed
from rig.host.hosting import RecordedHost, made, opened, put
from rig.machines.ssh import set_followed
from rig.waiting import eventually, leniency

Start = Callable[..., RecordedHost]
S1 = "dev/claude/s1"
NEVER = 3600  # seconds between two rescans


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_the_sessions_of_a_machine_are_shown_as_it_shows_them(start: Start, dev: FarFeed) -> None:
    host = start()
    host.shows({S1: "working"})
    dev.say(dev.moved("s1", "blocked", detail="make", tool="Bash", kind="permission"))
    dev.say(dev.moved("s2", "completed"))
    host.shows({S1: "blocked", "dev/claude/s2": "completed"})
    p = host.sessions[S1]
    assert (p["machine"], p["detail"], host.is_stale(S1)) == ("dev", "make", False)
    dev.say({"type": "change", "now": time.time(), "cursor": "d.9", "removed": ["s1"]})
    host.shows({"dev/claude/s2": "completed"})
    news = [(S1, "blocked"), ("dev/claude/s2", "completed"), (S1, None)]
    eventually(lambda: host.live == news, "news")


def test_a_machine_that_does_not_respond_is_named_in_health(start: Start, dev: FarFeed) -> None:
    (dev.folder / "dead").write_text("ssh: connect to host dev: \x1b[31mNo route to host")
    host = start()
    host.says("ssh: connect to host dev: No route to host")
    assert "bellboard machine test dev" in host.notes["machine dev"]
    (dev.folder / "dead").unlink()
    host.shows({S1: "working"})
    eventually(lambda: "machine dev" not in host.notes, "it is no longer named")


def test_while_a_link_is_down_its_sessions_are_stale(start: Start, dev: FarFeed) -> None:
    """Changes meanwhile are announced once, and nothing is announced twice."""
    host = start()
    host.shows({S1: "working"})
    dev.say(dev.moved("s1", "completed"))
    host.shows({S1: "completed"})
    (dev.folder / "dead").write_text("gone")
    os.kill(dev.pids[-1], signal.SIGKILL)
    eventually(lambda: host.is_stale(S1), "stale")
    assert host.sessions[S1]["link_why"]
    for status in ("working", "blocked", "working", "completed"):
        dev.moved("s1", status)
    dev.restart(dev.hello(), dev.state(2))
    (dev.folder / "dead").unlink()
    eventually(lambda: not host.is_stale(S1), "back")
    assert dev.since[-1] == "d.2"
    eventually(lambda: len(host.live) == 5, "what changed")
    assert [status for _, status in host.live] == [
        "completed",
        *("working", "blocked", "working", "completed"),
    ]


def test_one_host_keeps_the_link_and_another_takes_over(start: Start, dev: FarFeed) -> None:
    """The end of a host is watched, not looked for from time to time."""
    first = start("first", rescan=NEVER)
    first.shows({S1: "working"})
    second = start("second", rescan=NEVER)
    second.shows({S1: "working"})
    assert len(dev.pids) == 1
    dev.say(dev.moved("s1", "blocked"))
    second.shows({S1: "blocked"})
    dev.restart(dev.hello(), dev.state(2))
    first.kill()
    eventually(lambda: len(dev.pids) == 2, "another link")
    assert dev.since == ["", "d.2"]
    dev.say(dev.moved("s1", "completed"))
    second.shows({S1: "completed"})
    eventually(lambda: second.live == [(S1, "blocked"), (S1, "completed")], "news")
    assert not second.is_stale(S1)


def test_the_program_of_a_link_ends_with_its_host(start: Start, dev: FarFeed) -> None:
    host = start()
    host.shows({S1: "working"})
    host.kill()
    eventually(lambda: not is_running(dev.pids[-1]), "its end")


def test_after_a_time_without_hosts_nothing_is_announced_twice(start: Start, dev: FarFeed) -> None:
    host = start()
    dev.say(dev.moved("s1", "blocked"))
    host.shows({S1: "blocked"})
    host.kill()
    dev.restart(dev.hello(), dev.state(2))
    again = start("again")
    eventually(lambda: S1 in again.sessions and not again.is_stale(S1), "followed again")
    assert again.shown == {S1: "blocked"}
    assert again.live == []
    with opened(host.home.bellboard) as shared:
        assert [c.after for c in shared.store.history()] == ["working", "blocked"]


def test_a_clock_that_is_ahead_there_is_taken_into_account(start: Start, dev: FarFeed) -> None:
    dev.now = lambda: time.time() + 7200
    dev.rows.clear()
    dev.restart(dev.hello(), dev.state())
    host = start()
    dev.say(dev.moved("s1", "blocked"))
    host.shows({S1: "blocked"})
    assert abs(host.sessions[S1]["since"] - time.time()) < 60
    eventually(lambda: host.live == [(S1, "blocked")], "news")


def test_a_machine_can_be_added_and_removed_at_any_time(start: Start, dev: FarFeed) -> None:
    home = dev.folder.parent / "board"
    set_followed(home, {})
    host = start()
    set_followed(home, {"dev": dev.command})
    host.shows({S1: "working"})
    set_followed(home, {})
    host.shows({})
    assert not (home / "links" / "dev").exists() or not host.notes


def test_a_machine_removed_while_the_disk_is_full_can_be_followed_again(home: Home) -> None:
    """Reporting that fails; its lock must be free for whoever tries next."""

    class Full(Spool):
        def write(self, *_: Any) -> str:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    made(home.bellboard)
    machines.prepare(home.bellboard, "dev")
    links = Links(Full(home.bellboard), {}, os.environ, lambda: None, lambda _: None)
    links._drop("dev")
    claim = machines.lock_of(home.bellboard, "dev")
    assert claim.take()
    claim.close()


@pytest.mark.parametrize("what", ["held", "damaged", "empty", "a folder"])
def test_a_list_that_cannot_be_read_ends_no_link(
    home: Home, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """A host that starts then neither forgets a machine and its sessions nor waits for the list.

    Another that starts at the same time holds it for milliseconds, which is no trouble.
    """
    board = home.bellboard
    spool = made(board)
    set_followed(board, {"dev": ["sleep", "60"]})
    machines.prepare(board, "dev")
    spool.write({"t": time.time(), "link": {"machine": "dev", "up": True}})
    path = board / "links" / machines.FILE
    if what == "a folder":
        path.unlink()
        path.mkdir()
    elif what != "held":
        path.write_bytes(path.read_bytes()[:9] if what == "damaged" else b"")

    given = []  # seconds to wait for the lock of the list

    def noted(path: Path, patience: float) -> contextlib.AbstractContextManager[None]:
        given.append(patience)
        return locked(path, patience)

    monkeypatch.setattr(machines, "locked", noted)

    async def started() -> tuple[dict[str, str], float]:
        links = Links(spool, {"machines": {}}, {}, lambda: None, lambda _: None)
        links.open(Watch(lambda _: None))
        wait = links.run(shared.board, shared.store)
        assert ("machines" in links.notes) == (what != "held")
        monkeypatch.setattr("bellboard.hosting.links.PATIENCE", 0.0)
        links.run(shared.board, shared.store)
        notes = links.notes
        links.close()
        return notes, wait

    with opened(board) as shared, contextlib.ExitStack() as stack:
        shared.turn(time.time())
        if what == "held":
            stack.enter_context(locked(board / "links" / machines.LOCK))
        notes, wait = asyncio.run(started())
        shared.turn(time.time())
        assert "dev" in shared.board.ledger.links
        assert (board / "links/dev").is_dir()
    assert "machines" in notes
    assert (wait <= machines.SOON) == (what == "held")
    assert {0.0} == set(given)


def test_a_neovim_names_machines_for_all_hosts(start: Start, dev: FarFeed, home: Home) -> None:
    set_followed(home.bellboard, {})
    first = start("first", config={"machines": {"dev": dev.command, "-x": ["a"], "y": "ssh y"}})
    first.shows({S1: "working"})
    assert {"machine -x", "machine y"} <= first.notes.keys()
    second = start("second")
    first.kill()
    dev.restart(dev.hello(), dev.state(1))
    eventually(lambda: len(dev.pids) == 2, "another link")
    second.shows({S1: "working"})


def test_a_machine_learns_whether_somebody_sits_here(start: Start, dev: FarFeed) -> None:
    """A server that follows another has nobody to notify; any host here with a desktop has."""

    def greeted(alone: bool) -> None:
        def look() -> bool:
            asked = [x["asked"] for x in dev.heard if x.get("asked", {}).get("do") == "clock"]
            return bool(asked) and asked[-1]["alone"] is alone

        eventually(look, f"alone: {alone}")

    start("server").shows({S1: "working"})
    greeted(alone=True)
    editor = start("editor", config={"notices": {"desktop": "notify-send"}})
    greeted(alone=False)
    editor.kill()
    greeted(alone=True)
    assert len(dev.pids) == 1


# ---------------------------------------------------------------- requests


def ask(home: Home, request: dict[str, Any]) -> dict[str, Any]:
    mailbox = Mailbox(home.bellboard, "dev")
    name = mailbox.ask(request)
    return eventually(lambda: mailbox.take_reply(name), "a reply")  # type: ignore[no-any-return]


def test_a_request_is_passed_on_and_its_reply_comes_back(
    start: Start, dev: FarFeed, home: Home
) -> None:
    start().shows({S1: "working"})
    (dev.folder / "reply").write_text('{"ok": true, "text": "process 7 \\u001b[31mhas ended"}')
    reply = ask(home, {"do": "stop", "session_id": "s1", "pid": 7})
    assert reply["ok"] and "\x1b" not in reply["text"]
    (asked,) = dev.asked
    assert {k: asked[k] for k in ("do", "session_id", "pid")} == {
        "do": "stop",
        "session_id": "s1",
        "pid": 7,
    }
    assert list((home.bellboard / "links" / "dev" / "ask").iterdir()) == []


def test_folders_among_the_requests_do_not_block_them(
    start: Start, dev: FarFeed, home: Home
) -> None:
    """Folders cannot be read, and are removed; requests behind them need no other request."""
    start().shows({S1: "working"})
    (dev.folder / "reply").write_text('{"ok": true}')
    for n in range(120):
        (home.bellboard / f"links/dev/ask/1.1.{n}/deep").mkdir(parents=True)
    assert ask(home, {"do": "stop", "session_id": "s1", "pid": 7})["ok"]
    eventually(lambda: not list((home.bellboard / "links/dev/ask").iterdir()), "an empty folder")


def test_a_request_is_refused_while_the_link_is_down(
    start: Start, dev: FarFeed, home: Home
) -> None:
    (dev.folder / "dead").write_text("no route to host")
    start().says("no route")
    reply = ask(home, {"do": "stop", "session_id": "s1"})
    assert not reply["ok"]
    assert "the link is down: no route to host" in reply["why"]


def test_a_request_without_a_reply_is_not_repeated(start: Start, dev: FarFeed, home: Home) -> None:
    host = start()
    host.shows({S1: "working"})
    mailbox = Mailbox(home.bellboard, "dev")
    name = mailbox.ask({"do": "stop", "session_id": "s1"})
    eventually(lambda: dev.asked, "the request")
    os.kill(dev.pids[-1], signal.SIGKILL)
    reply = eventually(lambda: mailbox.take_reply(name), "a reply")
    assert "may have been done" in reply["why"]
    eventually(lambda: len(dev.pids) == 2, "another link")
    host.shows({S1: "working"})
    assert len(dev.asked) == 1


# ---------------------------------------------------------------- hostile feeds


def test_an_endless_feed_is_read_slowly(start: Start, dev: FarFeed) -> None:
    """Neither its host nor the other sessions wait for it."""
    beat = b'{"type":"beat","now":1,"cursor":"d.1"}\n'
    host = start(measured=True)
    host.shows({S1: "working"})
    (dev.folder / "endless").write_bytes(beat * 1000)
    host.says("it sends too much")
    resident = Path(f"/proc/{host.pid}/statm").read_text().split()[1]
    assert int(resident) * os.sysconf("SC_PAGESIZE") < 200 << 20
    assert host.last("gap") < min(3.0, leniency(1.0))
    (dev.folder / "endless").unlink()


def test_a_machine_cannot_speak_for_another(start: Start, dev: FarFeed) -> None:
    evil = {"session_id": "../box/claude/s9", "agent": "claude", "status": "blocked"}
    odd = {"session_id": "s8", "agent": "a/b", "status": "blocked"}
    row = {"session_id": "s7", "agent": "claude", "status": "working", "machine": "box"}
    dev.rows |= {"x": evil, "y": odd, "s7": {**row, "title": "\x1b]0;x\x07 hi", "cwd": "/etc"}}
    message = dev.state()
    state = {**message, "all": ["s1", "s7", "../box/claude/s9"]}
    others = [{"type": "of", "machine": name, "said": state} for name in ("box", "dev")]
    notes = {"type": "notes", "notes": {"fleet": "owned"}}
    dev.restart(dev.hello(machine="box"), *others, notes, state, *others, notes)
    host = start()
    host.shows({S1: "working", "dev/claude/s7": "working"})
    p = host.sessions["dev/claude/s7"]
    assert (p["machine"], p["title"], p.get("cwd")) == ("dev", "hi", None)
    host.says("2 of its rows and changes were refused")
    assert "bellboard machine remove dev" in host.notes["machine dev"]
    assert {"machine dev"} == {*host.notes}


# ---------------------------------------------------------------- a real feed


def test_a_board_does_not_follow_itself(start: Start, home: Home) -> None:
    """If machines share their settings, each session would be there twice."""
    spool = made(home.bellboard)
    (home.bin / "bellboard").symlink_to(Path(sys.executable).with_name("bellboard"))
    set_followed(home.bellboard, {"me": ["env"]})
    put(spool, "UserPromptSubmit", prompt="x")
    host = start()
    host.says("that is this same board")
    assert host.shown == {"s": "working"}
    argv = [sys.executable, "-m", "bellboard", "machine", "test", "me"]
    done = subprocess.run(argv, env=home.env, capture_output=True, text=True, timeout=60)
    assert (done.returncode, "that is this same board" in done.stderr) == (1, True)


@pytest.fixture
def box(home: Home) -> Spool:
    """A machine called box: another state folder of this one, with its own HOME."""
    there = made(home.root / "box" / "board")
    (home.bin / "bellboard").symlink_to(Path(sys.executable).with_name("bellboard"))
    own = [f"HOME={home.root / 'box'}", f"BELLBOARD_HOME={there.home}"]
    made(home.bellboard)
    set_followed(home.bellboard, {"box": ["env", *own]})
    return there


def test_a_real_feed_is_followed(start: Start, box: Spool) -> None:
    """Changes there are shown here, through kills of the feed, the link and the host."""
    first, second = start("first"), start("second")
    put(box, "UserPromptSubmit", prompt="x")
    for host in (first, second):
        host.shows({"box/claude/s": "working"})
    put(box, "Stop")
    second.shows({"box/claude/s": "completed"})
    put(box, "UserPromptSubmit", prompt="y")
    second.shows({"box/claude/s": "working"})
    (feed,) = feeds_of(first.pid) or feeds_of(second.pid)
    os.kill(feed, signal.SIGKILL)
    put(box, "Stop", last="y")
    second.shows({"box/claude/s": "completed"})
    first.kill()
    put(box, "UserPromptSubmit", prompt="z")
    second.shows({"box/claude/s": "working"})

    def told() -> list[str | None]:
        news = [status for _, status in second.live]
        begin = news.index("completed") if "completed" in news else 0
        return news[begin:]  # the first was so when it was first seen, or not

    eventually(lambda: told() == ["completed", "working", "completed", "working"], "news")


def feeds_of(host: int) -> list[int]:
    """Return the feeds that a host has started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if path.read_text().rpartition(")")[2].split()[1] == str(host):
                words = (path.parent / "cmdline").read_bytes()
                found += [int(path.parent.name)] if b"feed" in words else []
    return found
