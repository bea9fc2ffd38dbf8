"""Ask the machines of sessions for the right to send notifications; each is granted once.

In a fleet its server is asked, even about our own sessions; about these we notify if nobody
replies, as nobody else can then.  Another machine that cannot be asked is asked once it is followed
again, if the notification is still due: perhaps nobody there has sent it meanwhile.

The right is granted to this machine: all of its hosts ask with one token, so repeating a request is
harmless.  Once granted, they claim the notification here, and whichever gets it sends it at once.
So a host that dies while it waits takes nothing with it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..core.clock import is_recent
from ..core.deadlines import NEVER
from ..core.notices import Notice
from ..core.session import Session, published_status
from .beside import Declined
from .elsewhere import Elsewhere

LONGEST_PAUSE: Final = 60.0  # seconds between two requests


@dataclass
class Wish:
    """A notification that needs a grant."""

    notice: Notice
    session: Session
    token: str
    send: Callable[[], object]
    asked: float = 0.0  # when it last could not be granted or refused
    pause: float = 1.0  # seconds from then to the next try


class Grants:
    """Asks for grants, and collects what is granted; `replied` is called after each request."""

    def __init__(self, home: Path, replied: Callable[[], object]) -> None:
        self._elsewhere, self._replied = Elsewhere(home), replied
        self._asking: set[asyncio.Task[None]] = set()
        self._unasked: list[Wish] = []
        self._granted: list[Wish] = []

    def ask(self, notice: Notice, s: Session, token: str, send: Callable[[], object]) -> None:
        """Ask the machine of a session to grant a notification to our machine."""
        self._start(Wish(notice, s, token, send))

    def take(self, sessions: Mapping[str, Session]) -> list[Wish]:
        """Return, once, what was granted and is still due."""
        granted, self._granted = self._granted, []
        return [wish for wish in granted if _is_due(wish, sessions)]

    def put_back(self, wishes: list[Wish]) -> None:
        """Keep what could not be claimed yet."""
        self._granted = [*wishes, *self._granted]

    def ask_again(self, sessions: Mapping[str, Session], now: float) -> float:
        """Ask again for what is still due; return the seconds until the next time."""
        wishes, self._unasked, wait = self._unasked, [], NEVER
        for wish in wishes:
            if not _is_due(wish, sessions):
                continue
            s = sessions[wish.notice.session_id]
            if not (is_recent(wish.asked, now, wish.pause) or s.stale):
                self._start(wish)
                continue
            self._unasked.append(wish)
            if not s.stale:
                wait = min(wait, wish.asked + wish.pause - now)
        return wait

    def _start(self, wish: Wish) -> None:
        task = asyncio.get_running_loop().create_task(self._ask(wish))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _ask(self, wish: Wish) -> None:
        notice, s = wish.notice, wish.session
        effect = f"notice {notice.channel}"
        about = {"status": notice.status, "effect": effect, "token": wish.token}
        try:
            if (await self._elsewhere.claim(s, about)).get("granted") is True:
                self._granted.append(wish)
        except Declined:
            if not s.machine:
                self._granted.append(wish)
            else:
                wish.asked, wish.pause = time.time(), min(2 * wish.pause, LONGEST_PAUSE)
                self._unasked.append(wish)
        self._replied()


def _is_due(wish: Wish, sessions: Mapping[str, Session]) -> bool:
    """Return whether the session still has the status that the notification is about."""
    s = sessions.get(wish.notice.session_id)
    return s is not None and published_status(s) == wish.notice.status
