"""The dialect of Qwen Code."""

from __future__ import annotations

from typing import Final

from ...dialect import Dialect
from .hooks import KINDS, hook
from .request import request
from .titles import at_rest, titled


class QwenDialect(Dialect):
    """See `Dialect`."""

    key = "qwen"
    kinds = KINDS
    has_titles = True

    event = staticmethod(hook)
    titled = staticmethod(titled)
    at_rest = staticmethod(at_rest)
    request = staticmethod(request)


DIALECT: Final = QwenDialect()
