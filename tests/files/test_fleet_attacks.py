"""What a member can make anybody say: the server, its streams, an honest machine.

The admin listens to everything in the account of the team, and so do two honest members in theirs,
while a member of each role tries every way to each subject.  Nothing may come but what it may say.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import msgspec
import pytest

from bellboard.fleet.nats_wire import NatsWire
from bellboard.fleet.permits import ADMIN, Grant, allowed
from bellboard.fleet.subjects import Key, Subjects
from bellboard.fleet.team_reader import look_at_team
from rig.machines import nats
from rig.machines.fleets import Fleet, Peer, a_row, sees
from rig.waiting import eventually

pytest.importorskip("nats")
pytestmark = [
    pytest.mark.skipif(not nats.program(), reason="nats-server is not installed"),
]

S = Subjects("t")
NUMBER = "0123456789abcdef"
EVIL = Key("eve", "claude", "evil")
VICTIM = Key("dev", "claude", "s")
ANSWER = msgspec.json.encode({"session_id": "s", "choice": "allow", "do": "answer"})
FORGED = msgspec.json.encode({"row": {"session_id": "s", "agent": "claude", "status": "error"}})

#: Everything that somebody of us believes, or that changes what the server keeps.
SUBJECTS = (
    *(S.row(VICTIM), S.row(Key("dev")), S.moved(VICTIM)),
    *(S.ask("dev", "answer", "alice", NUMBER), S.ask("dev", "stop", "eve", NUMBER)),
    *(S.ask("box", "request", "carol", NUMBER), S.reply("dev", "alice", NUMBER)),
    *(S.reply("dev", "eve", NUMBER), S.screen("", "alice", "x"), S.screen("dev", "alice", "x")),
    *(S.claim("dev", "0" * 40), S.tick("alice")),
)
AIMS = (
    *SUBJECTS,
    *(S.seen(x) for x in SUBJECTS),
    *(f"$JS.API.STREAM.{do}.{S.rows}" for do in ("PURGE", "DELETE", "UPDATE", "MSG.DELETE")),
    *(f"$JS.API.STREAM.{do}.{S.claims}" for do in ("PURGE", "DELETE")),
    *("$JS.ACK.x", "_R_.x", "_GR_.x", "$SYS.REQ.SERVER.PING", "_INBOX.alice.x"),
)

ROLES = {
    "publish": Grant("eve", "", frozenset({"publish"}), "eve"),
    "read": Grant("eve", "", frozenset({"read"})),
    "read box only": Grant("eve", "", frozenset({"read"}), only=("box",)),
    "publish, read": Grant("eve", "", frozenset({"publish", "read"}), "eve"),
    "answer box only": Grant("eve", "", frozenset({"read", "answer"}), only=("box",)),
    "publish, read, answer": Grant("eve", "", frozenset({"publish", "read", "answer"}), "eve"),
}
HONEST = (
    Grant("dev", "", frozenset({"publish"}), "dev"),
    Grant("box", "", frozenset({"publish", "read"}), "box"),
    Grant("alice", "", frozenset({"read", "answer"})),
    Grant("carol", "", frozenset({"read"}), only=("box",)),
)


@pytest.fixture(params=ROLES)
def eve(fleet: Fleet, request: pytest.FixtureRequest) -> Grant:
    """An attacker with some role, in a fleet with honest members."""
    grant = ROLES[request.param]
    fleet.admit(*HONEST, grant)
    return grant


class Attacker:
    """A member that is no bellboard, over its own connection."""

    def __init__(self, wire: NatsWire) -> None:
        self.wire = wire

    async def say(
        self, to: str, body: bytes = b"", reply: str = "", headers: dict[str, str] | None = None
    ) -> None:
        """Publish anything, as raw as the server takes it."""
        await self.wire._client._send_publish(to, reply, body, len(body), headers)

    async def send(self, command: bytes) -> None:
        """Send a command of the protocol as it stands."""
        await self.wire._client._send_command(command)

    async def flush(self) -> None:
        """Wait until the server has read all of it; it may not have thrown us out before."""
        await self.wire._client.flush(10)

    async def respond(self, message: Any) -> None:
        """Use any right to respond."""
        if message.reply:
            with contextlib.suppress(Exception):
                await self.wire.publish(message.reply, ANSWER)


Attack = Callable[[Attacker, Peer], Awaitable[None]]


@contextlib.asynccontextmanager
async def attacking(fleet: Fleet) -> AsyncIterator[Attacker]:
    """Yield an attacker that has said something of its own."""
    eve = Attacker(await fleet.wire("eve"))
    await eve.wire.subscribe(">", eve.respond, 1 << 16)
    await eve.say(S.row(EVIL), ANSWER)
    yield eve
    await eve.wire.close()


async def attack(eve: Attacker, aim: str) -> None:
    """Try each way to make somebody publish to a subject."""
    own, get = S.row(EVIL), f"$JS.API.DIRECT.GET.{S.rows}."
    for body in (ANSWER, FORGED, b""):
        await eve.say(aim, body)
        await eve.say(aim, body, "_INBOX.alice.x")
        for subject in (own, S.row(Key("eve")), S.moved(EVIL), S.tick("eve")):
            await eve.say(subject, body, aim)
        for where in (S.get(own), get + own, S.get(S.row(VICTIM)), get + S.row(VICTIM)):
            await eve.say(where, body, aim)
        await eve.say(f"$JS.API.DIRECT.GET.{S.rows}", b'{"seq":1}', aim)
        await eve.say(f"$JS.API.STREAM.MSG.GET.{S.rows}", b'{"seq":1}', aim)
    for name in (S.rows, S.relay, S.claims):
        await eve.say(S.info(name), b'{"subjects_filter":">"}', aim)
        await eve.say(f"$JS.API.STREAM.INFO.{name}", b"", aim)
    for machine in ("dev", "box", "eve"):
        for do in ("request", "preview", "clock", "answer", "stop"):
            await eve.say(S.ask(machine, do, "eve", NUMBER), ANSWER, aim)
            await eve.say(S.ask(machine, do, "alice", NUMBER), ANSWER, aim)
    for machine in ("dev", "box"):
        await eve.say(S.reply(machine, "alice", NUMBER), ANSWER, aim)
        await eve.say(S.claim(machine, "1" * 40), b"", aim)
        await eve.say(S.screen(machine, "eve", "x"), b"", aim)
    for stream in (S.rows, S.relay):
        await deliver(eve, stream, own, aim)
    for more in (
        {"republish": {"src": ">", "dest": aim}},
        {"mirror": {"name": S.rows}},
        {"sources": [{"name": S.rows, "external": {"api": "$JS.API", "deliver": aim}}]},
    ):
        config = {"name": "evil", "subjects": ["evil.>"], "storage": "memory", **more}
        await eve.say("$JS.API.STREAM.CREATE.evil", msgspec.json.encode(config), aim)
        config = {"name": S.rows, "subjects": [S.rows_of()], "storage": "file", **more}
        await eve.say(f"$JS.API.STREAM.UPDATE.{S.rows}", msgspec.json.encode(config), aim)
    for header in (
        {"Nats-Rollup": "all"},
        {"Nats-Rollup": "sub", "Nats-Subject": aim},
        {"Nats-Request-Info": '{"acc":"bellboard_t","svc":"bellboard_t"}', "Nats-Sequence": "9"},
        {"Nats-Msg-Id": "x", "KV-Operation": "PURGE", "Status": "503"},
    ):
        for subject in (own, S.tick("eve"), S.info(S.rows), S.get(own)):
            await eve.say(subject, FORGED, aim, header)
    await eve.flush()


async def deliver(eve: Attacker, stream: str, subject: str, aim: str) -> None:
    """Have a consumer deliver there, pushing or fetched, under each name that its API may have."""
    config = {"name": "c", "durable_name": "c", "filter_subject": subject, "ack_policy": "none"}
    config |= {"deliver_policy": "all", "replay_policy": "instant"}
    pushed = msgspec.json.encode(
        {"stream_name": stream, "config": {**config, "deliver_subject": aim}}
    )
    pulled = msgspec.json.encode({"stream_name": stream, "config": config})
    for api in ("$JS.API", "bellboard.t"):
        for body in (pushed, pulled):
            for end in (f"CREATE.{stream}", f"CREATE.{stream}.c.{subject}"):
                await eve.say(f"{api}.CONSUMER.{end}", body, aim)
            await eve.say(f"{api}.CONSUMER.DURABLE.CREATE.{stream}.c", body, aim)
        await eve.say(f"{api}.CONSUMER.MSG.NEXT.{stream}.c", b'{"batch":9,"no_wait":true}', aim)


class Ear:
    """All that comes in the account of a member."""

    def __init__(self) -> None:
        self.heard: set[str] = set()

    async def take(self, message: Any) -> None:
        self.heard.add(message.subject)


def is_in(subject: str, filters: list[str]) -> bool:
    """Return whether a filter matches a subject."""
    tokens = subject.split(".")

    def one(filter_: str) -> bool:
        for n, part in enumerate(parts := filter_.split(".")):
            if part == ">":
                return n < len(tokens)
            if n >= len(tokens) or part not in ("*", tokens[n]):
                return False
        return len(parts) == len(tokens)

    return any(map(one, filters))


def test_nobody_can_be_made_to_say_what_a_member_may_not(fleet: Fleet, eve: Grant) -> None:
    """A member may publish anything for any reply: the team hears it under the member's name."""
    may, ears = allowed(S, eve), {m: Ear() for m in (ADMIN, "dev", "alice")}

    async def main() -> tuple[int, int]:
        wires = {m: await fleet.wire(m) for m in ears}
        for subject in (S.row(VICTIM), S.row(Key("dev"))):
            await wires["dev"].put(subject, FORGED)
        before = (await wires[ADMIN].info(S.rows))["state"]["last_seq"]
        for m, ear in ears.items():
            await wires[m].subscribe(">", ear.take, 1 << 20)
            await wires[m]._client.flush()
        async with attacking(fleet) as attacker:
            for aim in AIMS:
                await attack(attacker, aim)
            await asyncio.sleep(0.3)
            left = await wires[ADMIN].info(S.rows, {"subjects_filter": S.rows_of("dev")})
        for wire in wires.values():
            await wire.close()
        return len(left["state"]["subjects"]), before

    assert (2, 2) == asyncio.run(main())
    # The server's own: to the accounts of those who asked, and what no member may hear.
    own = ["_R_.>", "_INBOX.admin.>", "$JS.EVENT.>"]
    said = [*may.say, *map(S.seen, may.say), *may.look.values()]
    assert set() == {x for x in ears[ADMIN].heard if not is_in(x, [*said, *own])}
    for member in ("dev", "alice"):
        hears = allowed(S, fleet.grants[member]).hear
        heard = {x for x in ears[member].heard if not is_in(x, [f"_INBOX.{member}.>"])}
        assert set() == {x for x in heard if not is_in(x, hears)}
        assert set() == {x for x in heard if not is_in(x, list(map(S.seen, may.say)))}
    assert S.tick("eve") in ears[ADMIN].heard, "the attacker was not even connected"


# ---------------------------------------------------------------- what honest machines believe


async def every_way(eve: Attacker, alice: Peer) -> None:
    """Try each way to each subject."""
    for aim in SUBJECTS:
        await attack(eve, aim)


HEADERS = (
    *(b"NATS/1.0 503\r\n\r\n", b"NATS/1.0 \xff\xff\xff\r\n\r\n", b"NATS/1.0 404 x\r\n\r\n"),
    *(b"NATS/1.0\r\nStatus: 503\r\n\r\n", b"NATS/1.0\r\n:\r\n\r\n", b"NATS/1.0\r\n\r\n"),
    b"NATS/1.0\r\n\xff\xfe: \x00\r\nNats-Sequence: 9\xff\r\n\r\n",
    b"NATS/1.0\r\nNats-Sequence: "
    + b"9" * 400
    + b"\r\nNats-Subject: bellboard.t.row.dev.beat\r\n\r\n",
    b"NATS/1.0\r\n" + b"x: y\r\n" * 100 + b"KV-Operation: DEL\r\n\r\n",
)


async def headers(eve: Attacker, alice: Peer) -> None:
    """Send rows, transitions, requests and replies with headers at which nats-py would hang up."""
    for n, head in enumerate(HEADERS):
        keys = [Key("eve", "claude", f"{n}"), Key("eve")]
        asks = [S.ask("dev", "stop", "eve", f"{n:016}"), S.reply("eve", "alice", NUMBER)]
        for to in (*map(S.row, keys), *map(S.moved, keys[:1]), *asks):
            size = f"{len(head)} {len(head) + len(FORGED)}"
            await eve.send(f"HPUB {to} {size}\r\n".encode() + head + FORGED + b"\r\n")
    await eve.flush()
    info = await eve.wire.info(S.rows, {"subjects_filter": S.rows_of("eve")})
    assert len(info["state"]["subjects"]) > len(HEADERS) // 2, "the server took none"


async def flood(eve: Attacker, alice: Peer) -> None:
    """Send thousands of requests, replies and screens.

    One of 65 once broke the connection of who got it.
    """
    for n in range(500):
        await eve.say(S.ask("dev", "request", "eve", f"{n:016x}"), b"{}")
        await eve.say(S.reply("eve", "alice", f"{n:016x}"), b"{}")
    for n in range(5000):
        await eve.say(S.screen("dev", "eve", f"{n}"))
    await eve.flush()


async def blanks(eve: Attacker, alice: Peer) -> None:
    """Send subjects with blanks that the server takes as a part of them.

    Some once ended a subject for nats-py, and chose the reader of a message: a reply to alice.
    """

    async def say(subject: bytes) -> None:
        await eve.send(b'PUB %b 27\r\n{"ok":true,"text":"forged"}\r\n' % subject)

    async def number_asked() -> str:
        told = await eve.wire.info(S.relay, {"subjects_filter": S.ask("nobody", "*", "alice")})
        return next(iter(told["state"].get("subjects") or ()), "").rpartition(".")[2]

    for space in (b"\x0b", b"\x0c"):
        for to in (S.row(Key("eve", "claude", "x")), S.moved(Key("eve", "claude", "x"))):
            await say(to.encode() + space + b"x")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bellboard.fleet.requests.ANSWER", 3.0)
        asked = alice.service.ask("nobody", "answer", {"session_id": "s"})
        while not ((number := await number_asked()) or asked.done()):
            await asyncio.sleep(0.05)
        for sid in range(1, 32):
            await say(f"{S.rows_of('eve')[:-1]}nobody.alice.{number}\x0b{sid}".encode())
        await eve.flush()
        told = await asyncio.wrap_future(asked)
    assert str(told.get("why")).startswith("nobody did not reply within"), told


class Slow(Peer):
    """A machine that takes long to carry out the attacker's request."""

    async def _do(self, member: str, do: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        reply = await super()._do(member, do, fields)
        await asyncio.sleep(10 if member == "eve" else 0)
        return reply


@pytest.mark.parametrize(
    ("eve", "attacks"),
    [
        *((role, every_way) for role in ROLES),
        *(("publish, read, answer", headers), ("publish", blanks)),
        *(("publish", flood), ("read", flood)),
    ],
    indirect=["eve"],
)
def test_honest_machines_believe_nothing_of_it(fleet: Fleet, eve: Grant, attacks: Attack) -> None:
    """While a machine publishes, and somebody follows it and asks: both see the truth."""
    dev, alice = (fleet.join(m, kind=Slow) for m in ("dev", "alice"))
    dev.show(a_row("s", "blocked"))
    sees(alice, "dev", {"s": "blocked"})
    wires = [p.service._wire for p in (dev, alice)]

    async def main() -> None:
        async with attacking(fleet) as attacker:
            await attacks(attacker, alice)

    asyncio.run(main())
    dev.show(a_row("later"))
    truth = {"s": "blocked", "later": "working"}
    for member in (alice, fleet.join("late", "alice")):
        sees(member, "dev", truth)
    reply = alice.service.ask("dev", "answer", {"session_id": "s"}).result(30)
    assert {"ok": True, "text": "done"} == reply
    mays = {is_asked(x) for x in allowed(S, eve).say}
    for member, do, _ in dev.asked:
        assert (member, do) == ("alice", "answer") or (member == "eve" and mays & {do, "*"})
    assert {} == {p.machine: p.service.notes for p in fleet.peers if p.service.notes}
    assert wires == [p.service._wire for p in (dev, alice)], "it had to connect again"


def is_asked(subject: str) -> str:
    """Return the request to dev under a subject."""
    tokens = subject.split(".")
    return tokens[4] if tokens[2] == "ask" and tokens[3] in ("*", "dev") else ""


@pytest.mark.parametrize("eve", ["publish"], indirect=True)
def test_who_makes_its_list_too_long_is_left_out(
    fleet: Fleet, eve: Grant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those who come later once connected again and again, and saw nobody."""
    monkeypatch.setattr("bellboard.fleet.nats_wire.LARGEST", 1 << 20)
    dev = fleet.join("dev")

    async def fill() -> None:
        async with attacking(fleet) as attacker:
            for n in range(400):
                await attacker.say(S.row(Key("eve", "claude", f"{n}{'x' * 3000}")), b"{}")
            await attacker.wire.put(S.row(Key("eve")), b"{}")  # answered once all before is stored

    dev.show(a_row("s"))
    eventually(lambda: not dev.service.shelf.changed)
    asyncio.run(fill())
    late = fleet.join("late", "alice")
    eventually(lambda: late.service.followed.is_read)
    sees(late, "dev", {"s": "working"})
    assert {"eve"} == {*late.service.followed.refused}
    found, why = asyncio.run(look_at_team(late.service.joined))
    assert ("", {"dev", "eve"}) == (why, {*found}), "as `bellboard fleet status` shows it"
