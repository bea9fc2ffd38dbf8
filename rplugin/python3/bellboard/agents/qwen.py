"""Qwen Code: hooks report everything, but run before the dialog, so only keys can answer it.

PreToolUse comes once a tool may run, so after its question was answered.  PermissionRequest comes
before the dialog, which its hooks hold back; a notification says that the dialog is open.  Another
notification says that Qwen is at rest; if somebody refused or interrupted, neither Stop nor
StopFailure comes.

A sign at the start of the terminal's title says that Qwen works or waits for somebody; the rest is
the name of the session, if it has a name.  At rest, the title is the last one without its sign;
any other title is of a shell while Qwen is stopped, or of the user.  Output of tools never reaches
the terminal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from ..core.events import Event, Origin, Task
from ..core.request import Request
from ..core.text import line, marked
from ..core.untrusted import Facts, object_of, storable, text_of, time_of
from .agent import NAMED, NOTES, Abilities, Ability, Agent, Prompt, Seen, timeouts_of
from .inputs import between_rules
from .installing.hookline import Environ, GlobalHooks, HooksFile, below_home
from .parts import Input, part, readable, unanswerable
from .words import FIELDS, STARTS, Reader, Words, from_key, kind_in, typed_prompt

#: Hook → kind.
KINDS: Final[dict[str, str]] = {
    "SessionStart": "start",  # or resume, compacted: by its source
    "SessionEnd": "end",
    "UserPromptSubmit": "prompt",  # or activity: after each tool, without a text
    "UserPromptExpansion": "activity",
    "PreToolUse": "granted",
    "PermissionRequest": "request",
    "PermissionDenied": "tool end",
    "PostToolUse": "tool end",
    "PostToolUseFailure": "tool end",
    "PostToolBatch": "activity",
    "Notification": "note",  # or nudge, interrupt: by its type
    "Stop": "stop",
    "StopFailure": "failure",
    "SubagentStart": "agent start",
    "SubagentStop": "agent stop",
    "PreCompact": "compacting",
    "PostCompact": "compacted",
    "TodoCreated": "note",
    "TodoCompleted": "note",
    "MessageDisplay": "note",
    "InstructionsLoaded": "note",
    "SessionDelete": "note",
}
NOTIFICATIONS: Final = {"permission_prompt": "nudge", "idle_prompt": "interrupt"}
#: Tool that asks a person → the kind of question.
QUESTIONS: Final = {"ask_user_question": "question", "exit_plan_mode": "plan"}
ABOUT: Final = " to use "  # in the message of a notification, before the name of the tool
SPAWNS: Final = {"agent": "Agent", "task": "Task"}
#: Hooks that are run by a process other than Qwen's own, without a terminal.
DETACHED: Final = frozenset({"StopFailure"})
OVER: Final = frozenset({"completed", "failed", "cancelled", "killed", "stopped"})


def _prompt(top: Facts, facts: Facts) -> str | None:
    typed_prompt(top, facts)
    return None if text_of(top, "prompt") else "activity"


def _request(top: Facts, facts: Facts) -> None:
    facts["asks"] = QUESTIONS.get(text_of(top, "tool_name"), "permission")
    facts["early"] = True


def _notification(top: Facts, facts: Facts) -> str | None:
    facts["source"] = text_of(top, "notification_type")
    kind = NOTIFICATIONS.get(facts["source"])
    message = text_of(top, "message")
    if kind == "nudge":
        tool = message.rpartition(ABOUT)[2]
        facts["tool"], facts["detail"] = SPAWNS.get(tool, tool), message
    if kind == "interrupt":  # no Stop says how the turn ended
        facts["inferred"], facts["at"] = True, time_of(top.get("timestamp")) or 0.0
    # A notification of a subagent is about the session that shows its dialog.
    facts.pop("agent", None)
    return kind


def _stop(top: Facts, facts: Facts) -> None:
    listed, crons = top.get("background_tasks"), top.get("crons")
    if isinstance(listed, list):
        facts["tasks"] = tuple(_task(x) for x in listed if isinstance(x, dict) and _runs(x))
    facts["wakeups"] = len(crons) if isinstance(crons, list) else 0


def _task(given: Facts) -> Task:
    return Task(text_of(given, "id"), "subagent", line(text_of(given, "description")))


def _runs(given: Facts) -> bool:
    return bool(text_of(given, "id")) and text_of(given, "status") not in OVER


def _failure(top: Facts, facts: Facts) -> None:
    said = (text_of(top, key) for key in ("error", "error_details", "last_assistant_message"))
    found = list(dict.fromkeys(text for text in said if text))
    facts["error"] = ": ".join(found[:2]) or "unknown"


READ: Final[Mapping[str, Reader]] = {
    "SessionStart": kind_in(STARTS, "source"),
    "SessionEnd": from_key("source", "reason"),
    "UserPromptSubmit": _prompt,
    "PermissionRequest": _request,
    "Notification": _notification,
    "Stop": _stop,
    "StopFailure": _failure,
    "PreCompact": from_key("source", "trigger"),
    "PostCompact": from_key("source", "trigger"),
}
WORDS: Final = Words(KINDS, READ, FIELDS, tools=SPAWNS)
_SIGN: Final = re.compile("([◐◓◑◒✳])\ufe0e? ")
ASKS: Final = "✳"
HOOKS: Final = Ability("hooks")
AT_REST: Final = Ability("hooks", True, "it stopped without completing its turn")
#: Measured on 0.24.4.
ABILITIES: Final[Abilities] = {
    "unprompted": HOOKS,
    "working": HOOKS,
    "permission": HOOKS,
    "question": HOOKS,
    "granted": HOOKS,
    "denied": AT_REST,
    "completed": HOOKS,
    "interrupted": AT_REST,
    "failed": HOOKS,
    "ended": Ability("hooks, processes"),
    "itself": Ability(""),
    "answer": Ability(""),
}

PATIENCE: Final = 10000  # milliseconds that a hook may take


def _folder(environ: Environ) -> Path:
    """Return the folder of its settings; QWEN_HOME may begin with ~."""
    folder = below_home(".qwen", "QWEN_HOME")(environ)
    user_home = environ.get("HOME", "")
    return Path(user_home, *folder.parts[1:]) if folder.parts[:1] == ("~",) else folder


def _obstacles(looked: GlobalHooks) -> Iterator[str]:
    if json.loads(looked.text).get("disableAllHooks") is True:
        yield "disabled by disableAllHooks"


class Qwen(Agent):
    """See `Agent`."""

    key = "qwen"
    name = "Qwen Code"
    program = "qwen"
    variable = "QWEN_HOME"
    tested = (0, 24, 4)
    abilities = ABILITIES
    words = WORDS
    has_titles = True
    queues = True
    timeouts = timeouts_of(WORDS, PATIENCE, "Notification", spared=NOTES)
    named = NAMED
    resuming = ("--resume",)
    prompting = ("--prompt-interactive=",)
    hooks = HooksFile(folder=_folder, name="settings.json", comments=True, obstacles=_obstacles)

    def event(
        self,
        payload: bytes,
        t: float,
        clock: float,
        origin: Origin,
        truncated: bool = False,
        name: str = "",
    ) -> Event:
        event = super().event(payload, t, clock, origin, truncated, name)
        if event.name in DETACHED:
            return replace(event, origin=replace(event.origin, pid=None, tty=None))
        return event

    def titled(self, text: str) -> Seen | None:
        found = _SIGN.match(text)
        if found is None:
            return Seen("idle")
        return Seen("waiting", "choice") if found[1] == ASKS else Seen("busy")

    def at_rest(self, text: str) -> str:
        return _SIGN.sub("", text, count=1).strip()

    def prompt(self, screen: Sequence[str]) -> Prompt | None:
        return between_rules(screen, "> ", "Type your message or @path/to/file")

    def request(
        self, payload: bytes, name: str, t: float, origin: Origin, truncated: bool = False
    ) -> Request | None:
        top = readable(payload, truncated)
        if text_of(top, "hook_event_name") != "PermissionRequest":
            return None
        tool = text_of(top, "tool_name")
        shown = Input(object_of(storable(top.get("tool_input"))))
        command = shown.text("command")
        return unanswerable(
            top,
            name,
            text_of(top, "session_id"),
            t,
            origin,
            QUESTIONS.get(tool, "permission"),
            tool,
            "Run a command" if command else f"Use {marked(tool) or 'a tool'}",
            (*((part("command", command),) if command else ()), *shown.rest()),
        )
