"""The dialect of Codex, whose parts are each decoded in a file of their own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from ....core.events import Event, Origin
from ....core.untrusted import Facts, text_of
from ...dialect import Dialect, Seen
from .hooks import hook
from .log import entry, is_noise
from .names import KINDS, SERVER
from .request import on_disk, reply, request
from .states import heard

#: Its user chooses what its title has, in which order: the spinner may be anywhere, or missing.
_SPINS: Final = re.compile("(?:^| )[\u2801-\u28ff](?: |$)")
_ASKS: Final = re.compile(r"\[ [!.] \] Action Required(?: |$)")


class CodexDialect(Dialect):
    """See `Dialect`."""

    key = "codex"
    kinds = KINDS
    has_titles = True

    event = staticmethod(hook)
    entry = staticmethod(entry)
    is_noise = staticmethod(is_noise)
    heard = staticmethod(heard)
    on_disk = staticmethod(on_disk)
    request = staticmethod(request)
    reply = staticmethod(reply)

    def account(self, record: Facts, about: Event) -> Event:
        cwd, origin = text_of(record, "cwd"), Origin(self.key, about.pid)
        return replace(about, name="registry", cwd=cwd, origin=origin)

    def titled(self, text: str) -> Seen | None:
        if _SPINS.search(text):
            return Seen("busy")
        return Seen("waiting", "choice") if _ASKS.match(text) else Seen("idle")

    def serves(self, argv: Sequence[str]) -> bool:
        return SERVER in argv[1:]


DIALECT: Final = CodexDialect()
