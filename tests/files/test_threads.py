"""Threads of the event loop, and the main thread that waits for its end."""

from __future__ import annotations

import asyncio
import os
import select
import socket
import threading

import pytest

from bellboard.system import ending
from bellboard.system.ending import attended
from bellboard.system.threads import Thread, call_in
from rig.waiting import PATIENCE


def test_a_thread_runs_and_ends() -> None:
    done: list[int] = []
    thread = Thread(done.append, args=(1,))
    thread.start()
    thread.join(10)
    assert [1] == done
    assert not thread.is_alive()


def test_a_loop_is_called_back_until_it_has_ended() -> None:
    done: list[int] = []
    loop = asyncio.new_event_loop()
    assert call_in(loop, done.append, 1)
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    assert not call_in(loop, done.append, 2)
    assert [1] == done


class PollOfMacOS:
    """`poll_nocancel` of XNU: a descriptor without events is not watched, and hangs up in silence.

    Where only a hang-up is asked for, an unread byte ends the poll, and is not reported.
    """

    def __init__(self) -> None:
        self._poll, self._asked = real_poll(), 0

    def register(self, fd: int, events: int) -> None:
        if events:
            self._poll.register(fd, events | select.POLLIN if events & select.POLLHUP else events)
            self._asked = events

    def poll(self, timeout: float | None = None) -> list[tuple[int, int]]:
        said = self._asked | select.POLLHUP | select.POLLERR  # the latter: of a pipe, on Linux
        return [(fd, n & said) for fd, n in self._poll.poll(timeout) if n & said]


real_poll = select.poll


@pytest.mark.parametrize("system", ["this one", "macOS"])
@pytest.mark.parametrize("held", ["a pipe that it writes", "a socket with unread bytes"])
def test_what_runs_ends_when_its_reader_is_gone(
    monkeypatch: pytest.MonkeyPatch, system: str, held: str
) -> None:
    """A hanging process ends, too: `bellboard watch

    head -1`, and a host without its Neovim.
    """
    if system == "macOS":
        monkeypatch.setattr(select, "poll", PollOfMacOS)
        monkeypatch.setattr(ending, "LOOK", 50)
    over, hangs = threading.Event(), threading.Event()
    if held.startswith("a pipe"):
        theirs, ours = os.pipe()
    else:
        pair = socket.socketpair()
        pair[0].send(b"x")
        theirs, ours = (each.detach() for each in pair)
    closing = threading.Timer(0.2, os.close, (theirs,))
    closing.start()
    try:
        attended(lambda: hangs.wait(PATIENCE) and None, over.set, ours)
        assert over.is_set()
    finally:
        hangs.set()
        closing.join()
        os.close(ours)
