"""How members of a fleet come back: after each end of a connection, everything is read again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from bellboard.core.feed import MOST
from bellboard.fleet.member import Credentials, Joined
from bellboard.fleet.nats_wire import Down, NatsWire, is_set
from bellboard.fleet.streams import Stored, ensure, read_stored, stored_subjects
from bellboard.fleet.subjects import Key, Subjects
from rig.machines import nats
from rig.machines.fleets import Fleet, a_row, sees
from rig.waiting import PATIENCE, eventually

pytestmark = [
    pytest.mark.skipif(not nats.program(), reason="nats-server is not installed"),
]

SUBJECTS = Subjects("t")


@asynccontextmanager
async def wired(url: str) -> Any:
    """Yield a connection to a server that has the streams of a team."""
    wire = NatsWire(Joined(url, "t", "test"), Credentials("test"), lambda subject: None)
    await wire.open()
    try:
        await ensure(wire, SUBJECTS)
        yield wire
    finally:
        await wire.close()


async def constantly(act: Callable[[], Coroutine[Any, Any, object]]) -> None:
    while True:
        await asyncio.gather(*(act() for _ in range(random.choice((1, 3, 16)))))


async def everything(wire: NatsWire) -> set[str]:
    """Return the subjects of all rows that one reads."""
    found: list[Stored] = []
    stored = await stored_subjects(wire, SUBJECTS.rows, SUBJECTS.rows_of("dev"))
    await read_stored(wire, SUBJECTS.rows, stored, found.append)
    assert all(item.data for item in found)
    return {item.subject for item in found}


@pytest.mark.parametrize("is_quiet", [False, True])
def test_a_reader_knows_when_it_has_everything(there: nats.Server, is_quiet: bool) -> None:
    """The end comes neither too early nor never, also while rows are written again and again."""
    keys = [Key("dev", "claude", f"s{n}") for n in range(60)]

    async def main() -> list[int]:
        async with AsyncExitStack() as open_:
            wire, other = [await open_.enter_async_context(wired(there.url)) for _ in range(2)]
            for key in keys:
                await wire.put(SUBJECTS.row(key), b"x")
            write = lambda: wire.put(SUBJECTS.row(random.choice(keys)), b"y")  # noqa: E731
            writing = asyncio.ensure_future(constantly(write))
            if is_quiet:
                writing.cancel()
            counts = [len(await everything(other)) for _ in range(20)]
            writing.cancel()
        return counts

    assert [len(keys)] * 20 == asyncio.run(main())


@pytest.mark.parametrize("count", [0, 255, 256, 257, 512])
def test_any_number_of_rows_is_everything(there: nats.Server, count: int) -> None:
    """The number may be none, or as many as are fetched at once."""

    async def main() -> int:
        async with wired(there.url) as wire:
            for n in range(count):
                await wire.put(SUBJECTS.row(Key("dev", "claude", f"s{n}")), b"x")
            return len(await everything(wire))

    assert count == asyncio.run(main())


def test_what_has_ended_leaves_room_for_what_runs(fleet: Fleet) -> None:
    """The server keeps a mark of each session that ended for as long as a row."""

    async def ended(count: int) -> None:
        async with wired(fleet.server.url) as wire:
            for n in range(count):
                key = Key("dev", "claude", f"a{n}")
                await wire._client.publish(SUBJECTS.row(key), b"", headers={"KV-Operation": "DEL"})
            await wire._client.flush(10)

    asyncio.run(ended(2 * MOST))
    dev = fleet.join("dev", reads=False)
    dev.show(a_row("s", "blocked"))
    for name in ("early", "late"):
        reader = fleet.join(name, publishes=False)
        eventually(lambda reader=reader: reader.service.followed.is_read)
        sees(reader, "dev", {"s": "blocked"})
        reader.close()


def test_who_is_ended_just_as_something_happens_ends() -> None:
    """A task that waits for an event is cancelled at each moment after it was set."""

    async def main() -> list[int]:
        left = []
        for turns in range(6):
            event = asyncio.Event()

            async def work(event: asyncio.Event = event) -> None:
                while True:
                    event.clear()
                    await is_set(event, 60.0)

            task = asyncio.ensure_future(work())
            await asyncio.sleep(0.01)
            event.set()
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait((task,), timeout=PATIENCE)
            if not task.done():
                left.append(turns)
                task.cancel()
        return left

    assert [] == asyncio.run(main())


def test_a_connection_that_ends_with_a_write_is_noticed(there: nats.Server) -> None:
    """nats-py then closes it, and calls nobody: the write raises before that."""

    async def fails() -> None:
        raise ConnectionResetError

    async def main() -> None:
        async with wired(there.url) as wire:
            breaking = asyncio.ensure_future(wire.breaks())
            client = wire._client
            client._pending_data_size, client._transport.drain = 1, fails
            there.kill()
            with pytest.raises(Down):
                await asyncio.wait_for(breaking, PATIENCE)

    asyncio.run(main())


@pytest.mark.parametrize("stream", ["rows", "relay"])
def test_what_the_server_loses_is_made_again(
    fleet: Fleet, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody deletes a stream of the team: those who write and those who read go on."""
    monkeypatch.setattr("bellboard.fleet.service.CHECK", 1.0)
    dev, laptop = fleet.join("dev", reads=False), fleet.join("laptop", publishes=False)

    async def lose() -> None:
        async with wired(fleet.server.url) as wire:
            await wire.call(f"$JS.API.STREAM.DELETE.{getattr(SUBJECTS, stream)}")

    dev.show(a_row("s"))
    sees(laptop, "dev", {"s": "working"})
    asyncio.run(lose())
    dev.show(a_row("s", "blocked"), a_row("new"))
    sees(laptop, "dev", {"s": "blocked", "new": "working"})
