"""What each version of Claude Code reports, through which source, and with what delay.

Measured on the real CLI (versions 2.0.76, 2.1.76, 2.1.119, 2.1.197, 2.1.328, 2.1.330 and 2.1.332);
a version in between is treated as the newest measured one before it.  `bellboard doctor` shows this
for the versions it finds, so that nobody mistakes a limit of the CLI for a bug.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from .. import abilities as neutral

if TYPE_CHECKING:
    from ...system.packaged import Version

OLDEST: Final = (2, 0, 76)  # nothing older was measured


class Ability(NamedTuple):
    """How something is known: from hooks, the session file, the transcript or the processes."""

    source: str  # empty: it cannot be known
    when: str = "at once"


HOOK: Final = Ability("hooks")
FILE: Final = Ability("session file")
BOTH: Final = Ability("hooks, session file")
SAID: Final = Ability("transcript", "within a second")
NO: Final = Ability("", "never")

#: What → from which version on → how; the newest entry that a CLI has reached applies.
ABILITIES: Final[dict[str, dict[Version, Ability]]] = {
    "working and completed": {OLDEST: HOOK, (2, 1, 119): BOTH},
    "permission requests": {OLDEST: HOOK, (2, 1, 119): BOTH},
    "questions and plans": {OLDEST: HOOK, (2, 1, 119): BOTH},
    "MCP server forms": {OLDEST: NO, (2, 1, 76): HOOK, (2, 1, 119): BOTH},
    "answers to a request": {
        OLDEST: Ability("hooks", "when the tool has finished"),
        (2, 1, 119): FILE,
    },
    "denied requests": {OLDEST: SAID, (2, 1, 119): FILE},
    "Esc while working": {OLDEST: SAID, (2, 1, 119): FILE},
    "Esc before any output": {
        OLDEST: Ability("", "never; marked as quiet after 10 minutes"),
        (2, 1, 119): FILE,
    },
    "API errors": {OLDEST: SAID, (2, 1, 78): HOOK},
    "API retries": {
        OLDEST: SAID,
        (2, 1, 328): Ability(
            "transcript, screen", "once a retry is made; from the screen, after 15 seconds"
        ),
    },
    "until when a usage limit lasts": {OLDEST: SAID, (2, 1, 78): HOOK},
    "subagent names": {OLDEST: HOOK},
    "requests by a named subagent": {OLDEST: NO, (2, 1, 76): HOOK},
    "agents that outlive the turn": {
        OLDEST: Ability("hooks", "by counting starts and stops"),
        (2, 1, 197): HOOK,
    },
    "background shells": {OLDEST: NO, (2, 1, 119): FILE, (2, 1, 197): BOTH},
    "scheduled wake-ups": {OLDEST: NO, (2, 1, 197): HOOK},
    "end of compaction": {
        OLDEST: Ability("", "with the next event, or after a minute"),
        (2, 1, 76): HOOK,
    },
    "sessions started before the hooks": {
        OLDEST: Ability("processes", "within half a minute, without a status"),
        (2, 1, 76): Ability("session file", "at once, with a status from the next event on"),
        (2, 1, 119): FILE,
    },
    "/clear without hooks": {OLDEST: NO, (2, 1, 197): FILE},
    "its own report, in a Neovim terminal": {OLDEST: NO, (2, 1, 295): Ability("OSC 7501")},
    "killed processes": {OLDEST: Ability("processes")},
}


def abilities(version: Version) -> dict[str, Ability]:
    """Return what a version reports; anything older than the oldest measured counts as that."""
    version = max(version, OLDEST)
    return {
        what: steps[max(since for since in steps if since <= version)]
        for what, steps in ABILITIES.items()
    }


_HOOKS: Final = neutral.Ability("hooks, session file")
_FILE: Final = neutral.Ability("session file")
#: What the newest version reports, as for every CLI.
NEWEST: Final[neutral.Abilities] = {
    "unprompted": _HOOKS,
    "working": _HOOKS,
    "permission": _HOOKS,
    "question": _HOOKS,
    "granted": _FILE,
    "denied": _FILE,
    "completed": _HOOKS,
    "interrupted": _FILE,
    "failed": neutral.Ability("hooks, transcript"),
    "ended": neutral.Ability("hooks, processes"),
    "itself": neutral.Ability(
        "OSC 7501",
        when="in a Neovim terminal, from 2.1.295 on, unless "
        "CLAUDE_CODE_DISABLE_TERMINAL_TITLE is set",
    ),
    "answer": neutral.Ability("hooks, keys"),
}
