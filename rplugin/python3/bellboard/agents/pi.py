"""Pi: our extension reports its events.  Pi itself asks nothing; other extensions do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ..core.untrusted import Facts, text_of
from .agent import Abilities, Ability, Agent, Prompt
from .inputs import between_rules
from .installing.hookline import HooksFile, below_home
from .words import Words, from_key, kind_in

#: Event → kind.
KINDS: Final[dict[str, str]] = {
    "session_start": "start",  # or resume, note: by its reason
    "session_shutdown": "end",  # or note: by its reason
    "before_agent_start": "prompt",
    "agent_start": "activity",
    "message_update": "activity",  # the first one after an error
    "tool_execution_start": "tool",
    "tool_execution_end": "tool end",
    "agent_end": "said retry",  # only of a run that failed; if Pi gives up, it settles at once
    "agent_settled": "stop",  # or interrupt, failure: by its last message
    "ui_prompt_start": "request",
    "ui_prompt_end": "form answer",
    "session_before_compact": "compacting",
    "session_compact": "compacted",
    "session_compact_failed": "compacted",
}
FIELDS: Final = {
    "session_id": "session",
    "cwd": "cwd",
    "source": "reason",
    "prompt": "prompt",
    "transcript": "file",
    "message": "text",
    "tool": "toolName",
    "tool_id": "toolCallId",
}
RELOADED: Final = "reload"  # of the extensions, not the session
ENDS: Final = {"aborted": "interrupt", "error": "failure"}


def _asked(top: Facts, facts: Facts) -> None:
    facts["asks"], facts["detail"] = "question", text_of(top, "title")


WORDS: Final = Words(
    KINDS,
    {
        "session_start": kind_in({RELOADED: "note", "resume": "resume"}, "reason"),
        "session_shutdown": kind_in({RELOADED: "note"}, "reason"),
        "agent_end": from_key("detail", "errorMessage"),
        "ui_prompt_start": _asked,
        "agent_settled": kind_in(ENDS, "stopReason", "errorMessage"),
    },
    FIELDS,
    event="event",
    once=True,
    given="args",
)

EXTENSION: Final = Ability("extension")
NOTHING_ASKED: Final = Ability("", when="it never asks for one")
#: Measured on 1.6.0.
ABILITIES: Final[Abilities] = {
    "unprompted": EXTENSION,
    "working": EXTENSION,
    "permission": NOTHING_ASKED,
    "question": Ability("extension", when="if another extension asks in a dialog of Pi's"),
    "granted": NOTHING_ASKED,
    "denied": NOTHING_ASKED,
    "completed": Ability("extension", when="from 0.80.4 on"),  # which says that all is settled
    "interrupted": EXTENSION,
    "failed": EXTENSION,
    "ended": Ability("extension, processes"),
    "itself": Ability("OSC 7501", when="in a Neovim terminal, from 1.1 on"),
    "answer": Ability(""),
}

MARK = "// bellboard's extension for Pi"


class Pi(Agent):
    """See `Agent`."""

    key = "pi"
    name = "Pi"
    program = "pi"
    variable = "PI_CODING_AGENT_DIR"
    words = WORDS
    tested = (1, 6, 0)
    abilities = ABILITIES
    resuming = ("--session",)
    prompting = ("--",)
    queues = True
    hooks = HooksFile(
        folder=below_home(".pi/agent", "PI_CODING_AGENT_DIR"),
        name="extensions/bellboard.js",
        own=True,
        mark=MARK,
        note="running sessions load the extension with /reload",
    )

    def prompt(self, screen: Sequence[str]) -> Prompt | None:
        return between_rules(screen, "", "")

    def reporting(self, line: Callable[[str], str]) -> str:
        from ..system.files import plugin

        return plugin(f"{MARK}: reports what a session does.", "pi.js")
