"""Notes for health: the problems of a part of a host, by topic, pushed when they change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar


class Notes(dict[str, str]):
    """The notes of a part; health reads those of all parts only after a change."""

    changes: ClassVar = 0  # in the notes of this process

    def say(self, topic: str, text: str) -> None:
        """Note that something is wrong."""
        if self.get(topic) != text:
            self[topic] = text
            Notes.changes += 1

    def settle(self, *topics: str) -> None:
        """Note that something is no longer wrong."""
        for topic in topics:
            if self.pop(topic, None) is not None:
                Notes.changes += 1

    def replace(self, notes: Mapping[str, str]) -> None:
        """Note this, and nothing else."""
        if self != notes:
            self.clear()
            self.update(notes)
            Notes.changes += 1
