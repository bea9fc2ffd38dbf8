"""Load what decodes events soon after the start: an update may replace it while a host runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Final

from ..agents.dialects import KEYS, dialect_of
from ..core.deadlines import NEVER
from ..system.awake import clock

#: Loaded late otherwise: `backlog.py` and `secrets.py` need them for few files.
CODE: Final = (".hosting.decoding", ".core.shellwords")
PACKAGE: Final = __name__.rpartition(".hosting.")[0]
REST: Final = 1.0  # seconds after the first round
APART: Final = 0.2  # seconds from one to the next: each takes up to 5 ms


class Loading:
    """Loads one part after the other, and nothing while the host starts."""

    def __init__(self) -> None:
        parts: list[Callable[[], object]] = [partial(import_module, x, PACKAGE) for x in CODE]
        parts += [partial(dialect_of, key) for key in KEYS]
        self._left = iter(parts)
        self._due = 0.0

    def run(self) -> float:
        """Load the next one if it is due; return the seconds until the next call."""
        now = clock()
        if not self._due:
            self._due = now + REST
        elif now >= self._due:
            self._due = now + APART
            if (load := next(self._left, None)) is None:
                self._due = NEVER
            else:
                with contextlib.suppress(Exception):  # noted when an event needs it
                    load()
        return self._due - now
