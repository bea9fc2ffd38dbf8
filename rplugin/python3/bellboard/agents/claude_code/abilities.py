"""What each version of Claude Code lets anybody know, by which way, and how late.

Measured on the real CLI (versions 2.0.76, 2.1.76, 2.1.119, 2.1.197 and 2.1.328); a version in
between counts as the newest measured one before it.  `bellboard doctor` shows it for the versions
that it sees, so that nobody takes a CLI's silence for a fault.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from .version import Version

OLDEST: Final = (2, 0, 76)  # nothing older was measured


class Ability(NamedTuple):
    """How something is known: through hooks, the session file, the transcript, the processes."""

    way: str  # nothing, if it cannot be known
    when: str = "at once"


HOOK: Final = Ability("hooks")
FILE: Final = Ability("session file")
BOTH: Final = Ability("hooks, session file")
SAID: Final = Ability("transcript", "within a second")
NO: Final = Ability("", "never")

#: What → the version from which it is known so; the newest that a CLI has reached counts.
ABILITIES: Final[dict[str, dict[Version, Ability]]] = {
    "it works, it is done": {OLDEST: HOOK, (2, 1, 119): BOTH},
    "it asks for a permission": {OLDEST: HOOK, (2, 1, 119): BOTH},
    "it asks a question, shows a plan": {OLDEST: HOOK, (2, 1, 119): BOTH},
    "a form of an MCP server": {OLDEST: NO, (2, 1, 76): HOOK, (2, 1, 119): BOTH},
    "a question is answered": {
        OLDEST: Ability("hooks", "when the tool is done"),
        (2, 1, 119): FILE,
    },
    "a question is refused": {OLDEST: SAID, (2, 1, 119): FILE},
    "Esc while it works": {OLDEST: SAID, (2, 1, 119): FILE},
    "Esc before its first word": {
        OLDEST: Ability("", "never; it is marked stale after 10 minutes"),
        (2, 1, 119): FILE,
    },
    "the API fails for good": {OLDEST: SAID, (2, 1, 78): HOOK},
    "the API is tried again": {OLDEST: SAID},
    "subagents by name": {OLDEST: HOOK},
    "a question of a subagent, by its name": {OLDEST: NO, (2, 1, 76): HOOK},
    "agents that outlive the turn": {
        OLDEST: Ability("hooks", "by counting those that began"),
        (2, 1, 197): HOOK,
    },
    "background shells": {OLDEST: NO, (2, 1, 119): FILE, (2, 1, 197): BOTH},
    "scheduled wake-ups": {OLDEST: NO, (2, 1, 197): HOOK},
    "a compaction is over": {
        OLDEST: Ability("", "with the next event, or after a minute"),
        (2, 1, 76): HOOK,
    },
    "sessions from before the hooks": {
        OLDEST: Ability("processes", "within half a minute, without a status"),
        (2, 1, 76): Ability("session file", "at once, with a status once it says something"),
        (2, 1, 119): FILE,
    },
    "/clear without hooks": {OLDEST: NO, (2, 1, 197): FILE},
    "its process is killed": {OLDEST: Ability("processes")},
}


def abilities(version: Version) -> dict[str, Ability]:
    """What that version can tell; of one that is older than any measured, what the oldest can."""
    version = max(version, OLDEST)
    return {
        what: steps[max(since for since in steps if since <= version)]
        for what, steps in ABILITIES.items()
    }
