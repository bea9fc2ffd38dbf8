"""One link to another machine: its thread, its tries and its connection."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from bellboard.hosting.far_evidence import Follower
from bellboard.hosting.link import JITTER, LONGEST, SHARE, SHORTEST, Link
from bellboard.storage.machines import Mailbox
from bellboard.system.failures import Backoff
from far_feed import FarFeed
from hosting import NoThread, made, running
from rig.home import Home
from rig.waiting import eventually

pytestmark = [pytest.mark.files]


def test_a_shared_connection_that_hangs_is_left_alone(
    dev: FarFeed, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next try makes its own, and at once."""
    monkeypatch.setattr("bellboard.hosting.link.GREETING", 0.3)
    tried: list[bool] = []

    def command(cursor: str, shared: bool, slow: bool) -> list[str]:
        tried.append(shared)
        return ["sleep", "60"] if shared else dev.command

    follower = Follower("dev", lambda line: None, time.time)
    link = Link(command, follower, Mailbox(home.bellboard, "dev"), lambda: None)
    with running(link):
        eventually(lambda: follower.is_up)
        assert tried[0] and True not in tried[1:]


def test_a_machine_that_logs_in_slowly_gets_more_time(dev: FarFeed, home: Home) -> None:
    """It is behind another machine, or busy; a machine that cannot be reached is tried often."""
    tried: list[bool] = []

    def command(cursor: str, shared: bool, slow: bool) -> list[str]:
        tried.append(slow)
        why = "Connection to dev port 22" if len(tried) > 1 else "ssh: connect to host dev port 22:"
        return dev.command if slow else ["sh", "-c", f"echo {why} timed out >&2; exit 255"]

    follower = Follower("dev", lambda line: None, time.time)
    link = Link(command, follower, Mailbox(home.bellboard, "dev"), lambda: None)
    with running(link):
        eventually(lambda: follower.is_up)
        assert tried == [False, False, True]


def test_after_a_sleep_the_link_is_made_again(
    dev: FarFeed, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection may be dead, which nobody reports, and the shown rows are old."""
    slept = 0.0
    monkeypatch.setattr("bellboard.hosting.link.clock", lambda: time.monotonic() + slept)
    monkeypatch.setattr("bellboard.hosting.link.QUIET", 600.0)
    follower = Follower("dev", lambda line: None, time.time)
    mailbox = Mailbox(home.bellboard, "dev")
    link = Link(lambda cursor, shared, slow: dev.command, follower, mailbox, lambda: None)

    def sleeps() -> bool:  # again, for something may have come right after that
        nonlocal slept
        slept += 3600
        return len(dev.pids) > 1

    with running(link):
        eventually(lambda: follower.is_up)
        eventually(sleeps, "another connection")
        eventually(lambda: follower.is_up)


class NoneLeft(Mailbox):
    """No descriptors are left to look for requests."""

    left = False

    def take(self) -> Iterator[tuple[str, dict[str, Any]]]:
        if not self.left:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return super().take()


def test_a_link_goes_on_once_there_are_descriptors_again(dev: FarFeed, home: Home) -> None:
    """The thread never ends before the link does: nobody else follows the machine meanwhile."""
    follower = Follower("dev", lambda line: None, time.time)
    mailbox = NoneLeft(home.bellboard, "dev")
    link = Link(lambda cursor, shared, slow: dev.command, follower, mailbox, lambda: None)
    with running(link):
        eventually(lambda: os.strerror(errno.EMFILE) in link.why)
        mailbox.left = True
        eventually(lambda: follower.is_up)
        assert "" == link.why


def test_a_link_without_a_thread_leaves_nothing_open(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bellboard.hosting.link.Thread", NoThread)
    made(home.bellboard)
    follower, mailbox = Follower("dev", lambda _: None, time.time), Mailbox(home.bellboard, "dev")
    before = psutil.Process().num_fds()
    for _ in range(3):
        with pytest.raises(RuntimeError):
            Link(lambda *_: [], follower, mailbox, lambda: None)
    assert before == psutil.Process().num_fds()


def test_a_machine_that_is_back_is_tried_soon() -> None:
    """A start may take two minutes; a machine that is away for long costs a try a minute."""

    def apart(down: float) -> list[float]:
        since = time.monotonic() - down
        every = (SHORTEST, LONGEST, SHARE, JITTER, 1, since)
        return [Backoff(*every).fail() for _ in range(100)]

    for down, longest in ((0, 1.25), (60, 1.26), (120, 2.51), (86400, 75)):
        assert max(apart(down)) <= longest
    assert min(apart(86400)) >= 45


def test_a_feed_that_ends_again_and_again_is_tried_less_often(
    dev: FarFeed, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A feed may fail right after its state: each try is a login."""
    monkeypatch.setattr("bellboard.hosting.link.SHORTEST", 0.1)
    monkeypatch.setattr("bellboard.hosting.link.SHARE", 1.0)  # each pause doubles
    says = str(dev.folder / "says")
    tried: list[float] = []

    def command(cursor: str, shared: bool, slow: bool) -> list[str]:
        tried.append(time.monotonic())
        return ["sh", "-c", 'cat "$0"; sleep 0.05', says]

    follower = Follower("dev", lambda line: None, time.time)
    link = Link(command, follower, Mailbox(home.bellboard, "dev"), lambda: None)
    with running(link):
        eventually(lambda: len(tried) > 5, "six tries")
        assert tried[5] - tried[4] > 2 * (tried[1] - tried[0])
