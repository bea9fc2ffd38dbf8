"""Kimi Code: hooks report everything; they stand in its settings, in TOML, and are only printed.

Only hooks about permissions name a subagent.  The end of a subagent's turn has the event of every
end: right before SubagentStop, and while the tool that waits for it runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final
from zlib import crc32

from ..core.untrusted import Facts, list_of, object_of, text_of
from .agent import Abilities, Ability, Agent, timeouts_of
from .words import FIELDS, Words, failure, from_key, kind_in

PATIENCE: Final = 10  # seconds that a hook may take


def _main(top: Facts, facts: Facts) -> None:
    if facts.get("agent") == "main":  # "main" is not a subagent
        del facts["agent"]


def _prompt(top: Facts, facts: Facts) -> None:
    parts = [text_of(object_of(part), "text") for part in list_of(top.get("prompt"))]
    facts["prompt"] = " ".join(filter(None, parts)) or facts.get("prompt", "")


def _spawns(top: Facts, facts: Facts) -> None:
    task = text_of(top, "prompt").encode("utf-8", "replace")
    facts["agent"] = f"{facts.get('agent_type', '')}-{crc32(task):08x}"


def _ends(top: Facts, facts: Facts) -> None:
    facts["anyones"] = True


_failure: Final = failure("error_type", "error_message")


def _fails(top: Facts, facts: Facts) -> None:
    _ends(top, facts)
    _failure(top, facts)


def _tool(top: Facts, facts: Facts) -> str | None:
    _main(top, facts)
    if facts.get("tool") != "AskUserQuestion":
        return None
    facts["asks"] = "question"
    return "question"


KINDS: Final = {
    "SessionStart": "start",  # or resume: by its source
    "SessionEnd": "end",
    "SessionHeartbeat": "note",
    "UserPromptSubmit": "prompt",
    "UserPromptQueued": "note",
    "TurnStarted": "activity",
    "PreToolUse": "tool",
    "PostToolUse": "tool end",
    "PostToolUseFailure": "tool end",
    "PermissionRequest": "request",
    "PermissionResult": "tool end",  # which ends its question
    "Stop": "stop",
    "StopFailure": "failure",
    "Interrupt": "interrupt",
    "SubagentStart": "agent start",
    "SubagentStop": "agent stop",
    "TaskStarted": "note",
    "PreCompact": "compacting",
    "PostCompact": "compacted",
    "Notification": "note",
}


HOOKS: Final = Ability("hooks")
#: Measured on 2.1.0.
ABILITIES: Final[Abilities] = {
    "unprompted": Ability(""),  # a session begins with its first prompt
    "working": HOOKS,
    "permission": HOOKS,
    "question": HOOKS,
    "granted": HOOKS,
    "denied": HOOKS,
    "completed": HOOKS,
    "interrupted": HOOKS,
    "failed": HOOKS,
    "ended": Ability("hooks, processes"),
    "itself": Ability(""),
    "answer": Ability(""),
}


class Kimi(Agent):
    """See `Agent`."""

    key = "kimi"
    name = "Kimi Code"
    program = "kimi"
    place = "~/.kimi-code/config.toml"
    tested = (2, 1, 0)
    abilities = ABILITIES
    resuming = ("--session",)
    words = Words(
        KINDS,
        {
            **dict.fromkeys(KINDS, _main),
            "SessionStart": kind_in({"resume": "resume"}, "source"),
            "SessionEnd": from_key("source", "reason"),
            "UserPromptSubmit": _prompt,
            "PreToolUse": _tool,
            "Stop": _ends,
            "StopFailure": _fails,
            "SubagentStart": _spawns,
            "PreCompact": from_key("source", "trigger"),
            "PostCompact": from_key("source", "trigger"),
        },
        {
            **FIELDS,
            "agent_type": "agent_name",
            "tool_id": "tool_call_id",
            "title": "session_title",
        },
        tools={"AgentSwarm": "Agent"},
    )

    def reporting(self, line: Callable[[str], str]) -> str:
        return "\n".join(_toml(name, line(name)) for name in timeouts_of(self.words, PATIENCE))


def _toml(event: str, command: str) -> str:
    # TOML takes a string of JSON, except for lone surrogates and DEL.
    quoted = json.dumps(command, ensure_ascii=False).replace("\x7f", "\\u007f")
    return f'[[hooks]]\nevent = "{event}"\ncommand = {quoted}\ntimeout = {PATIENCE}\n'
