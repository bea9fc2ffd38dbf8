"""The abilities of each version of Claude Code: the source of a report, and its delay.

Measured on the real CLI (versions 2.0.76, 2.1.76, 2.1.119, 2.1.197, 2.1.328, 2.1.330 and 2.1.332);
a version in between is treated as the newest measured one before it.  `bellboard doctor` shows this
for the installed versions, so that nobody mistakes a limit of the CLI for a bug.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Mapping
from typing import Final, NamedTuple

from ...system.mounts import near
from ...system.packaged import NUMBERS, Version, numbers, version_at, version_in
from ...system.programs import run

OLDEST: Final = (2, 0, 76)  # nothing older was measured


class Reported(NamedTuple):
    """The source of a report: hooks, the session file, the transcript or the processes."""

    source: str  # empty: not known
    when: str = "at once"


HOOK: Final = Reported("hooks")
FILE: Final = Reported("session file")
BOTH: Final = Reported("hooks, session file")
SAID: Final = Reported("transcript", "within a second")
NO: Final = Reported("", "never")

#: Moment → first version → its source; the newest entry that a CLI has reached applies.
ABILITIES: Final[dict[str, dict[Version, Reported]]] = {
    "working and completed": {OLDEST: HOOK, (2, 1, 119): BOTH},
    "permission requests": {OLDEST: HOOK, (2, 1, 119): BOTH},
    "questions and plans": {OLDEST: HOOK, (2, 1, 119): BOTH},
    "MCP server forms": {OLDEST: NO, (2, 1, 76): HOOK, (2, 1, 119): BOTH},
    "answers to a request": {
        OLDEST: Reported("hooks", "when the tool has finished"),
        (2, 1, 119): FILE,
    },
    "denied requests": {OLDEST: SAID, (2, 1, 119): FILE},
    "Esc while working": {OLDEST: SAID, (2, 1, 119): FILE},
    "Esc before any output": {
        OLDEST: Reported("", "never; marked as quiet after 10 minutes"),
        (2, 1, 119): FILE,
    },
    "API errors": {OLDEST: SAID, (2, 1, 78): HOOK},
    "API retries": {
        OLDEST: SAID,
        (2, 1, 328): Reported(
            "transcript, screen", "once a retry is made; from the screen, after 15 seconds"
        ),
    },
    "until when a usage limit lasts": {OLDEST: SAID, (2, 1, 78): HOOK},
    "subagent names": {OLDEST: HOOK},
    "requests by a named subagent": {OLDEST: NO, (2, 1, 76): HOOK},
    "agents that outlive the turn": {
        OLDEST: Reported("hooks", "by counting starts and stops"),
        (2, 1, 197): HOOK,
    },
    "background shells": {OLDEST: NO, (2, 1, 119): FILE, (2, 1, 197): BOTH},
    "scheduled wake-ups": {OLDEST: NO, (2, 1, 197): HOOK},
    "end of compaction": {
        OLDEST: Reported("", "with the next event, or after a minute"),
        (2, 1, 76): HOOK,
    },
    "sessions started before the hooks": {
        OLDEST: Reported("processes", "within half a minute, without a status"),
        (2, 1, 76): Reported("session file", "at once, with a status from the next event on"),
        (2, 1, 119): FILE,
    },
    "/clear without hooks": {OLDEST: NO, (2, 1, 197): FILE},
    "its own report, in a Neovim terminal": {OLDEST: NO, (2, 1, 295): Reported("OSC 7501")},
    "killed processes": {OLDEST: Reported("processes")},
}


def abilities(version: Version) -> dict[str, Reported]:
    """Return the abilities of a version; an older one counts as the oldest that was measured."""
    version = max(version, OLDEST)
    return {
        what: steps[max(since for since in steps if since <= version)]
        for what, steps in ABILITIES.items()
    }


# The installed Claude Code: its version, and the hook events that it knows.
#
# If a settings file names an unknown event, Claude Code up to 2.1.76 ignores all of its hooks,
# and later versions show a dialog at each start.


#: Known to every supported version.
CORE: Final = (
    *("SessionStart", "SessionEnd", "UserPromptSubmit", "PreToolUse", "PostToolUse"),
    *("PostToolUseFailure", "PermissionRequest", "Notification", "Stop"),
    *("SubagentStart", "SubagentStop", "PreCompact"),
)
#: Later events that the board uses, by the version that added them.
LATER: Final[dict[Version, tuple[str, ...]]] = {
    (2, 1, 33): ("TeammateIdle", "TaskCompleted"),
    (2, 1, 76): ("PostCompact", "Elicitation", "ElicitationResult"),
    (2, 1, 78): ("StopFailure",),
    (2, 1, 83): ("CwdChanged",),
    (2, 1, 84): ("TaskCreated",),
    (2, 1, 88): ("PermissionDenied",),
    (2, 1, 119): ("PostToolBatch",),
    (2, 1, 251): ("PostModelSwitch",),
}
PATIENCE: Final = 3.0  # seconds for `claude --version`, which takes 0.1 s


def events_of(version: Version | None) -> tuple[str, ...]:
    """Return the events to register for a version; only the core ones if it is unknown."""
    later = (names for since, names in LATER.items() if version is not None and version >= since)
    return (*CORE, *(name for names in later for name in names))


def cli_version(cli: str | None, environ: Mapping[str, str]) -> Version | None:
    """Return the version of the CLI at a path, or on PATH, or `cli` itself if it is a version."""
    if cli and (given := version_in(cli)):
        return given
    found = near(cli or "claude", environ.get("PATH", ""))
    if found is None:
        return None
    return version_at(found, "claude") or _by_asking(found, environ)


def _by_asking(program: str, environ: Mapping[str, str]) -> Version | None:
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = run([program, "--version"], PATIENCE, environ)
        return numbers(NUMBERS.search(done.output.decode("utf-8", "replace")))
    return None
