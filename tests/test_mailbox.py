"""The files in which programs of this machine ask others, and get replies."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bellboard.fleet.member import Joined
from bellboard.hosting.outgoing import Outgoing
from bellboard.storage.machines import Mailbox
from bellboard.system.watch import Watch
from rig.machines import set_followed
from rig.waiting import eventually

pytestmark = pytest.mark.files

REPLIES = 1000


def test_no_reply_is_lost_to_whoever_looks_for_it_at_that_moment(tmp_path: Path) -> None:
    """It came between the look and the removal of what could not be read, and was removed."""
    mailbox = Mailbox(tmp_path, "dev")
    names = [str(n) for n in range(REPLIES)]
    asked = threading.Semaphore(0)

    def reply() -> None:
        for name in names:
            asked.acquire()
            mailbox.reply(name, {"ok": True})

    threading.Thread(target=reply, daemon=True).start()
    for name in names:
        asked.release()
        assert {"ok": True} == eventually(lambda name=name: mailbox.take_reply(name), pause=0)


def test_replies_that_nobody_took_do_not_pile_up(tmp_path: Path) -> None:
    """Whoever asked has died: they are removed while the link is up, too."""
    mailbox = Mailbox(tmp_path, "dev")
    mailbox.reply("1.1.1", {"ok": True})
    mailbox.reply("2.1.1", {"ok": True})
    os.utime(mailbox.replied / "1.1.1", (1, 1))
    assert [] == list(mailbox.take())
    assert ["2.1.1"] == [path.name for path in mailbox.replied.iterdir()]


def test_anything_but_a_request_is_removed_and_the_requests_are_taken(tmp_path: Path) -> None:
    """A folder in its place, for example."""
    mailbox = Mailbox(tmp_path, "dev")
    name = mailbox.ask({"do": "stop"})
    (mailbox.asked / "1.1.1").mkdir()
    assert [(name, {"do": "stop"})] == list(mailbox.take())
    assert [] == list(mailbox.asked.iterdir())


class Service:
    """A fleet that notes what it is asked."""

    joined = Joined("nats://x", "t", "here")

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def ask(
        self, machine: str, do: str, fields: Mapping[str, Any]
    ) -> concurrent.futures.Future[Mapping[str, Any]]:
        self.asked.append((machine, do))
        return concurrent.futures.Future()


def test_no_request_to_a_linked_machine_goes_to_one_of_that_name_in_the_fleet(
    tmp_path: Path,
) -> None:
    """Not even if the fleet's was followed before."""
    service = Service()

    async def asks() -> None:
        outgoing = Outgoing(tmp_path, Watch(lambda paths: None), service)  # type: ignore[arg-type]
        outgoing.listen(["dev", "box"])
        for name in ("dev", "box"):
            Mailbox(tmp_path, name).ask({"do": "stop"})
        set_followed(tmp_path, {"dev": ["ssh", "dev"]})
        outgoing.send()
        outgoing.listen(["dev"])
        Mailbox(tmp_path, "box").ask({"do": "stop"})  # no longer followed
        outgoing.send()
        assert service.asked == [("box", "stop")]
        set_followed(tmp_path, {})
        outgoing.send()

    asyncio.run(asks())
    assert service.asked == [("box", "stop"), ("dev", "stop")]
