"""Processes that may be left behind: nobody waits for them, or for what they inherited."""

from __future__ import annotations

import os
import signal
import time

import pytest

from bellboard.system import separate


def test_one_that_is_left_behind_keeps_only_what_it_was_given() -> None:
    """A reader of another descriptor of ours does not wait for its end."""
    read, write = os.pipe()
    kept, keep = os.pipe()
    pid, answer = separate.begin(lambda end: (os.write(end, b"x"), time.sleep(600)), keep=keep)
    try:
        assert os.read(answer, 1) == b"x"
        os.close(write)
        os.close(keep)
        assert os.read(read, 1) == b""
        os.set_blocking(kept, False)
        with pytest.raises(BlockingIOError):
            os.read(kept, 1)
        assert separate.reap(pid, 0.05) == 0
    finally:
        os.kill(pid, signal.SIGKILL)
        assert separate.reap(pid) == signal.SIGKILL
        for descriptor in (read, kept, answer):
            os.close(descriptor)


def test_its_end_is_waited_for_even_if_the_system_reaps_it() -> None:
    """Our parent may ignore SIGCHLD, which programs inherit."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        pid, answer = separate.begin(lambda end: os.write(end, b"y"))
        assert os.read(answer, 2) == b"y"
        assert os.read(answer, 2) == b""
        assert separate.reap(pid) == 0
        os.close(answer)
    finally:
        signal.signal(signal.SIGCHLD, before)
