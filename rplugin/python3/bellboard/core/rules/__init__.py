"""The rules that the table in `machine.py` names, by topic.

A rule changes the record of a session in place and returns None, or changes nothing relevant and
returns why it refused.  Its docstring is the reason that `bellboard explain` prints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from ..events import Event
from ..options import Options
from ..session import Session
from . import crew, ends, far, life, people, questions, screen, statements, transcript, turn

Rule = Callable[[Session, Event, Options], "str | None"]

TOPICS: Final = (life, turn, ends, questions, crew, statements, transcript, screen, people, far)


def named(names: Iterable[str]) -> dict[str, Rule]:
    """Return the rules with these names."""
    return {name: _rule(name) for name in names}


def _rule(name: str) -> Rule:
    rule: Rule = next(vars(topic)[name] for topic in TOPICS if name in vars(topic))
    return rule
