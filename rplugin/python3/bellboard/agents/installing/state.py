"""The state of our hooks in one file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...core.words import plain
from .forms import WHOLE


@dataclass(frozen=True)
class State:
    """What was found."""

    path: Path
    problem: str = ""  # why the file cannot be read or edited
    events: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()  # events that this CLI knows
    outdated: tuple[str, ...] = ()  # events that run another script than the kept one
    other: tuple[str, ...] = ()  # events with other limits than this version writes
    plugin: bool = False  # whether the file enables a plugin with the same hooks
    obstacles: tuple[str, ...] = ()  # what keeps hooks from running
    remarks: tuple[str, ...] = ()  # what else is wrong with them

    @property
    def is_whole(self) -> bool:
        """Return whether every event runs the right script."""
        return not (self.problem or self.missing or self.outdated or self.other)

    @property
    def is_complete(self) -> bool:
        """Return whether the CLI also runs them, as far as that is known."""
        return self.is_whole and not self.obstacles

    def summary(self) -> str:
        """Describe the state in one line, safe to print: anybody may have written the file."""
        return plain(self.problem or self._found())

    def _found(self) -> str:
        notes = [self._present()]
        if self.outdated:
            other = "version" if WHOLE in self.outdated else "installation"
            notes.append(f"from another {other}{_named(self.outdated)}")
        if self.other:
            notes.append("with limits set by an older version" + _named(self.other))
        if self.plugin:
            notes.append("plugin enabled")
        return "; ".join((*notes, *self.obstacles, *self.remarks))

    def _present(self) -> str:
        if not self.events:
            return "no hooks"
        if WHOLE in self.events:
            return "installed"
        known = len(self.events) + len(self.missing)
        missing = f"; missing {', '.join(self.missing)}" if self.missing else ""
        return f"{len(self.events)} of {known} events{missing}"


def _named(events: tuple[str, ...]) -> str:
    return "" if WHOLE in events else f": {', '.join(events)}"
