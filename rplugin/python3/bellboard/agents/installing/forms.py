"""How a file holds our hooks: among those of others, or as a file of our own.

This file does no I/O.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from . import hooktext
from .comments import source_of
from .hooktext import Before, Handler, Malformed, Ours
from .jsontext import MARK

WHOLE: Final = "*"  # stands for the events of a file of our own


class Found(NamedTuple):
    """Our hooks in a text, by event."""

    there: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    outdated: tuple[str, ...] = ()  # they run another script than the kept one
    other: tuple[str, ...] = ()  # they have other limits, as an older version wrote them


class Form(ABC):
    """What belongs in a file, and how to put it in and take it out."""

    #: The events of what is put in.
    events: tuple[str, ...]

    @abstractmethod
    def put_in(self, text: str | None, before: Before) -> tuple[str, Before]:
        """Return the text with our hooks, and what was there before."""

    @abstractmethod
    def take_out(self, text: str, before: Before | None) -> str | None:
        """Return the text without our hooks, or None if there was no file before."""

    @abstractmethod
    def look(self, text: str) -> Found:
        """Return which of our hooks are in a text."""

    @abstractmethod
    def is_kept(self, old: str | None, new: str | None) -> bool:
        """Return whether everything that is not ours is in both; ValueError if that is unknown."""

    def is_altered(self, text: str) -> bool:
        """Return whether a file that is to be removed has more than what we wrote."""
        return False


@dataclass(frozen=True)
class Beside(Form):
    """In a JSON file that lists everybody's hooks."""

    handlers: Mapping[str, Handler]
    ours: Ours
    comments: bool = False  # whether the CLI allows them in it
    events: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", tuple(self.handlers))

    def put_in(self, text: str | None, before: Before) -> tuple[str, Before]:
        return hooktext.put_in(text, self.handlers, self.ours, before, self.comments)

    def take_out(self, text: str, before: Before | None) -> str | None:
        return hooktext.take_out(text, self.ours, before, self.comments)

    def look(self, text: str) -> Found:
        entries = hooktext.entries(text, self.ours, self.comments)
        there = {entry.event: entry for entry in entries if entry.whole}
        known = {event: there[event] for event in there if event in self.handlers}
        command = {e: entry.command == self.handlers[e]["command"] for e, entry in known.items()}
        return Found(
            there=tuple(there),
            missing=tuple(event for event in self.handlers if event not in there),
            outdated=tuple(event for event, same in command.items() if not same),
            other=tuple(
                event
                for event, entry in known.items()
                if command[event] and not self.handlers[event].items() <= entry.members.items()
            ),
        )

    def is_kept(self, old: str | None, new: str | None) -> bool:
        one, other = (source_of(text or "", self.comments) for text in (old, new))
        if one.comments != other.comments:
            raise ValueError("a comment among the hooks of bellboard would be lost; move it")
        return bool(self._others(one.plain) == self._others(other.plain))

    def _others(self, text: str) -> Any:
        settings = json.loads(text.removeprefix(MARK).strip() or "{}")
        return hooktext.without(settings, self.ours)


@dataclass(frozen=True)
class Alone(Form):
    """A file of our own, among the files of others."""

    content: str
    ours: Ours
    mark: str = ""  # how it begins, if it is a program
    events = (WHOLE,)

    def put_in(self, text: str | None, before: Before) -> tuple[str, Before]:
        if text is None or not text.strip():
            return self.content, {"file": text}
        self._expect_ours(text)
        return self.content, before

    def take_out(self, text: str, before: Before | None) -> str | None:
        return (before or {}).get("file") if self._is_ours(text) else text

    def look(self, text: str) -> Found:
        if not text.strip():
            return Found(missing=self.events)
        self._expect_ours(text)
        return Found(there=self.events, outdated=() if text == self.content else self.events)

    def is_kept(self, old: str | None, new: str | None) -> bool:
        return True  # all of it is ours

    def is_altered(self, text: str) -> bool:
        return text != self.content

    def _expect_ours(self, text: str) -> None:
        if not self._is_ours(text):
            raise Malformed("it is not a file of bellboard; move it away")

    def _is_ours(self, text: str) -> bool:
        if self.mark:
            return text.startswith(self.mark)
        try:
            hooks = json.loads(text)["hooks"]
            commands = list(_commands(hooks))
        except (ValueError, KeyError, TypeError, RecursionError):
            return False
        return bool(commands) and all(map(self.ours, commands))


def _commands(hooks: Any) -> Iterator[str]:
    """Yield what each handler runs, or "" if that is unknown."""
    for handlers in hooks.values() if isinstance(hooks, dict) else ():
        for handler in handlers:
            given = handler if isinstance(handler, dict) else {}
            command = given.get("bash", given.get("command"))
            yield command if isinstance(command, str) else ""
