"""Threads of the event loop."""

from __future__ import annotations

import asyncio

import pytest

from bellboard.system.threads import Thread, call_in

pytestmark = pytest.mark.files


class Dies(Thread):
    """It ends before it says that it runs, as when memory runs out."""

    def _bootstrap(self) -> None:
        return


def test_a_thread_that_dies_as_it_starts_is_not_waited_for() -> None:
    """The event loop goes on; whoever wanted the thread tries again."""
    with pytest.raises(RuntimeError, match="a thread did not start"):
        Dies(print).start()


def test_a_thread_runs_and_ends() -> None:
    done: list[int] = []
    thread = Thread(done.append, args=(1,))
    thread.start()
    thread.join(10)
    assert [1] == done
    assert thread.daemon


def test_a_loop_is_called_back_until_it_has_ended() -> None:
    done: list[int] = []
    loop = asyncio.new_event_loop()
    assert call_in(loop, done.append, 1)
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    assert not call_in(loop, done.append, 2)
    assert [1] == done
