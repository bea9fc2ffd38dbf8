"""Watch each path for as long as somebody needs it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .watch import Watch

Needer = tuple[str, str]  # the reason, and who asked


class Watched:
    """Counts who needs each watched path."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._needed: dict[str, set[Needer]] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._needed)

    def who(self, path: str, what: str) -> list[str]:
        """Return who needs a path for that purpose."""
        return sorted(whom for kind, whom in self._needed.get(path, ()) if kind == what)

    def need(self, path: str, what: str, whom: str) -> None:
        """Watch a path for somebody."""
        self._needed.setdefault(path, set()).add((what, whom))
        self._watch.add(path)

    def leave(self, path: str, what: str, whom: str) -> None:
        """Drop a need; stop watching a path that nobody needs."""
        needed = self._needed.get(path)
        if needed is not None:
            needed.discard((what, whom))
            if not needed:
                del self._needed[path]
                self._watch.remove(path)

    def renew(self, path: str) -> None:
        """Watch a path again: its folder has appeared."""
        if path in self._needed:
            self._watch.remove(path)
            self._watch.add(path)


class Unwatched(Watched):
    """Watches nothing: whoever asks looks only once."""

    def __init__(self) -> None:
        self._needed = {}

    def need(self, path: str, what: str, whom: str) -> None:
        """Do nothing."""

    def leave(self, path: str, what: str, whom: str) -> None:
        """Do nothing."""

    def renew(self, path: str) -> None:
        """Do nothing."""
