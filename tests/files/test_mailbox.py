"""The files in which programs of this machine ask others, and get replies."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

from bellboard.core.feed import FeedState, Gone, Of
from bellboard.hosting.fleet import Members, Post
from bellboard.storage.machines import Mailbox
from bellboard.system.watch import Watch
from rig.host.hosting import made
from rig.machines.ssh import set_followed
from rig.waiting import eventually

REPLIES = 1000


def test_no_reply_is_lost_to_whoever_looks_for_it_at_that_moment(tmp_path: Path) -> None:
    """A reply once came between the look and a removal of unreadable files, and was removed."""
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
    """The asker has died: such replies are removed while the link is up, too."""
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


def test_no_request_to_a_linked_machine_goes_to_one_of_that_name_in_the_fleet(
    tmp_path: Path,
) -> None:
    """The fleet's machine may have been followed before."""
    members = Members(made(tmp_path), {}, lambda: None)
    post = Post(tmp_path, members)
    asked: list[str] = []

    def send() -> None:
        asked.extend(str(request["machine"]) for _, request in post.take())

    async def asks() -> None:
        watch = Watch(lambda paths: None)
        for name in ("dev", "box"):
            members.take(Of(name, FeedState(1.0, "a.1", ("s1",))))
        assert post.listen(watch) and not post.listen(watch)
        for name in ("dev", "box"):
            Mailbox(tmp_path, name).ask({"do": "stop"})
        set_followed(tmp_path, {"dev": ["ssh", "dev"]})
        send()
        members.take(Of("box", Gone()))
        post.listen(watch)
        Mailbox(tmp_path, "box").ask({"do": "stop"})  # no longer followed
        send()
        assert asked == ["box"]
        set_followed(tmp_path, {})
        send()

    asyncio.run(asks())
    assert asked == ["box", "dev"]


def test_a_reply_of_the_fleet_goes_to_who_asked(tmp_path: Path) -> None:
    """A request may be about a machine, or about the fleet itself."""
    members = Members(made(tmp_path), {}, lambda: None)
    post = Post(tmp_path, members)
    members.take(Of("dev", FeedState(1.0, "a.1", ("s1",))))

    async def ask() -> None:
        post.listen(Watch(lambda paths: None))
        for machine in (".fleet", "dev"):
            mailbox = Mailbox(tmp_path, machine)
            name = mailbox.ask({"do": "claim"})
            ((number, request),) = post.take()
            assert request == {"do": "claim", **({"machine": "dev"} if machine == "dev" else {})}
            post.reply(number, {"ok": True, "of": machine})
            assert mailbox.take_reply(name) == {"ok": True, "of": machine}

    asyncio.run(ask())
