"""The rules that the table in `machine.py` names, by topic.

A rule changes the record of a session in place and returns None, or changes nothing relevant and
returns why it refused.  Its docstring is the reason that `bellboard explain` prints.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..events import Event
from ..options import Options
from ..session import Session

Rule = Callable[[Session, Event, Options], "str | None"]

RULES: Final[dict[str, Rule]] = {}  # those of the topics that are loaded, by name


def rule(made: Rule) -> Rule:
    """Register a rule where it is written."""
    name = made.__name__
    if name in RULES:
        raise TypeError(f"two rules are called {name}")
    RULES[name] = made
    return made
