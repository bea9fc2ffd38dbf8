"""Report the state in the title of a terminal, whenever it changes.

A title shows at once whether its CLI works, and that a question was answered, which no hook
reports.  A spinner or a blinking mark changes the title many times a second, but not its meaning.
A user may switch titles off, or only their spinner; a title at work then looks like a title at
rest.  So “at rest” counts only for a terminal whose title has shown work.  If the title of another
terminal stops asking, that is all that it says.

This file does no I/O and knows no clock.
"""

from __future__ import annotations

from typing import Final

from .agent import Agent, Seen

LONGEST_TITLE: Final = 300  # characters of a title to read
ASKS_NOTHING: Final = Seen("")  # no question any more; nothing else is known


class Titles:
    """The titles of the terminal of one session."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._said: Seen | None = None
        self._shows_work = False
        self._at_rest = ""  # the start of its title at rest, as far as known

    def forget(self) -> None:
        """Report the next title, even if it was reported before."""
        self._said = None

    def take(self, text: str) -> Seen | None:
        """Return the state in a title, if it is new."""
        text = text[:LONGEST_TITLE].strip()
        seen = self._agent.titled(text)
        if seen is None:
            return None
        if seen.says != "idle":
            self._at_rest = self._agent.at_rest(text)
        elif not text.startswith(self._at_rest):  # by a shell, by the user, or renamed at rest
            if self._said is None or self._said.says != "busy":
                return None
            seen = ASKS_NOTHING  # hooks decide whether it works
        self._shows_work = self._shows_work or seen.says == "busy"
        if seen.says == "idle" and not self._shows_work:
            seen = ASKS_NOTHING
        if seen == self._said or (seen == ASKS_NOTHING and self._said is None):
            return None
        self._said = seen
        return seen
