"""Run the blocking part of an errand without hanging the program or delaying its exit.

In a program with an event loop it runs beside the loop.  A command has nothing to do meanwhile: it
runs its errand with `at_once`, as loading asyncio takes longer than most errands.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Mapping
from contextvars import ContextVar
from typing import Any, Final, TypeVar

from ..system.files import MayHang, stay_near
from ..system.mounts import MOUNTS
from ..system.threads import Thread, call_in

DEADLINE: Final = 3.0  # seconds; a check takes 1 ms, or 200 ms in another process
MOST: Final = 32  # threads at a time: what they read may hang
_alone: Final = ContextVar("whether no event loop runs the errand", default=False)

_threads: Final[list[Thread]] = []  # that may still run

T = TypeVar("T")
Given = Mapping[str, Any]  # what an errand is about, and its details
Reply = dict[str, Any]  # what happened
Outcome = tuple[bool, Any]  # whether it succeeded; its result or its error


class Declined(Exception):
    """The request is not carried out; the text says why."""


class Unheard(Declined):
    """It did not end in time, and may still be carried out."""


def at_once(errand: Coroutine[Any, Any, T]) -> T:
    """Run an errand that waits only with `beside` and `sleep`, without an event loop."""
    before = _alone.set(True)
    try:
        errand.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    finally:
        _alone.reset(before)
    errand.close()
    raise RuntimeError("this errand needs an event loop")


async def sleep(seconds: float) -> None:
    if _alone.get():
        time.sleep(seconds)
        return
    import asyncio

    await asyncio.sleep(seconds)


async def beside(work: Callable[[], T]) -> T:
    """Run `work` in a daemon thread: reading a foreign file may hang, and must not delay exit.

    It must be picklable: on some mounts it runs in another process.
    """
    outcome = _waited(work) if _alone.get() else await _looped(work)
    if outcome is None:
        raise Unheard(
            f"timed out after {DEADLINE:.0f} s: a program or a mount hangs;"
            " check your mounts, then try again"
        )
    succeeded, result = outcome
    if not succeeded:
        raise result
    return result  # type: ignore[no-any-return]


def _waited(work: Callable[[], object]) -> Outcome | None:
    """Return the outcome, or None if there is none in time."""
    found: list[Outcome] = []
    _started(lambda: found.append(_outcome(work))).join(DEADLINE)
    return found[0] if found else None


async def _looped(work: Callable[[], object]) -> Outcome | None:
    """Do the same, and let the event loop run meanwhile."""
    import asyncio

    loop = asyncio.get_running_loop()
    done: asyncio.Future[Outcome] = loop.create_future()

    def settle(outcome: Outcome) -> None:
        if not done.done():
            done.set_result(outcome)

    def run() -> None:
        call_in(loop, settle, _outcome(work))

    _started(run)
    try:
        return await asyncio.wait_for(done, DEADLINE)
    except (TimeoutError, asyncio.TimeoutError):
        return None


def _started(run: Callable[[], None]) -> Thread:
    """Start a thread, unless the maximum number of them hang."""
    _threads[:] = [each for each in _threads if each.is_alive()]
    if len(_threads) >= MOST:
        raise Declined(
            "too many requests are waiting for a program or a mount that does not respond;"
            " check your mounts, then try again"
        )
    thread = Thread(target=run, name="bellboard errand")
    thread.start()
    _threads.append(thread)
    return thread


def _outcome(work: Callable[[], object]) -> Outcome:
    try:
        return True, _reached(work)
    except Exception as error:
        return False, error


def _reached(work: Callable[[], T]) -> T:
    stay_near(MOUNTS)
    try:
        return work()
    except MayHang:  # on a mount where even a thread could hang for ever
        from ..system.separate import Separate

        separate = Separate()
        try:
            return separate.call(work)
        finally:
            separate.close()
