"""A fleet on a real NATS server: what others see, who may do what, and what failures look like."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from bellboard.fleet.member import Credentials, Joined
from bellboard.fleet.nats_wire import NatsWire
from bellboard.fleet.permits import Grant
from bellboard.fleet.streams import Stored, read_stored, stored_subjects
from bellboard.fleet.subjects import Subjects
from rig.machines import nats
from rig.machines.fleets import Fleet, Peer, a_move, a_row, sees
from rig.machines.signing import Operator
from rig.waiting import PATIENCE, eventually

pytestmark = [
    pytest.mark.skipif(not nats.program(), reason="nats-server is not installed"),
]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that waits for a failure to last waits for less."""
    monkeypatch.setattr("bellboard.fleet.nats_wire.BEAT", 1)
    monkeypatch.setattr("bellboard.fleet.publisher.BEAT", 2.0)
    monkeypatch.setattr("bellboard.fleet.service.GRACE", 1.0)
    monkeypatch.setattr("bellboard.fleet.service.LONGEST", 2.0)
    monkeypatch.setattr("bellboard.fleet.service.SCREEN_BEAT", 1.0)


class Pair(NamedTuple):
    """Two members: dev has a session `s` at work, and laptop sees it."""

    dev: Peer
    laptop: Peer


@pytest.fixture
def pair(fleet: Fleet) -> Pair:
    made = Pair(fleet.join("dev"), fleet.join("laptop"))
    made.dev.show(a_row("s"))
    sees(made.laptop, "dev", {"s": "working"})
    return made


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


def test_others_see_a_session_change_and_end(pair: Pair) -> None:
    """Rows, transitions and ends; not one's own rows."""
    dev, laptop = pair
    dev.show(a_row("s", "blocked", detail="rm -r build"), a_row("s2"))
    dev.tell(a_move(7, "s"))
    sees(laptop, "dev", {"s": "blocked", "s2": "working"})
    eventually(lambda: [7] == [m.id for _, m in laptop.moved])
    dev.show(removed=("s2",))
    sees(laptop, "dev", {"s": "blocked"})
    assert {} == dev.rows


def test_a_late_member_sees_what_is_there(fleet: Fleet) -> None:
    """Nothing is missing, and rows that a dead host left are gone."""
    first = fleet.join("dev", by="dev")
    first.show(a_row("old"), a_row("kept"))
    laptop = fleet.join("laptop")
    sees(laptop, "dev", {"old": "working", "kept": "working"})
    first.close()
    second = fleet.join("dev", by="dev")
    second.show(a_row("kept", "completed"), full=True)
    sees(laptop, "dev", {"kept": "completed"})
    sees(fleet.join("later"), "dev", {"kept": "completed"})


def test_only_what_is_followed_is_sent(fleet: Fleet) -> None:
    """A filter by machine is a filter on the server."""
    for name in ("dev", "box"):
        fleet.join(name).show(a_row("s"))
    laptop = fleet.join("laptop", follow=("box",))
    sees(laptop, "box", {"s": "working"})
    assert {"box"} == set(laptop.hellos) == set(laptop.service.followed.machines)


@pytest.mark.parametrize(
    ("together", "numbers"), [(None, (1, 1, 2, 1, 2, 3)), (0.0, (*range(1, 11),))]
)
def test_a_transition_is_announced_once(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, together: float | None, numbers: tuple[int, ...]
) -> None:
    """Sent again without news of its arrival, or with its row and as news, however far apart."""
    dev, laptop = pair
    if together is not None:
        monkeypatch.setattr("bellboard.fleet.team_reader.TOGETHER", together)
    for n in numbers:
        if together is not None:
            dev.show(a_row("s", detail=f"{n}"))
        dev.tell(a_move(n, "s"))
        eventually(lambda n=n: n in [m.id for _, m in laptop.moved])  # type: ignore[misc]
    dev.show(a_row("s", "blocked"))
    sees(laptop, "dev", {"s": "blocked"})
    assert sorted({*numbers}) == [m.id for _, m in laptop.moved]


def claims(peer: Peer, token: str, status: str = "blocked") -> bool:
    """Return whether it may announce that session `s` of dev has that status."""
    notice = {"session_id": "s", "status": status, "effect": "notice desktop", "token": token}
    reply = peer.service.ask("dev", "claim", notice).result(30)
    assert reply["ok"], reply
    return bool(reply["granted"])


def test_a_notification_is_granted_once_in_the_team(fleet: Fleet) -> None:
    """One of two laptops gets it, or the machine itself; so does who may have missed the reply."""
    dev, a, b = (fleet.join(machine) for machine in ("dev", "a", "b"))
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
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such machines notify again when the screen leaves or falls silent."""
    monkeypatch.setattr("bellboard.fleet.service.SILENT_AFTER", 3.0)
    monkeypatch.setattr("bellboard.fleet.service.SCREEN_GRACE", 0.2)
    dev, hub = fleet.join("dev"), fleet.join("hub")
    laptop, other = fleet.join("laptop", publishes=False), fleet.join("other", follow=("box",))
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


def test_two_machines_with_one_name_are_noticed(fleet: Fleet) -> None:
    """The first keeps it; the second says what to do, and writes nothing."""
    first, laptop = fleet.join("dev", by="one"), fleet.join("laptop")
    first.show(a_row("mine"))
    sees(laptop, "dev", {"mine": "working"})
    second = fleet.join("dev", by="two")
    second.show(a_row("other"))
    note = eventually(lambda: second.service.notes.get("fleet publishing"))
    assert "another machine publishes as dev" in note
    assert "--machine" in note
    assert {"mine": "working"} == laptop.statuses("dev")


# ---------------------------------------------------------------- when something fails


def test_a_server_that_is_killed_is_caught_up_with(there: nats.Server, pair: Pair) -> None:
    """Changes meanwhile are shown once, and health has the problem until then."""
    dev, laptop = pair
    dev.show(a_row("s2"))
    dev.tell(a_move(1, "s"))
    sees(laptop, "dev", {"s": "working", "s2": "working"})
    eventually(lambda: laptop.moved)
    there.kill()
    assert eventually(lambda: dev.service.notes.get("fleet")).startswith("down since ")
    eventually(lambda: "cannot be reached" in dev.service.notes.get("fleet", ""))
    dev.show(a_row("s", "blocked"), a_row("s3"), removed=("s2",))
    dev.tell(a_move(2, "s"), a_move(3, "s3"))
    there.start()
    sees(laptop, "dev", {"s": "blocked", "s3": "working"})
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


def test_what_the_server_has_already_is_not_sent_again(there: nats.Server, pair: Pair) -> None:
    """After an outage only changes are written: a thousand machines come back at once."""
    dev, laptop = pair
    dev.show(a_row("same"))
    sees(laptop, "dev", {"s": "working", "same": "working"})
    marks = revisions(there)
    there.kill()
    eventually(lambda: dev.service.notes.get("fleet"))
    dev.show(a_row("s", "blocked"))
    there.start()
    sees(laptop, "dev", {"s": "blocked", "same": "working"})
    after = revisions(there)
    assert (marks["s"] != after["s"], marks["same"]) == (True, after["same"])


def test_a_server_that_hangs_is_noticed(there: nats.Server, pair: Pair) -> None:
    """A cut in the network is noticed alike: all rows are marked, and then they are back."""
    dev, laptop = pair
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
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old connection may be dead, which nobody reports."""
    slept = 0.0
    monkeypatch.setattr("bellboard.fleet.nats_wire.clock", lambda: time.monotonic() + slept)
    dev, laptop = pair
    before = laptop.service._wire
    slept = 60.0
    eventually(lambda: laptop.service._wire not in (before, None), "another")
    dev.show(a_row("s", "blocked"))
    sees(laptop, "dev", {"s": "blocked"})


def test_a_host_that_takes_nothing_gets_the_last_state_only(pair: Pair) -> None:
    """A slow reader: nothing queues up, and it ends with what is so."""
    dev, laptop = pair
    before = laptop.batches
    laptop.slow.set()
    for n in range(300):
        dev.show(a_row("s", "blocked" if n % 2 else "working", detail=f"step {n}"))
    eventually(lambda: not dev.service.shelf.changed)
    laptop.slow.clear()
    eventually(lambda: "step 299" == laptop.rows["dev", "s"].detail)
    assert laptop.batches - before < 50


def test_without_a_server_memory_does_not_grow(there: nats.Server, pair: Pair) -> None:
    """The last row of each session is kept, and the newest thousand transitions."""
    dev, _ = pair
    there.kill()
    for n in range(1, 3001):
        dev.show(a_row(f"s{n % 19}", detail=f"{n}"))
        dev.tell(a_move(n, "s1"))
    shelf = dev.service.shelf
    eventually(lambda: shelf.news and shelf.news[-1].id == 3000)
    assert 20 == len(shelf.rows)
    assert len(shelf.changed) <= 20
    assert 1000 == len(shelf.news)


def test_hostile_messages_are_counted_and_change_nothing(there: nats.Server, pair: Pair) -> None:
    """Junk, a row of another session, control characters, names that are none."""
    laptop = pair.laptop
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


ESCAPE, MARK = "\x1b]0;owned\x07", "<U+001B>]0;owned<U+0007>"


@pytest.mark.parametrize(
    ("sent", "reply"),
    [
        (
            {"ok": 1, "why": ESCAPE, "text": ESCAPE, "rows": [ESCAPE], "deep": {ESCAPE: None}},
            {"ok": False, "text": MARK, "rows": [MARK], "deep": {MARK: None}},
        ),
        (  # the server would drop it, and who asked would wait in vain
            {"ok": True, "text": "x" * (2 << 20)},
            {"ok": False, "why": "the reply is too long for the fleet: 2048 kB"},
        ),
    ],
    ids=["hidden characters", "too long"],
)
def test_a_reply_of_any_shape_is_shown_or_refused(
    pair: Pair, sent: dict[str, Any], reply: dict[str, Any]
) -> None:
    dev, laptop = pair
    dev.reply = sent
    assert reply == laptop.service.ask("dev", "preview", {"session_id": "s"}).result(PATIENCE)


# ---------------------------------------------------------------- who may do what


@pytest.fixture
def team(fleet: Fleet) -> Fleet:
    """Members: dev and box publish, alice reads and answers, bob reads, carol sees box only."""
    fleet.admit(
        Grant("dev", "", frozenset({"publish"}), "dev"),
        Grant("box", "", frozenset({"publish"}), "box"),
        Grant("alice", "", frozenset({"read", "answer"})),
        Grant("bob", "", frozenset({"read"})),
        Grant("carol", "", frozenset({"read"}), only=("box",)),
    )
    return fleet


MAY_NOT = "may not {} on dev: ask whoever set up the fleet"
S, CHOICE = {"session_id": "s"}, {"session_id": "s", "choice": "allow"}
ASKED: list[tuple[str, str, dict[str, Any], str]] = [
    ("alice", "answer", CHOICE, ""),
    ("bob", "answer", CHOICE, f"bob {MAY_NOT.format('answer')}"),
    ("bob", "turn", S, f"bob {MAY_NOT.format('read replies')}"),
    ("bob", "request", {**S, "contents": True}, ""),
    ("alice", "request", {**S, "contents": True}, ""),
    ("carol", "request", {}, f"carol {MAY_NOT.format('request')}"),
]


def test_a_member_sees_and_answers_what_it_may(team: Fleet) -> None:
    """Each learns why not; only who may answer sees what a file holds."""
    dev, box, alice, bob = map(team.join, ("dev", "box", "alice", "bob"))
    dev.show(a_row("s", "blocked"))
    box.show(a_row("b"))
    members = {"alice": alice, "bob": bob, "carol": team.join("carol", follow=("box",))}
    for member, what in members.items():
        sees(what, "box", {"b": "working"})
        sees(what, "dev", {} if member == "carol" else {"s": "blocked"})
    told = [members[who].service.ask("dev", do, fields).result(30) for who, do, fields, _ in ASKED]
    assert [why for *_, why in ASKED] == [reply.get("why", "") for reply in told]
    assert {"ok": True, "text": "done"} == told[0]
    asked = [("alice", "answer", None), ("bob", "request", False), ("alice", "request", True)]
    assert asked == [(m, do, fields.get("contents")) for m, do, fields in dev.asked]
    assert {} == dev.service.notes == alice.service.notes


def test_who_sits_at_a_screen_counts_for_the_machines_that_it_sees(team: Fleet) -> None:
    """Carol's screen is one for box; alice's is one for all, and may notify."""
    dev, box, alice = map(team.join, ("dev", "box", "alice"))
    carol = team.join("carol", follow=("box",))
    dev.show(a_row("s", "blocked"))
    sees(alice, "dev", {"s": "blocked"})
    eventually(lambda: not (dev.service.is_followed or box.service.is_followed))
    carol.service.show_screen(True)
    eventually(lambda: box.service.is_followed)
    assert not dev.service.is_followed
    alice.service.show_screen(True)
    eventually(lambda: dev.service.is_followed)
    assert claims(alice, "1")
    eventually(lambda: {} == dev.service.notes == alice.service.notes)


@pytest.mark.parametrize(
    ("machine", "member", "about", "why"),
    [
        ("nosy", "carol", "fleet reading", ("carol may not read all machines",)),
        ("dev", "box", "fleet publishing", ("box may not publish as dev",)),
        ("box", "box", "fleet", ("others may read", "chmod 600")),  # as with keys of SSH
    ],
    ids=["of all machines", "under another name", "with credentials that others can read"],
)
def test_what_a_member_may_not_is_refused_and_named_in_health(
    team: Fleet, machine: str, member: str, about: str, why: tuple[str, ...]
) -> None:
    team.join("dev").show(a_row("s"))
    sees(team.join("bob"), "dev", {"s": "working"})  # who reads before that is refused nothing
    if about == "fleet":
        Path(team.creds(member)).chmod(0o644)
    peer = team.join(machine, member)
    if about != "fleet reading":
        peer.show(a_row("forged"))
    note = eventually(lambda: peer.service.notes.get(about))
    assert [] == [words for words in why if words not in note], note
    assert {} == peer.rows


def test_a_revoked_member_is_out_at_once(team: Fleet) -> None:
    """The member reports why; others go on, and once readmitted, the member catches up."""
    dev, alice, bob = map(team.join, ("dev", "alice", "bob"))
    dev.show(a_row("s"))
    for member in (alice, bob):
        sees(member, "dev", {"s": "working"})
    team.server.reload(team.accounts(without="bob"))
    note = eventually(lambda: "refuses" in (n := bob.service.notes.get("fleet", "")) and n)
    assert "revoked" in note and team.creds("bob") in note
    dev.show(a_row("s", "blocked"))
    sees(alice, "dev", {"s": "blocked"})
    eventually(lambda: bob.lost.get("dev"))
    assert {"s": "working"} == bob.statuses("dev")
    team.server.reload(team.accounts())
    eventually(lambda: "no account" in bob.service.notes.get("fleet", ""))
    team.server.reload(team.accounts())  # nats-server 2.9 gives a new account its imports only now
    sees(bob, "dev", {"s": "blocked"})


def test_a_creds_file_of_nats_is_taken(fleet: Fleet, tmp_path: Path) -> None:
    """Its JWT is signed by an account, whose permissions count, as `nsc` makes it."""
    operator = Operator()
    fleet.server.kill()
    fleet.server.accounts = operator.settings
    fleet.server.start()
    dev = fleet.join(
        "dev", creds=str(operator.user(tmp_path / "dev.creds", [">"], [">"])), reads=False
    )
    own = ("ask.*.request.*.*", "claim.*.*", "screen.>", "tick.*")
    looks = ["$JS.API.>", *(f"bellboard.t.{x}" for x in own)]
    file = operator.user(tmp_path / "laptop.creds", looks, ["bellboard_seen.t.>"])
    laptop = fleet.join("laptop", creds=str(file), publishes=False)
    dev.show(a_row("s", "blocked"))
    sees(laptop, "dev", {"s": "blocked"})
    assert laptop.service.ask("dev", "request", {"session_id": "s"}).result(30)["ok"]
    refused = laptop.service.ask("dev", "answer", {"session_id": "s"}).result(30)
    assert "may not answer on dev" in refused["why"]
    eventually(lambda: {} == dev.service.notes == laptop.service.notes)
