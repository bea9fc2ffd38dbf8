"""The dialect of Codex, whose parts are each decoded in a file of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ....core.events import Event, Origin
from ....core.request import Answer, Request
from ...dialect import Dialect
from .hooks import hook
from .names import KINDS
from .request import reply, request


class CodexDialect(Dialect):
    """See `Dialect`."""

    key = "codex"
    kinds = KINDS
    variables: ClassVar[Mapping[str, str]] = {}

    def event(
        self, payload: bytes, t: float, clock: float, origin: Origin, truncated: bool = False
    ) -> Event:
        return hook(payload, t, clock, origin, truncated)

    def request(
        self, payload: bytes, name: str, t: float, origin: Origin, truncated: bool = False
    ) -> Request | None:
        return request(payload, name, t, origin, truncated)

    def reply(self, payload: bytes, answer: Answer) -> bytes:
        return reply(payload, answer)
