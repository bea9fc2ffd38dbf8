"""One link to another machine: its thread, its tries, its connection, and what it refuses."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shlex
import time
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest

from bellboard.hosting.far_evidence import Follower
from bellboard.hosting.link import JITTER, LONGEST, SHARE, SHORTEST, Link
from bellboard.storage.machines import Mailbox
from bellboard.system.failures import Backoff
from rig.home import Home
from rig.host.far_feed import FarFeed
from rig.host.hosting import NoThread, running
from rig.waiting import eventually


class FollowedDev:
    """A link to dev, without a host, and the evidence that it makes."""

    def __init__(
        self, dev: FarFeed, command: Callable[..., list[str]], mailbox: Mailbox | None = None
    ) -> None:
        self.lines: list[Any] = []
        self.follower = Follower("dev", self.lines.append, time.time)
        self.mailbox = mailbox or Mailbox(dev.folder.parent / "board", "dev")
        self.link = Link(command, self.follower, self.mailbox, lambda: None)

    def is_up(self) -> None:
        eventually(lambda: self.follower.is_up, "the link")

    def says(self, why: str) -> None:
        def look() -> bool:
            assert why in self.link.why
            return True

        eventually(look)

    def ask(self) -> str:
        name = self.mailbox.ask({"do": "stop", "session_id": "s1"})
        self.link.wake()
        return name


@contextlib.contextmanager
def followed(
    dev: FarFeed, command: Callable[..., list[str]] | None = None, mailbox: Mailbox | None = None
) -> Iterator[FollowedDev]:
    made = FollowedDev(dev, command or (lambda *_: dev.command), mailbox)
    with running(made.link):
        yield made


# ---------------------------------------------------------------- tries


def test_a_shared_connection_that_hangs_is_left_alone(
    dev: FarFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next try makes its own, and at once."""
    monkeypatch.setattr("bellboard.hosting.link.GREETING", 0.3)
    tried: list[bool] = []

    def command(cursor: str, shared: bool, slow: bool) -> list[str]:
        tried.append(shared)
        return ["sleep", "60"] if shared else dev.command

    with followed(dev, command) as machine:
        machine.is_up()
        assert tried[0] and True not in tried[1:]


def test_a_machine_that_logs_in_slowly_gets_more_time(dev: FarFeed) -> None:
    """Such a machine is behind another one, or busy; one that cannot be reached is tried often."""
    tried: list[bool] = []

    def command(cursor: str, shared: bool, slow: bool) -> list[str]:
        tried.append(slow)
        why = "Connection to dev port 22" if len(tried) > 1 else "ssh: connect to host dev port 22:"
        return dev.command if slow else ["sh", "-c", f"echo {why} timed out >&2; exit 255"]

    with followed(dev, command) as machine:
        machine.is_up()
        assert tried == [False, False, True]


def test_after_a_sleep_the_link_is_made_again(
    dev: FarFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection may be dead, which nobody reports, and the shown rows are old."""
    slept = 0.0
    monkeypatch.setattr("bellboard.hosting.link.clock", lambda: time.monotonic() + slept)
    monkeypatch.setattr("bellboard.hosting.link.QUIET", 600.0)

    def sleeps() -> bool:  # again, for something may have come right after that
        nonlocal slept
        slept += 3600
        return len(dev.pids) > 1

    with followed(dev) as machine:
        machine.is_up()
        eventually(sleeps, "another connection")
        machine.is_up()


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
    dev: FarFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A feed may fail right after its state: each try is a login."""
    monkeypatch.setattr("bellboard.hosting.link.SHORTEST", 0.1)
    monkeypatch.setattr("bellboard.hosting.link.SHARE", 1.0)  # each pause doubles
    tried: list[float] = []

    def command(cursor: str, shared: bool, slow: bool) -> list[str]:
        tried.append(time.monotonic())
        return ["sh", "-c", 'cat "$0"; sleep 0.05', str(dev.folder / "says")]

    with followed(dev, command):
        eventually(lambda: len(tried) > 5, "six tries")
        assert tried[5] - tried[4] > 2 * (tried[1] - tried[0])


# ---------------------------------------------------------------- what this machine runs out of


class NoneLeft(Mailbox):
    """A mailbox of a process that has no descriptors left to look for requests."""

    left = False

    def take(self) -> Iterator[tuple[str, dict[str, Any]]]:
        if not self.left:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return super().take()


def test_a_link_goes_on_once_there_are_descriptors_again(dev: FarFeed, home: Home) -> None:
    """The thread never ends before the link does: nobody else follows the machine meanwhile."""
    mailbox = NoneLeft(home.bellboard, "dev")
    with followed(dev, mailbox=mailbox) as machine:
        machine.says(os.strerror(errno.EMFILE))
        mailbox.left = True
        machine.is_up()
        assert "" == machine.link.why


def test_a_link_without_a_thread_leaves_nothing_open(
    dev: FarFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bellboard.hosting.link.Thread", NoThread)
    before = psutil.Process().num_fds()
    for _ in range(3):
        with pytest.raises(RuntimeError):
            FollowedDev(dev, lambda *_: [])
    assert before == psutil.Process().num_fds()


def test_requests_that_are_never_replied_to_do_not_block_those_after_them(
    dev: FarFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The askers have given up by then."""
    monkeypatch.setattr("bellboard.hosting.link.MOST_PENDING", 2)
    with followed(dev) as machine:
        machine.is_up()
        for _ in range(2):
            machine.ask()
        eventually(lambda: len(dev.asked) == 2, "two requests")
        refused = machine.ask()
        reply = eventually(lambda: machine.mailbox.take_reply(refused), "a reply")
        assert "has not replied to earlier requests" in reply["why"]
        monkeypatch.setattr("bellboard.hosting.link.OLD", 0.0)
        machine.ask()
        eventually(lambda: len(dev.asked) == 3, "the next request")


# ---------------------------------------------------------------- hostile feeds

HELLO, STATE = {"feed": 1, "type": "hello", "now": 1}, {"type": "state", "now": 1, "cursor": "d.1"}
BEAT = shlex.quote(json.dumps({"type": "beat", "now": 1, "cursor": "d.1"}))
IDS = [f"s{n}" for n in range(3000)]
ROWS = [{"session_id": sid, "agent": "claude", "status": "idle"} for sid in IDS]


def change(begin: int, end: int, *removed: str) -> dict[str, Any]:
    message = {"type": "change", "now": 1, "cursor": f"d.{end}", "removed": removed}
    return {**message, "sessions": ROWS[begin:end]}


#: What a feed prints, what its command prints then, why it is not followed, and how many it showed.
HOSTILE: dict[str, tuple[list[dict[str, Any] | bytes], str, str, int]] = {
    "junk": ([b"\xff\0\x1b[31m\n" * 20_000], "", "prints something other than a feed", 0),
    "a long line": ([b"x" * (2 << 20)], "", "a line of more than 1024 kB", 0),
    "another protocol": ([{**HELLO, "feed": 9}], "", "protocol 9", 0),
    "no hello": ([{**STATE, "all": []}], "", "which protocol", 0),
    "too many sessions": ([HELLO, {**STATE, "all": IDS}], "", "3000 sessions", 0),
    "ever more sessions": (  # a line that removes some makes room for as many
        [
            *(HELLO, {**STATE, "all": []}, change(0, 1000), change(1000, 2000)),
            *(change(2000, 2001, "s0"), change(2000, 2500)),
        ],
        *("", "2499 sessions; at most 2000 can", 2001),
    ),
    "a problem": ([{"type": "problem", "text": "no \x1b[31mdisk"}], "", "no disk", 0),
    "no end of words": (
        *([b"one more ping\n"], "exec yes ''"),
        *("other than a feed, such as: one more ping", 0),
    ),
    "no state": (
        *([HELLO], f"while :; do echo {BEAT}; sleep 0.05; done"),
        *("does not send its sessions", 0),
    ),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_feed_that_cannot_be_followed_ends_and_says_why(
    dev: FarFeed, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Steady output does not hide that it is not a feed, or that its sessions are unknown."""
    said, then, why, count = HOSTILE[what]
    dev.restart(*said)
    if then:  # of a shell: a Python may not start in that time
        monkeypatch.setattr("bellboard.hosting.link.GREETING", 0.5)
    argv = ["sh", "-c", f"cat '{dev.folder}/says'; {then}"] if then else dev.command
    with followed(dev, lambda *_: argv) as machine:
        machine.says(why)
        assert "\x1b" not in machine.link.why
    rows = [line["far"]["row"] for line in machine.lines if "row" in line.get("far", {})]
    assert {row["session_id"] for row in rows} == {*IDS[:count]}


def test_a_long_greeting_does_not_end_a_link(dev: FarFeed) -> None:
    """A login shell may print a changelog."""
    dev.restart(b"Welcome! There is much to know about this machine.\n" * 5000)
    dev.say(dev.hello(), dev.moved("s1", "working"), dev.state())
    with followed(dev) as machine:
        machine.is_up()
