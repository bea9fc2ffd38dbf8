"""`bellboard feed`, as a reader on another machine uses it."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bellboard.core import feed
from bellboard.storage.database import SCHEMA
from bellboard.storage.spool import Spool
from rig import home as homes
from rig import warm
from rig.home import Home
from rig.host.following import Reader
from rig.host.hosting import RecordedHost, made, opened, put
from rig.host.ringing import Desktop
from rig.machines.ssh import PROGRAM, set_followed
from rig.shell import simulated
from rig.tmux import Server
from rig.waiting import PATIENCE, eventually

Follow = Callable[..., Reader]
Start = Callable[..., RecordedHost]


@pytest.fixture
def follow(home: Home) -> Iterator[Follow]:
    """follow(*arguments) → a reader of a feed."""
    readers: list[Reader] = []

    def one(*arguments: str, **how: Any) -> Reader:
        readers.append(Reader(home, *arguments, **how))
        return readers[-1]

    yield one
    for reader in readers:
        reader.hang_up()
        reader.kill()


def test_a_feed_has_the_machine_its_sessions_and_their_changes(
    follow: Follow, spool: Spool
) -> None:
    """No other host need run there."""
    put(spool, "UserPromptSubmit", "a", cwd="/srv/api", prompt="a secret prompt")
    reader = follow().shows(a="working")
    hello = reader.lines[0]
    assert isinstance(hello, feed.Hello)
    assert (hello.feed, hello.hosts) == (feed.PROTOCOL, 0)
    assert hello.machine and hello.boot
    put(spool, "Stop", "a", cwd="/srv/api", last_assistant_message="a secret message")
    put(spool, "UserPromptSubmit", "b")
    reader.shows(a="completed", b="working")
    put(spool, "SessionEnd", "b", reason="other")
    reader.shows(a="completed")
    eventually(lambda: reader.moves[-3:] == [("a", "completed"), ("b", "working"), ("b", None)])
    assert reader.rows["a"].project == "api"
    assert "secret" not in repr(reader.lines)


def test_a_returning_reader_gets_what_it_missed_once(follow: Follow, spool: Spool) -> None:
    """The first time, nothing is announced."""
    put(spool, "UserPromptSubmit", "a")
    first = follow().shows(a="working")
    assert first.moves == []
    eventually(lambda: not first.cursor.endswith(".0"), "the cursor")
    first.hang_up()
    first.kill()
    put(spool, "Stop", "a")
    second = follow("--since", first.cursor).shows(a="completed")
    assert [s.whole for s in second.of(feed.FeedState)] == [True]
    assert second.moves == [("a", "completed")]
    third = follow("--since", second.cursor).shows(a="completed")
    assert ([s.whole for s in third.of(feed.FeedState)], third.moves) == ([True], [])
    other = follow("--since", f"{'0' * 32}.1").shows(a="completed")
    assert ([s.whole for s in other.of(feed.FeedState)], other.moves) == ([False], [])


def test_a_board_that_lost_what_a_reader_knows_has_other_cursors(
    home: Home, follow: Follow, spool: Spool
) -> None:
    """After a power failure, the next change is not older than the lost ones."""
    put(spool, "UserPromptSubmit", "a")
    first = follow().shows(a="working")
    first.kill(signal.SIGTERM)
    kept = {path: path.read_bytes() for path in home.bellboard.glob("board.db*")}
    put(spool, "Stop", "a")
    second = follow("--since", first.cursor).shows(a="completed")
    eventually(lambda: second.cursor.endswith(".2"), "the cursor")
    second.kill(signal.SIGTERM)
    for path in home.bellboard.glob("board.db*"):
        path.unlink()
    for path, data in kept.items():
        path.write_bytes(data)
    third = follow("--since", second.cursor).shows(a="working")
    assert [s.whole for s in third.of(feed.FeedState)] == [False]
    assert third.cursor.endswith(".1")
    assert third.cursor.partition(".")[0] != second.cursor.partition(".")[0]


def test_requests_are_carried_out(follow: Follow, spool: Spool) -> None:
    put(spool, "UserPromptSubmit", "a")
    reader = follow().shows(a="working")
    for do, fields in (
        ("label", {"label": "HEAVY"}),
        ("name", {"name": "the one"}),
        ("park", {"parked": True}),
        ("snooze", {"until": time.time() + 900}),
    ):
        assert reader.ask(do, session_id="a", **fields).ok
    eventually(lambda: reader.rows["a"].name == "the one" and reader.rows["a"].snoozed_until > 0)
    row = reader.rows["a"]
    assert (row.label, "parked" in row.markers) == ("HEAVY", True)
    before = time.time()
    assert before <= reader.ask("clock").more["now"] <= time.time()
    put(spool, "Stop", "a")
    reader.shows(a="completed")
    assert reader.ask("acknowledge", session_id="a").ok
    reader.shows(a="idle")
    assert reader.ask("forget", session_id="a").ok
    reader.shows()


@pytest.mark.parametrize(
    ("do", "fields", "why"),
    [
        ("label", {"session_id": "nobody", "label": "x"}, "the session no longer exists"),
        ("label", {"session_id": "../a", "label": "x"}, "the session no longer exists"),
        ("label", {"session_id": "a", "label": {"x": 1}}, "label needs “label”"),
        ("park", {"session_id": "a", "parked": "yes"}, "park needs “parked”"),
        ("snooze", {"session_id": "a", "until": "later"}, "snooze needs “until”"),
        ("stop", {"session_id": "a", "pid": 1}, "it no longer runs as process 1"),
        ("answer", {"session_id": "a", "choice": "yes"}, "already been answered"),
        ("preview", {"session_id": "a"}, "its terminal is neither in tmux nor in a Neovim there"),
        ("claim", {"transition": 1, "effect": "rm -rf /"}, "claim needs"),
        ("reboot", {}, "unknown request; known here: acknowledge, answer, "),
        ("__init__", {}, "unknown request; known here: "),
    ],
)
def test_a_request_that_cannot_be_carried_out_gets_a_reason(
    asked: Reader, do: str, fields: dict[str, Any], why: str
) -> None:
    reply = asked.ask(do, **fields)
    assert not reply.ok
    assert why in reply.why


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """A reader that many tests can ask."""
    root = tmp_path_factory.mktemp("asked")
    home = Home(
        root, {"BELLBOARD_HOME": str(root / "board"), "PATH": os.defpath, "HOME": str(root)}
    )
    put(made(home.bellboard), "UserPromptSubmit", "a")
    reader = Reader(home).shows(a="working")
    yield reader
    reader.hang_up()
    reader.kill()


def test_junk_and_endless_lines_are_refused_and_the_next_is_read(asked: Reader) -> None:
    def refused() -> int:
        return sum(x.id == 0 and "not a request" in x.why for x in asked.of(feed.Reply))

    asked.send(b"\x00\xff junk\n{}\n[[[[\n" + b'{"id":"1","do":"clock"}\n')
    eventually(lambda: refused() == 4, "four refusals")
    asked.send(b"x" * (3 * feed.LONGEST) + b"\n")
    eventually(lambda: refused() == 5, "one for a line of 3 MB")
    assert asked.ask("clock").ok


def test_many_requests_at_once_are_all_answered(asked: Reader) -> None:
    """A few run at a time; the others wait."""
    numbers = range(1000, 1300)
    asked.send(b"".join(feed.asking(n, "clock", {}) for n in numbers))
    eventually(lambda: all(asked.reply(n) for n in numbers), "300 replies")


def test_a_preview_is_what_the_terminal_shows(follow: Follow, spool: Spool, tmux: Server) -> None:
    pane = tmux.open(["sh", "-c", "printf 'two \\342\\200\\256  blanks\\n'; exec sleep 600"])
    pane.shows("two")
    where = {"tmux": str(tmux.socket), "pane": pane.id, "tty": pane.tty, "pid": os.getpid()}
    hook = {"session_id": "a", "hook_event_name": "UserPromptSubmit", "prompt": "x"}
    spool.write({"t": time.time(), "hook": hook, "origin": where})
    spool.write({"t": time.time(), "pane": {**where, "alive": True}})
    reader = follow().shows(a="working")
    eventually(lambda: reader.rows["a"].terminal == "tmux", "the pane")
    reply = reader.ask("preview", session_id="a")
    assert reply.ok, reply.why
    (row,) = reply.more["rows"]
    assert row.startswith("two ") and row.endswith("  blanks")
    assert row.isprintable()


def test_a_request_is_read_and_answered_once(follow: Follow, tmux: Server, home: Home) -> None:
    """An answer is bound to the request that was read, as on the machine itself."""
    simulated(tmux)
    reader = follow()
    eventually(lambda: [r for r in reader.rows.values() if r.request and r.terminal == "tmux"])
    (row,) = reader.rows.values()
    assert row.status == "blocked"
    asked = reader.ask("request", session_id=row.session_id).more["request"]
    assert "rm -rf build && make all" in [part["text"] for part in asked["parts"]]
    answer = {"session_id": row.session_id, "request": asked["id"], "choice": "allow"}
    other = reader.ask("answer", **answer, digest="0" * 16)
    assert other.why == "the request has changed since you read it; read it again"
    given = reader.ask("answer", **answer, digest=asked["digest"], by="laptop")
    assert (given.ok, given.more.get("outcome")) == (True, "taken"), given
    again = reader.ask("answer", **answer, digest=asked["digest"])
    assert "already answered by laptop" in again.why


def test_a_feed_ends_with_its_reader(follow: Follow, spool: Spool) -> None:
    """Nobody is left to read what it could say."""
    reader = follow(reads=False)
    eventually(lambda: [*(spool.home / "hosts").iterdir()], "a host")
    reader.hang_up()
    assert reader.process.wait(PATIENCE) == 0
    assert reader.errors.read_text() == ""


def test_a_feed_goes_on_without_requests(follow: Follow, spool: Spool, home: Home) -> None:
    """Standard input may be empty, as in a script."""
    reader = follow()
    os.close(reader._ask)
    reader._ask = -1
    put(spool, "UserPromptSubmit", "a")
    reader.shows(a="working")
    put(spool, "Stop", "a")
    reader.shows(a="completed")


@pytest.mark.parametrize(
    ("trouble", "why"),
    [
        ("a cursor", "--since x; reboot: not a cursor"),
        ("a file", "not a directory"),
        ("a lock", "its board cannot be used: locked by"),  # as with a full disk
        ("a newer program", "belongs to a newer bellboard"),  # this one could carry out no request
    ],
)
def test_a_feed_that_cannot_go_on_says_why_last_and_ends(
    home: Home, start: Start, follow: Follow, trouble: str, why: str
) -> None:
    """The reader shows the rows as stale, and why; there is an exit code, and no traceback."""
    with contextlib.ExitStack() as stack:
        if trouble == "a file":
            home.bellboard.write_text("in the way")
        elif trouble == "a lock":
            made(home.bellboard)
            db = stack.enter_context(
                contextlib.closing(sqlite3.connect(home.bellboard / "board.db"))
            )
            db.execute("BEGIN IMMEDIATE")
        elif trouble == "a newer program":
            start("newer", schema=SCHEMA + 1)
        reader = follow(*(("--since", "x; reboot") if trouble == "a cursor" else ()))
        assert reader.process.wait(PATIENCE) == 1
        (problem,) = eventually(lambda: reader.of(feed.FeedProblem), "a problem")
    assert reader.lines[-1] == problem
    assert why in problem.text.lower()
    assert "Traceback" not in reader.errors.read_text()


def test_a_reader_that_does_not_read_delays_nobody(follow: Follow, spool: Spool) -> None:
    """Nothing piles up: the reader gets the latest state when it reads on."""
    reader = follow(reads=False)
    eventually(lambda: [*(spool.home / "hosts").iterdir()], "a host")
    for turn in range(40):
        for n in range(30):
            hook = {"session_id": f"s{n}", "hook_event_name": "UserPromptSubmit", "prompt": "x"}
            label = {"session_id": f"s{n}", "label": f"{turn} {'x' * 70}"}
            spool.write({"t": time.time(), **({"label": label} if turn else {"hook": hook})})
    with opened(spool.home) as shared:
        eventually(lambda: shared.catch_up() is not None and len(shared.board.sessions) >= 30)
    reader.read()
    eventually(lambda: len(reader.rows) == 30, "all sessions")
    eventually(lambda: {r.label[:3] for r in reader.rows.values()} == {"39 "}, "the last labels")


# ---------------------------------------------------------------- who notifies


def config(desktop: float = 0) -> dict[str, Any]:
    ladder = {"notify": 0, "desktop": desktop, "command": False}
    return {"server": "/nowhere/x", "notices": {"desktop": "notify-send", "blocked": ladder}}


def told(home: Home) -> list[tuple[str, str]]:
    """Return the notifications that were sent: channel, session."""
    with opened(home.bellboard) as shared:
        return [(x.channel, x.session_id) for x in shared.store.notices(10)]


def shown_by(*desktops: Desktop) -> list[str]:
    return sorted(title for desktop in desktops for title in desktop.titles)


class Attended:
    """A machine with a desktop, a host, and a session at work; what is asked there can ring."""

    def __init__(self, home: Home, host: RecordedHost, spool: Spool) -> None:
        self.desktop, self.host, self._spool = Desktop(home), host, spool
        self.begins("api")

    def begins(self, sid: str) -> None:
        put(self._spool, "UserPromptSubmit", sid, cwd=f"/srv/{sid}")

    def asks(self, sid: str) -> None:
        asked = {"session_id": sid, "status": "blocked"}
        self._spool.write({"t": time.time(), "set": asked})

    @property
    def is_followed(self) -> bool:
        return "left to" in self.host.health.get("notices", {})

    def becomes_followed(self, followed: bool = True) -> None:
        eventually(lambda: self.is_followed == followed, f"followed: {followed}")


@pytest.fixture
def attended(home: Home, start: Start, spool: Spool) -> Attended:
    return Attended(home, start("host", config=config()), spool)


def test_a_reader_where_nobody_sits_leaves_notifications_to_the_machine(
    attended: Attended, follow: Follow
) -> None:
    """The reader says so with each greeting, as somebody may come or leave."""
    reader = follow().shows(api="working")
    assert reader.ask("clock").ok
    attended.becomes_followed()
    assert reader.ask("clock", alone=True).ok
    attended.becomes_followed(False)
    assert reader.ask("label", session_id="api", label="x").ok
    assert reader.ask("clock").ok  # asked for the time, which says nothing of who sits there
    assert reader.ask("label", session_id="api", label="y").ok
    assert not attended.is_followed
    attended.asks("api")
    attended.desktop.shows("api needs you")
    assert reader.ask("clock", alone=False).ok
    attended.becomes_followed()


def test_while_somebody_follows_the_desktop_stays_silent_until_the_feed_is_gone(
    attended: Attended, follow: Follow, home: Home
) -> None:
    """The editor still shows sessions; kill -9 ends the lease too."""
    reader = follow().shows(api="working")
    assert reader.ask("clock").ok
    attended.becomes_followed()
    attended.asks("api")
    eventually(lambda: ("notify", "api") in told(home), "the notification in the editor")
    assert (attended.desktop.titles, told(home)) == ([], [("notify", "api")])
    reader.kill()
    attended.desktop.shows("api needs you")
    attended.becomes_followed(False)


def test_a_quiet_reader_leaves_notifications_to_the_machine(
    attended: Attended, follow: Follow
) -> None:
    reader = follow("--quiet").shows(api="working")
    assert reader.ask("clock").ok
    attended.asks("api")
    attended.desktop.shows("api needs you")
    assert not attended.is_followed


def test_two_readers_and_the_machine_itself_notify_once_in_all(
    attended: Attended, follow: Follow
) -> None:
    """The first to claim a notification sends it; its first reply may have been lost."""
    one, two = follow().shows(api="working"), follow().shows(api="working")
    assert one.ask("clock").ok
    attended.becomes_followed()
    attended.asks("api")
    number = eventually(lambda: [m.id for x in one.of(feed.FeedChange) for m in x.transitions])[-1]
    asked = {"session_id": "api", "status": "blocked"}
    for who, effect, about, is_granted in (
        (one, "desktop", {"transition": number}, True),
        (two, "desktop", {"transition": number}, False),
        (one, "desktop", {"transition": number}, False),
        (one, "desktop", {"transition": number + 99}, False),
        (one, "desktop", {"session_id": "api", "status": "completed"}, False),
        (two, "sound", asked, True),
        (one, "sound", asked, False),
        (one, "command", {**asked, "token": "a1"}, True),
        (one, "command", {**asked, "token": "a1"}, True),
        (two, "command", {**asked, "token": "b2"}, False),
    ):
        given = who.ask("claim", effect=f"notice {effect}", **about)
        assert given.more == {"granted": is_granted}, (effect, about)
    one.kill()
    two.kill()
    attended.becomes_followed(False)
    attended.begins("web")
    attended.asks("web")
    attended.desktop.shows("web needs you")


def test_two_machines_that_follow_a_third_notify_once_in_all(
    attended: Attended, home: Home, request: pytest.FixtureRequest
) -> None:
    """The one whose reader gets the right; the third one is silent, and knows nothing of theirs."""
    attended.begins("web")
    hosts, desktops = list[RecordedHost](), list[Desktop]()
    for name in ("one", "two"):
        laptop = homes.build()
        request.addfinalizer(lambda laptop=laptop: homes.remove(laptop))  # type: ignore[misc]
        program = laptop.root / ".local/bin/bellboard"
        program.parent.mkdir(parents=True)
        program.symlink_to(PROGRAM)
        made(laptop.bellboard)
        set_followed(laptop.bellboard, {"dev": ["env", f"BELLBOARD_HOME={home.bellboard}"]})
        desktops.append(Desktop(laptop))
        hosts.append(RecordedHost(laptop, name, config=config()))
        request.addfinalizer(hosts[-1].kill)
    known = {"dev/claude/api": "working", "dev/claude/web": "working"}
    for host in hosts:
        host.shows(known)
    attended.becomes_followed()
    for count, sid in enumerate(("api", "web"), 1):
        attended.asks(sid)
        known[f"dev/claude/{sid}"] = "blocked"
        for host in hosts:
            host.shows(known)
        eventually(lambda count=count: len(shown_by(*desktops)) == count, sid)  # type: ignore[misc]
    assert attended.desktop.titles == []
    assert [title.split()[0] for title in shown_by(*desktops)] == ["dev:api", "dev:web"]
    sent = sorted(x for host in hosts for x in told(host.home) if x[0] == "desktop")
    assert sent == [("desktop", "dev/claude/api"), ("desktop", "dev/claude/web")]


def test_a_reader_that_falls_silent_no_longer_follows(follow: Follow, home: Home) -> None:
    """The machine may sleep, or its network be gone: no connection is seen to end."""
    script = home.file(
        "silent.py",
        "from bellboard.hosting import feed_server\n"
        "feed_server.SILENT_AFTER, feed_server.READER_GONE = 0.2, 0.4\n"
        "from bellboard.cli import main\n"
        "raise SystemExit(main(['feed']))\n",
    )
    reader = follow()
    assert reader.process.poll() is None
    ask, tell = os.pipe(), os.pipe()
    with os.fdopen(ask[0]) as stdin, os.fdopen(tell[1], "wb") as stdout:
        process = warm.Program([str(script)], env=home.env, stdin=stdin, stdout=stdout)
    os.write(ask[1], feed.asking(1, "clock", {}))
    assert process.wait(PATIENCE) == 1
    with os.fdopen(tell[0], "rb") as stream:
        last = feed.read(stream.readlines()[-1])
    assert isinstance(last, feed.FeedProblem) and "its reader has sent nothing for" in last.text
    assert reader.process.poll() is None  # it was never heard of, as a script that only reads
    os.close(ask[1])
