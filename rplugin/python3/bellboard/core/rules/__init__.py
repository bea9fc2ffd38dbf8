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
from . import crew, files, people, questions, turns

Rule = Callable[[Session, Event, Options], "str | None"]

TOPICS: Final = (turns, turns, turns, questions, crew, files, files, questions, people, people)


def named(names: Iterable[str]) -> dict[str, Rule]:
    """Return the rules with these names."""
    return {name: _rule(name) for name in names}


def _rule(name: str) -> Rule:
    rule: Rule = next(vars(topic)[name] for topic in TOPICS if name in vars(topic))
    return rule
