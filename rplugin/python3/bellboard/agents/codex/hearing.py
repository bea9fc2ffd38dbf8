"""Listen to what a shared server of Codex says of its threads, over one connection; ask nothing.

The server tells every client when the state of any thread changes; nothing more is subscribed to,
and no thread is resumed.  A Python thread waits for the next message, so a server at rest costs
nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection
from typing import Final

from ...core.untrusted import Facts, number_of
from ...system.threads import Thread, call_in
from ..cli import Unanswered, Unreachable
from ..dialect import Heard
from .dialect.states import heard, state_of
from .talking import Refused, Talk, conversation

PATIENCE: Final = 2.5  # seconds until it takes part in a conversation; it takes 5 ms
SILENCE: Final = 86400.0  # seconds after which a silent server is greeted again
LIMIT: Final = 8 << 20  # bytes of a message, including those that nobody waits for


class Hearing:
    """Calls `hears` in the event loop with each state and its time, and `ended` with why it ended.

    The states of `threads`, to which others may still be added, are read at the beginning; their
    time is 0, as they may be old.
    """

    def __init__(
        self,
        pid: int,
        threads: Collection[str],
        hears: Callable[[Heard, float], None],
        ended: Callable[[str], None],
    ) -> None:
        self._pid, self._threads = pid, threads
        self._hears, self._ended = hears, ended
        self._loop = asyncio.get_running_loop()
        self._talk: Talk | None = None
        self._is_over = False
        self._loop.call_soon(self._start)  # all sessions of a host that starts are attended at once

    def _start(self) -> None:
        if self._is_over:
            return
        try:
            Thread(target=self._run, name="bellboard codex").start()
        except RuntimeError as reason:  # there are too many
            self._ended(str(reason))

    def close(self) -> None:
        """Hang up; nothing is called any more."""
        self._is_over = True
        if self._talk is not None:
            self._talk.wire.hang_up()

    def _run(self) -> None:
        why = ""
        try:
            with conversation(self._pid, PATIENCE, LIMIT) as talk:
                self._talk = talk
                self._begin(talk)
                while not self._is_over:
                    for message in talk.said:
                        self._take(message)
                    talk.said.clear()
                    talk.wire.renew(SILENCE, LIMIT)
                    talk.hear()
        except Unreachable:
            pass  # most servers that editors start have no socket
        except Unanswered as reason:
            why = str(reason)
        self._call(self._ended, why)

    def _begin(self, talk: Talk) -> None:
        for thread in tuple(self._threads):
            with contextlib.suppress(Refused):  # it has been unloaded
                read = talk.call("thread/read", {"threadId": thread}).get("thread")
                seen = state_of(read.get("status")) if isinstance(read, dict) else None
                if seen is not None:
                    self._call(self._hears, Heard(thread, seen), 0.0)

    def _take(self, message: Facts) -> None:
        said = heard(message)
        if said is not None:
            at = number_of(message.get("emittedAtMs")) or 0.0
            self._call(self._hears, said, at / 1000)

    def _call(self, function: Callable[..., None], *given: object) -> None:
        def call() -> None:
            if not self._is_over:
                function(*given)

        call_in(self._loop, call)
