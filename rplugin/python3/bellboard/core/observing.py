"""The needs of a session: what has to be observed besides its hooks, and until when.

Each want names something outside; several sessions may have the same.  Nothing here looks at it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .rules.steps import is_blind, needs_screen
from .session import ABSENT, Session, owns_pane


class Want(NamedTuple):
    """Something to observe: its kind, and which."""

    kind: str
    of: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join((self.kind, *self.of))


def wanted(s: Session, has_screens: bool, has_titles: bool) -> Iterator[Want]:
    """Yield the needs of a session; its agent may have screens and titles that show it."""
    for pid in s.processes:
        yield Want("process", (str(pid),))
    if s.tmux and s.pane:
        yield Want("panes", (s.tmux,))
    if s.cwd:
        yield Want("repository", (s.cwd,))
    remote, branch = s.facts.get("remote", ""), s.facts.get("branch", "")
    if isinstance(remote, str) and isinstance(branch, str) and remote.startswith("https://"):
        yield from (Want("pull request", (remote, branch)),) * bool(branch)
    if s.tmux.startswith("/") and owns_pane(s) and s.tty:
        if has_screens and shows_on_screen(s) and s.pane:
            # If something else shows its status, the screen is read less often.
            how = "screen" if is_blind(s) else "spare screen"
            yield Want(how, (s.tmux, s.pane, s.tty, str(s.pid), s.session_id))
        if has_titles and s.pid:
            yield Want("titles", (s.tmux,))


def shows_on_screen(s: Session) -> bool:
    """Return whether its screen is to be read, or taken from its Neovim."""
    return bool(needs_screen(s) and s.tty and s.turn != ABSENT)
