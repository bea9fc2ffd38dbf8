"""A fleet on a real NATS server: what others see, who may do what, and what failures look like."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bellboard.fleet.member import Credentials, Joined, key_of
from bellboard.fleet.nats_wire import NatsWire
from bellboard.fleet.permits import Grant, server_configuration
from bellboard.fleet.streams import Stored, read_stored, stored_subjects
from bellboard.fleet.subjects import Subjects
from fleets import Peer, a_move, a_row
from rig import nats
from rig.signing import Operator
from rig.waiting import PATIENCE, eventually

pytestmark = [
    pytest.mark.files,
    pytest.mark.skipif(not nats.program(), reason="nats-server is not installed"),
]

Join = Callable[..., Peer]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that waits for a failure to last waits for less."""
    monkeypatch.setattr("bellboard.fleet.nats_wire.BEAT", 1)
    monkeypatch.setattr("bellboard.fleet.publisher.BEAT", 2.0)
    monkeypatch.setattr("bellboard.fleet.service.GRACE", 1.0)
    monkeypatch.setattr("bellboard.fleet.service.LONGEST", 2.0)
    monkeypatch.setattr("bellboard.fleet.service.SCREEN_BEAT", 1.0)


@pytest.fixture
def join(there: nats.Server) -> Iterator[Join]:
    """Join the fleet on that server; everybody leaves at the end."""
    peers: list[Peer] = []

    def made(machine: str, **settings: Any) -> Peer:
        peers.append(Peer(there.url, machine, **settings))
        return peers[-1]

    yield made
    for peer in peers:
        peer.close()


def sees(peer: Peer, machine: str, statuses: dict[str, str]) -> None:
    """Wait until it sees exactly these."""

    def same() -> bool:
        assert statuses == peer.statuses(machine), (peer.service.notes, peer.lost)
        return True

    eventually(same)


def write_raw(server: nats.Server, *messages: tuple[str, bytes]) -> None:
    """Publish anything, as a member that is no bellboard could."""
    code = """
import asyncio, sys, nats, msgspec
async def main():
    client = await nats.connect(sys.argv[1])
    for subject, data in msgspec.json.decode(sys.stdin.buffer.read(), type=list[tuple[str, bytes]]):
        await client.publish(subject, data)
    await client.flush()
    await client.close()
asyncio.run(main())
"""
    told = msgspec.json.encode(messages)
    subprocess.run([sys.executable, "-c", code, server.url], input=told, check=True, timeout=60)


# ---------------------------------------------------------------- what others see


def test_others_see_a_session_change_and_end(join: Join) -> None:
    """Rows, transitions and ends; not one's own rows."""
    dev, laptop = join("dev"), join("laptop")
    dev.show(a_row("s1"), a_row("s2"))
    sees(laptop, "dev", {"s1": "working", "s2": "working"})
    dev.show(a_row("s1", "blocked", detail="rm -r build"))
    dev.tell(a_move(7, "s1"))
    sees(laptop, "dev", {"s1": "blocked", "s2": "working"})
    eventually(lambda: [7] == [m.id for _, m in laptop.moved])
    dev.show(removed=("s2",))
    sees(laptop, "dev", {"s1": "blocked"})
    assert {} == dev.rows


def test_a_late_member_sees_what_is_there(join: Join) -> None:
    """Nothing is missing, and rows that a dead host left are gone."""
    first = join("dev", by="dev")
    first.show(a_row("old"), a_row("kept"))
    laptop = join("laptop")
    sees(laptop, "dev", {"old": "working", "kept": "working"})
    first.close()
    second = join("dev", by="dev")
    second.show(a_row("kept", "completed"), full=True)
    sees(laptop, "dev", {"kept": "completed"})
    sees(join("later"), "dev", {"kept": "completed"})


def test_only_what_is_followed_is_sent(join: Join) -> None:
    """A filter by machine is a filter on the server."""
    for name in ("dev", "box"):
        join(name).show(a_row("s"))
    laptop = join("laptop", follow=("box",))
    sees(laptop, "box", {"s": "working"})
    assert {"box"} == set(laptop.hellos)
    assert {"box"} == set(laptop.service.followed.machines)


def test_a_transition_is_announced_once(join: Join) -> None:
    """Its publisher may send it again without news of its arrival."""
    dev, laptop = join("dev"), join("laptop")
    dev.show(a_row("s"))
    sees(laptop, "dev", {"s": "working"})
    for n in (1, 1, 2, 1, 2, 3):
        dev.tell(a_move(n, "s"))
    eventually(lambda: laptop.moved and laptop.moved[-1][1].id == 3)
    assert [1, 2, 3] == [m.id for _, m in laptop.moved]


def test_a_transition_that_comes_with_its_row_and_as_news_is_passed_on_once(
    join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However far apart the two arrive."""
    monkeypatch.setattr("bellboard.fleet.team_reader.TOGETHER", 0.0)
    dev, laptop = join("dev"), join("laptop")
    dev.show(a_row("s"))
    sees(laptop, "dev", {"s": "working"})
    for n in range(1, 11):
        dev.show(a_row("s", detail=f"{n}"))
        dev.tell(a_move(n, "s"))
        eventually(lambda n=n: laptop.moved and laptop.moved[-1][1].id == n)  # type: ignore[misc]
    dev.show(a_row("s", "blocked"))
    sees(laptop, "dev", {"s": "blocked"})
    assert [*range(1, 11)] == [m.id for _, m in laptop.moved]


def claims(peer: Peer, token: str, status: str = "blocked") -> bool:
    """Return whether it may announce that session `s` of dev has that status."""
    notice = {"session_id": "s", "status": status, "effect": "notice desktop", "token": token}
    reply = peer.service.ask("dev", "claim", notice).result(30)
    assert reply["ok"], reply
    return bool(reply["granted"])


def test_a_notification_is_granted_once_in_the_team(join: Join) -> None:
    """To one of two laptops, or to the machine itself; again to who may have missed the reply."""
    dev, a, b = join("dev"), join("a"), join("b")
    for peer in (a, b):
        peer.service.show_screen(True)
    dev.show(a_row("s", "blocked"))
    for peer in (a, b):
        sees(peer, "dev", {"s": "blocked"})
    assert [True, False, False, True] == [
        claims(peer, token) for peer, token in ((a, "1"), (b, "2"), (dev, "3"), (a, "1"))
    ]
    assert not claims(b, "2", "completed")
    dev.show(a_row("s", "blocked", since=2.0))
    eventually(lambda: b.rows["dev", "s"].since == 2.0)
    assert claims(b, "4")


def test_machines_without_a_screen_are_silent_while_there_is_one(
    join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such machines notify again when the screen leaves or falls silent."""
    monkeypatch.setattr("bellboard.fleet.service.SILENT_AFTER", 3.0)
    monkeypatch.setattr("bellboard.fleet.service.SCREEN_GRACE", 0.2)
    dev, hub, laptop, other = (
        *(join("dev"), join("hub")),
        *(join("laptop", publishes=False), join("other", follow=("box",))),
    )
    dev.show(a_row("s", "blocked"))
    sees(hub, "dev", {"s": "blocked"})
    eventually(lambda: not dev.service.is_followed, "nobody sits anywhere")
    other.service.show_screen(True)
    laptop.service.show_screen(True)
    eventually(lambda: dev.service.is_followed, "somebody sits at the laptop")
    notice = {"session_id": "s", "status": "blocked", "effect": "notice desktop", "token": "1"}

    def reply() -> dict[str, Any]:
        return dict(hub.service.ask("dev", "claim", notice).result(30))

    refused = {"ok": False, "why": "a machine with a screen notifies"}
    eventually(lambda: reply() == refused, "the hub knows of it too")
    laptop.service.show_screen(False)
    eventually(lambda: not dev.service.is_followed, "it was left; the other sees only box")
    eventually(lambda: reply().get("granted"), "the hub knows that, too")
    monkeypatch.setattr("bellboard.fleet.service.SCREEN_BEAT", 600.0)  # it says so once
    changes = dev.changes
    laptop.service.show_screen(True)
    eventually(lambda: dev.changes >= changes + 2, "it is back, and then nothing is heard of it")
    eventually(lambda: not dev.service.is_followed)
    assert dev.changes >= 4


def test_two_machines_with_one_name_are_noticed(join: Join) -> None:
    """The first keeps it; the second says what to do, and writes nothing."""
    first, laptop = join("dev", by="one"), join("laptop")
    first.show(a_row("mine"))
    sees(laptop, "dev", {"mine": "working"})
    second = join("dev", by="two")
    second.show(a_row("other"))
    note = eventually(lambda: second.service.notes.get("fleet publishing"))
    assert "another machine publishes as dev" in note
    assert "--machine" in note
    assert {"mine": "working"} == laptop.statuses("dev")


# ---------------------------------------------------------------- when something fails


def test_a_server_that_is_killed_is_caught_up_with(there: nats.Server, join: Join) -> None:
    """Changes meanwhile are shown once, and health has the problem until then."""
    dev, laptop = join("dev"), join("laptop")
    dev.show(a_row("s1"), a_row("s2"))
    dev.tell(a_move(1, "s1"))
    sees(laptop, "dev", {"s1": "working", "s2": "working"})
    eventually(lambda: laptop.moved)
    there.kill()
    note = eventually(lambda: dev.service.notes.get("fleet"))
    assert note.startswith("down since ")
    eventually(lambda: "cannot be reached" in dev.service.notes.get("fleet", ""))
    dev.show(a_row("s1", "blocked"), a_row("s3"), removed=("s2",))
    dev.tell(a_move(2, "s1"), a_move(3, "s3"))
    there.start()
    sees(laptop, "dev", {"s1": "blocked", "s3": "working"})
    eventually(lambda: [1, 2, 3] == [m.id for _, m in laptop.moved])
    eventually(lambda: {} == dev.service.notes == laptop.service.notes)


def revisions(there: nats.Server) -> dict[str, int]:
    """Return the number of each row on the server."""
    found: list[Stored] = []

    async def look() -> None:
        s, wire = Subjects("t"), NatsWire(Joined(there.url, "t", "x"), Credentials("x"), print)
        await wire.open()
        stored = await stored_subjects(wire, s.rows, s.rows_of("dev"))
        await read_stored(wire, s.rows, stored, found.append)
        await wire.close()

    asyncio.run(look())
    return {item.subject.rpartition(".")[2]: item.seq for item in found}


def test_what_the_server_has_already_is_not_sent_again(there: nats.Server, join: Join) -> None:
    """After an outage only changes are written: a thousand machines come back at once."""
    dev, laptop = join("dev"), join("laptop")
    dev.show(a_row("s1"), a_row("s2"))
    sees(laptop, "dev", {"s1": "working", "s2": "working"})
    marks = revisions(there)
    there.kill()
    eventually(lambda: dev.service.notes.get("fleet"))
    dev.show(a_row("s1", "blocked"))
    there.start()
    sees(laptop, "dev", {"s1": "blocked", "s2": "working"})
    after = revisions(there)
    assert marks["s1"] != after["s1"]
    assert marks["s2"] == after["s2"]


def test_a_server_that_hangs_is_noticed(there: nats.Server, join: Join) -> None:
    """So is a cut in the network: no answer, then all rows are marked, then they are back."""
    dev, laptop = join("dev"), join("laptop")
    dev.show(a_row("s"))
    sees(laptop, "dev", {"s": "working"})
    there.freeze()
    try:
        dev.show(a_row("s", "blocked"))
        eventually(lambda: laptop.lost.get("dev"))
        assert {"s": "working"} == laptop.statuses("dev")
    finally:
        there.signal(signal.SIGCONT)
    sees(laptop, "dev", {"s": "blocked"})
    eventually(lambda: {} == laptop.lost)


def test_after_a_sleep_the_connection_is_made_again(
    join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old connection may be dead, which nobody reports."""
    slept = 0.0
    monkeypatch.setattr("bellboard.fleet.nats_wire.clock", lambda: time.monotonic() + slept)
    dev, laptop = join("dev"), join("laptop")
    dev.show(a_row("s"))
    sees(laptop, "dev", {"s": "working"})
    before = laptop.service._wire
    slept = 60.0
    eventually(lambda: laptop.service._wire not in (before, None), "another")
    dev.show(a_row("s", "blocked"))
    sees(laptop, "dev", {"s": "blocked"})


def test_a_host_that_takes_nothing_gets_the_last_state_only(join: Join) -> None:
    """A slow reader: nothing queues up, and it ends with what is so."""
    dev, laptop = join("dev"), join("laptop")
    dev.show(a_row("s"))
    sees(laptop, "dev", {"s": "working"})
    before = laptop.batches
    laptop.slow.set()
    for n in range(300):
        dev.show(a_row("s", "blocked" if n % 2 else "working", detail=f"step {n}"))
    eventually(lambda: not dev.service.shelf.changed)
    laptop.slow.clear()
    eventually(lambda: "step 299" == laptop.rows["dev", "s"].detail)
    assert laptop.batches - before < 50


def test_without_a_server_memory_does_not_grow(there: nats.Server, join: Join) -> None:
    """The last row of each session is kept, and the newest thousand transitions."""
    dev = join("dev")
    eventually(lambda: dev.service._wire)
    there.kill()
    for n in range(1, 3001):
        dev.show(a_row(f"s{n % 20}", detail=f"{n}"))
        dev.tell(a_move(n, "s1"))
    shelf = dev.service.shelf
    eventually(lambda: shelf.news and shelf.news[-1].id == 3000)
    assert 20 == len(shelf.rows)
    assert len(shelf.changed) <= 20
    assert 1000 == len(shelf.news)


def test_hostile_messages_are_counted_and_change_nothing(there: nats.Server, join: Join) -> None:
    """Junk, a row of another session, control characters, names that are none."""
    dev, laptop = join("dev"), join("laptop")
    dev.show(a_row("s"))
    sees(laptop, "dev", {"s": "working"})
    row = {"session_id": "x", "agent": "claude", "status": "blocked"}
    hostile = {**row, "session_id": "h", "title": "\x1b]0;owned\x07\u202eevil", "since": 1e300}
    key = "bellboard.t.row.dev.claude"
    counts = {"\x1b]0;owned\x07": 1, "blocked": 2, "idle": -1, "working": True}
    beat = {"type": "hello", "feed": 1, "machine": "odd", "counts": counts}
    write_raw(
        there,
        (f"{key}.junk", b"\0\xff{" * 100),
        (f"{key}.deep", b"[" * 9000),
        (f"{key}.other", msgspec.json.encode({"row": row})),
        ("bellboard.t.row.=2E=2E.claude.x", msgspec.json.encode({"row": row})),
        ("bellboard.t.row.dev.beat.more.tokens", b"{}"),
        ("bellboard.t.row.evil.beat", b'{"type":"hello","feed":99}'),
        ("bellboard.t.row.odd.beat", msgspec.json.encode(beat)),
        ("bellboard.t.moved.dev.claude.s", b"[]"),
        (f"{key}.h", msgspec.json.encode({"row": hostile, "cursor": "\x1b.1"})),
    )
    sees(laptop, "dev", {"s": "working", "h": "blocked"})
    assert "evil" in laptop.rows["dev", "h"].title
    assert laptop.rows["dev", "h"].title.isprintable()
    followed = laptop.service.followed
    eventually(lambda: {"dev": 4, "evil": 1, "": 2} == followed.refused)
    assert "protocol 99" in followed.notes["fleet machine evil"]
    assert followed.notes["fleet machine dev"].startswith("4 of its messages are not")
    assert {"blocked": 2} == laptop.service.followed.machines["odd"].counts


def test_a_reply_shows_hidden_characters_as_marks(join: Join) -> None:
    """A machine may reply in any shape, as in a feed."""
    dev, laptop = join("dev"), join("laptop")
    dev.show(a_row("s"))
    sees(laptop, "dev", {"s": "working"})
    escape = "\x1b]0;owned\x07"
    dev.reply = {"ok": 1, "why": escape, "text": escape, "rows": [escape], "deep": {escape: None}}
    reply = laptop.service.ask("dev", "preview", {"session_id": "s"}).result(PATIENCE)
    mark = "<U+001B>]0;owned<U+0007>"
    assert {"ok": False, "text": mark, "rows": [mark], "deep": {mark: None}} == reply


def test_a_reply_that_is_too_long_for_the_server_is_refused_with_the_reason(join: Join) -> None:
    """Such a reply was once dropped, and the asker waited in vain."""
    dev, laptop = join("dev"), join("laptop")
    dev.show(a_row("s"))
    sees(laptop, "dev", {"s": "working"})
    dev.reply = {"ok": True, "text": "x" * (2 << 20)}
    reply = laptop.service.ask("dev", "preview", {"session_id": "s"}).result(PATIENCE)
    assert {"ok": False, "why": "the reply is too long for the fleet: 2048 kB"} == reply


# ---------------------------------------------------------------- who may do what


@pytest.fixture
def team(there: nats.Server, tmp_path: Path) -> dict[str, Grant]:
    """Members: dev and box publish, alice reads and answers, bob reads, carol sees box only."""
    members = {
        "dev": Grant("dev", "", frozenset({"publish"}), "dev"),
        "box": Grant("box", "", frozenset({"publish"}), "box"),
        "alice": Grant("alice", "", frozenset({"read", "answer"})),
        "bob": Grant("bob", "", frozenset({"read"})),
        "carol": Grant("carol", "", frozenset({"read"}), only=("box",)),
        "eve": Grant("eve", "", frozenset({"publish", "read"}), "eve"),
        "admin": Grant("admin", "", frozenset({"admin"})),
    }
    made = {m: g._replace(key=key_of(tmp_path, g, "t")) for m, g in members.items()}
    there.kill()
    there.accounts = accounts(made)
    there.start()
    return made


def accounts(grants: dict[str, Grant]) -> str:
    return (
        "accounts" + server_configuration("t", list(grants.values()), "").partition("\naccounts")[2]
    )


def as_member(tmp_path: Path, member: str, **more: Any) -> dict[str, Any]:
    roles = {"publishes": member in ("dev", "box"), "reads": member not in ("dev", "box")}
    return {"creds": str(tmp_path / f"{member}.creds"), **roles, **more}


@pytest.fixture
def created(join: Join, team: dict[str, Grant], tmp_path: Path) -> None:
    """The streams of the team, which an admin creates."""
    admin = join("admin", **as_member(tmp_path, "admin"))
    eventually(lambda: admin.service._wire)
    admin.close()


def test_a_member_sees_and_answers_what_it_may(join: Join, created: None, tmp_path: Path) -> None:
    """Alice answers, bob only looks, carol sees one machine; each learns why not."""
    dev, box = (join(m, **as_member(tmp_path, m)) for m in ("dev", "box"))
    dev.show(a_row("s", "blocked"))
    box.show(a_row("b"))
    alice, bob = (join(m, **as_member(tmp_path, m)) for m in ("alice", "bob"))
    carol = join("carol", **as_member(tmp_path, "carol", follow=("box",)))
    sees(alice, "dev", {"s": "blocked"})
    sees(bob, "dev", {"s": "blocked"})
    sees(carol, "box", {"b": "working"})
    wanted = {"session_id": "s", "choice": "allow"}
    assert {"ok": True, "text": "done"} == alice.service.ask("dev", "answer", wanted).result(30)
    refused = bob.service.ask("dev", "answer", wanted).result(30)
    assert not refused["ok"]
    assert refused["why"] == "bob may not answer on dev: ask whoever set up the fleet"
    refused = bob.service.ask("dev", "turn", {"session_id": "s"}).result(30)
    assert refused["why"] == "bob may not read replies on dev: ask whoever set up the fleet"
    for who in (bob, alice):  # only who may answer sees what a file holds
        look = {"session_id": "s", "contents": True}
        assert who.service.ask("dev", "request", look).result(30)["ok"]
    asked = [("alice", "answer", None), ("bob", "request", False), ("alice", "request", True)]
    assert asked == [(m, do, fields.get("contents")) for m, do, fields in dev.asked]
    assert not carol.service.ask("dev", "request", {}).result(30)["ok"]
    eventually(lambda: not (dev.service.is_followed or box.service.is_followed))
    carol.service.show_screen(True)
    eventually(lambda: box.service.is_followed)
    assert not dev.service.is_followed
    alice.service.show_screen(True)
    eventually(lambda: dev.service.is_followed)
    assert claims(alice, "1")
    eventually(lambda: {} == dev.service.notes == alice.service.notes)
    nosy = join("nosy", **as_member(tmp_path, "carol"))
    note = eventually(lambda: nosy.service.notes.get("fleet reading"))
    assert note.startswith("carol may not read all machines")
    assert {} == nosy.rows


def test_nobody_publishes_under_another_name(join: Join, created: None, tmp_path: Path) -> None:
    """Box says that it is dev; the server refuses, and health says so."""
    box = join("dev", **as_member(tmp_path, "box"))
    box.show(a_row("forged"))
    note = eventually(lambda: box.service.notes.get("fleet publishing"))
    assert note.startswith("box may not publish as dev")


def test_a_revoked_member_is_out_at_once(
    there: nats.Server, join: Join, team: dict[str, Grant], created: None, tmp_path: Path
) -> None:
    """The member reports why; others go on, and once readmitted, the member catches up."""
    dev = join("dev", **as_member(tmp_path, "dev"))
    dev.show(a_row("s"))
    alice, bob = (join(m, **as_member(tmp_path, m)) for m in ("alice", "bob"))
    sees(alice, "dev", {"s": "working"})
    sees(bob, "dev", {"s": "working"})
    there.reload(accounts({m: g for m, g in team.items() if m != "bob"}))
    note = eventually(lambda: "refuses" in (n := bob.service.notes.get("fleet", "")) and n)
    assert "revoked" in note
    assert str(tmp_path / "bob.creds") in note
    dev.show(a_row("s", "blocked"))
    sees(alice, "dev", {"s": "blocked"})
    eventually(lambda: bob.lost.get("dev"))
    assert {"s": "working"} == bob.statuses("dev")
    there.reload(accounts(team))
    eventually(lambda: "no account" in bob.service.notes.get("fleet", ""))
    there.reload(accounts(team))  # nats-server 2.9 gives a new account its imports with the second
    sees(bob, "dev", {"s": "blocked"})


def test_a_creds_file_of_nats_is_taken(there: nats.Server, join: Join, tmp_path: Path) -> None:
    """With a JWT that an account signed, whose permissions count; what `nsc` makes."""
    operator = Operator()
    there.kill()
    there.accounts = operator.settings
    there.start()
    dev = join("dev", creds=str(operator.user(tmp_path / "dev.creds", [">"], [">"])), reads=False)
    own = ("ask.*.request.*.*", "claim.*.*", "screen.>", "tick.*")
    looks = ["$JS.API.>", *(f"bellboard.t.{x}" for x in own)]
    file = operator.user(tmp_path / "laptop.creds", looks, ["bellboard_seen.t.>"])
    laptop = join("laptop", creds=str(file), publishes=False)
    dev.show(a_row("s", "blocked"))
    sees(laptop, "dev", {"s": "blocked"})
    assert laptop.service.ask("dev", "request", {"session_id": "s"}).result(30)["ok"]
    refused = laptop.service.ask("dev", "answer", {"session_id": "s"}).result(30)
    assert "may not answer on dev" in refused["why"]
    eventually(lambda: {} == dev.service.notes == laptop.service.notes)


def test_credentials_that_others_can_read_are_refused(
    there: nats.Server, join: Join, tmp_path: Path
) -> None:
    """SSH does the same with keys."""
    key_of(tmp_path, Grant("dev", "", frozenset({"publish"}), "dev"), "t")
    (tmp_path / "dev.creds").chmod(0o644)
    dev = join("dev", creds=str(tmp_path / "dev.creds"))
    note = eventually(lambda: dev.service.notes.get("fleet"))
    assert "others may read" in note
    assert "chmod 600" in note
