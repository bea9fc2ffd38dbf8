"""The files in which programs of this machine ask others, and get replies."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from bellboard.storage.mailbox import Mailbox
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
        assert {"ok": True} == eventually(
            lambda name=name: mailbox.take_reply(name), within=5.0, pause=0
        )


def test_replies_that_nobody_took_do_not_pile_up(tmp_path: Path) -> None:
    """Whoever asked has died: they are removed while the link is up, too."""
    mailbox = Mailbox(tmp_path, "dev")
    mailbox.reply("1.1.1", {"ok": True})
    mailbox.reply("2.1.1", {"ok": True})
    os.utime(mailbox.replied / "1.1.1", (1, 1))
    assert [] == list(mailbox.take())
    assert ["2.1.1"] == [path.name for path in mailbox.replied.iterdir()]


def test_what_is_no_request_is_removed_and_the_others_are_taken(tmp_path: Path) -> None:
    """A folder in its place, for example."""
    mailbox = Mailbox(tmp_path, "dev")
    name = mailbox.ask({"do": "stop"})
    (mailbox.asked / "1.1.1").mkdir()
    assert [(name, {"do": "stop"})] == list(mailbox.take())
    assert [] == list(mailbox.asked.iterdir())
