"""The dialect of Claude Code, whose parts are each decoded in a file of their own."""

from __future__ import annotations

from collections.abc import Sequence

from ....core.events import AGENT, Event, Origin
from ....core.lenient import Facts
from ....core.request import Answer, Request
from ...dialect import About, Dialect, Press, Seen
from .entries import decoded
from .hooks import hook
from .names import KINDS, VARIABLES
from .pressing import press
from .reply import reply
from .request import SETTINGS, request
from .screens import read
from .session_file import account


class ClaudeDialect(Dialect):
    """See `Dialect`."""

    key = AGENT
    kinds = KINDS
    variables = VARIABLES
    rules = f"permissions.allow in {SETTINGS}"

    def event(
        self, payload: bytes, t: float, clock: float, origin: Origin, truncated: bool = False
    ) -> Event:
        return hook(payload, t, clock, origin, truncated)

    def account(self, record: Facts, about: Event) -> Event:
        return account(record, about)

    def entry(self, session_id: str, entry: Facts, t: float, now: float) -> Event:
        return decoded(session_id, entry, t, now)

    def on_screen(self, rows: Sequence[str]) -> Seen | None:
        return read(rows)

    def request(
        self, payload: bytes, name: str, t: float, origin: Origin, truncated: bool = False
    ) -> Request | None:
        return request(payload, name, t, origin, truncated)

    def reply(self, payload: bytes, answer: Answer) -> bytes:
        return reply(payload, answer)

    def press(self, screen: Sequence[str], request: Request, answer: Answer, about: About) -> Press:
        return press(screen, request, answer, about)
