"""GitHub Copilot CLI: its hooks, whose payloads do not name their event, and its log.

Its permissionRequest runs for every tool, whether or not somebody is asked; its notifications say
that a dialog opens.  No hook says that a dialog was answered, or that a turn was interrupted or
failed: the log, events.jsonl, does.  The list of open sessions states whether a turn runs, but not
whether it asks.  An event of a subagent names its session as the agent of the
parent.  Hooks run before the dialog, so only keys can answer it.

Entries of the log are written up to a few seconds late, so tools and prompts only add to what hooks
say; each question has the id of its tool.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ...core.events import Event, Origin
from ...core.request import Request
from ...core.text import line, marked
from ...core.untrusted import Facts, object_of, text_of, time_of
from ..agent import NOTES, Abilities, Ability, Agent, Prompt
from ..inputs import between_rules
from ..installing.hookline import SHOWN_IN_PART, HooksFile, below_home
from ..parts import part, readable, unanswerable
from ..words import Reader, Words, from_key, kind_in, of_input

if TYPE_CHECKING:
    from ..need import Observing

#: Hook → kind.
KINDS: Final[dict[str, str]] = {
    "sessionStart": "start",  # or resume: by its source
    "sessionEnd": "end",
    "userPromptSubmitted": "prompt",  # or report: by its text
    "userPromptTransformed": "note",
    "preToolUse": "activity",
    "permissionRequest": "note",
    "postToolUse": "tool end",
    "postToolUseFailure": "tool end",
    "notification": "note",  # or nudge: by its type
    "agentStop": "stop",
    "subagentStart": "agent start",
    "subagentStop": "agent stop",
    "errorOccurred": "said retry",  # of several, all say the same
    "preCompact": "compacting",
}
#: Type of a notification → the kind of question.
ASKS: Final = {"permission_prompt": "permission", "elicitation_dialog": "question"}
QUESTION: Final = "ask_user"
REPORT: Final = "<system_notification>"
SPAWNS: Final = {"task": "Task"}
FIELDS: Final[Mapping[str, str]] = {
    "session_id": "sessionId",
    "parent": "parentAgentId",
    "agent": "agentId",
    "agent_type": "agentType",
    "cwd": "cwd",
    "transcript": "transcriptPath",
    "source": "source",
    "prompt": "prompt",
    "tool": "toolName",
}


def _prompt(top: Facts, facts: Facts) -> str | None:
    return "report" if text_of(top, "prompt").startswith(REPORT) else None


def _notification(top: Facts, facts: Facts) -> str | None:
    facts["source"] = text_of(top, "notification_type")
    asks = ASKS.get(facts["source"])
    if asks is None:
        return None
    facts["detail"], facts["about"] = text_of(top, "message"), "log"
    if asks == "question":
        facts["asks"], facts["tool"] = asks, QUESTION
    return "nudge"


def _error(top: Facts, facts: Facts) -> None:
    facts["detail"] = text_of(object_of(top.get("error")), "message")


READ: Final[Mapping[str, Reader]] = {
    "sessionStart": kind_in({"resume": "resume"}, "source"),
    "sessionEnd": from_key("source", "reason"),
    "userPromptSubmitted": _prompt,
    "notification": _notification,
    "errorOccurred": _error,
    "preCompact": from_key("source", "trigger"),
}
WORDS: Final = Words(KINDS, READ, FIELDS, event="", given="toolArgs", tools=SPAWNS)

#: A function that returns the kind of an entry, and its facts.
EntryReader = Callable[[Facts], tuple[str, Facts]]


def _said_tool(data: Facts) -> tuple[str, Facts]:
    tool, given = text_of(data, "toolName"), data.get("arguments")
    which = {"tool": SPAWNS.get(tool, tool), "tool_id": text_of(data, "toolCallId")}
    if tool == QUESTION:
        told = line(text_of(object_of(given), "message"))
        return "question", {**which, "asks": "question", "detail": told}
    return "tool", {**of_input(tool, given), **which}


def _tool_end(data: Facts) -> tuple[str, Facts]:
    return "said result", {"tool_id": text_of(data, "toolCallId")}


def _asked(data: Facts) -> tuple[str, Facts]:
    about = object_of(data.get("permissionRequest"))
    tool_id = text_of(about, "toolCallId")
    if data.get("resolvedByHook") is True or not tool_id:
        return "note", {}
    told = (text_of(about, key) for key in ("fullCommandText", "fileName", "url", "intention"))
    detail = line(next(filter(None, told), ""))
    return "request", {"asks": "permission", "tool_id": tool_id, "detail": detail}


def _answered(data: Facts) -> tuple[str, Facts]:
    tool_id = text_of(data, "toolCallId")
    return ("form answer" if tool_id else "note"), {"tool_id": tool_id}


def _said_prompt(data: Facts) -> tuple[str, Facts]:
    turn = text_of(data, "interactionId")
    return "said prompt", {"prompt": line(text_of(data, "content")), "prompt_id": turn}


def _text(data: Facts) -> tuple[str, Facts]:
    goes_on = data.get("toolRequests") != []
    return ("said text" if goes_on else "said last"), {"message": line(text_of(data, "content"))}


def _said_error(data: Facts) -> tuple[str, Facts]:
    kind, why = text_of(data, "errorType"), text_of(data, "message")
    return "said error", {"error": line(": ".join(filter(None, (kind, why))) or "unknown")}


#: Type of an entry → the function that reads it.
OF_MAIN: Final[dict[str, EntryReader]] = {
    "user.message": _said_prompt,
    "assistant.message": _text,
    "tool.execution_start": _said_tool,
    "tool.execution_complete": _tool_end,
    "abort": lambda data: ("interrupt", {}),
    "session.error": _said_error,
    "session.compaction_complete": lambda data: ("compacted", {}),  # no hook reports it
}
#: Entries about questions, also of subagents: the terminal of the session shows those.
OF_ANY_AGENT: Final[dict[str, EntryReader]] = {
    "permission.requested": _asked,
    "permission.completed": _answered,
    "human_response.recorded": _answered,
}

ENTRIES: Final = "events.jsonl"  # the log of every session, in a folder of its own
LIST: Final = "the file of its open sessions"
LOG: Final = Ability("log")
NOT: Final = Ability("")
#: Measured on 1.0.102.
ABILITIES: Final[Abilities] = {
    "unprompted": Ability(LIST, when="unless it was resumed"),
    "working": Ability(f"hooks, {LIST}"),
    "permission": Ability("hooks, log"),
    "question": Ability("hooks, log"),
    "granted": LOG,
    "denied": LOG,
    "completed": Ability(f"hooks, {LIST}"),
    "interrupted": Ability(f"log, {LIST}"),
    "failed": LOG,
    "ended": Ability("hooks, processes"),
    "itself": NOT,
    "answer": NOT,
}
PATIENCE: Final = 30  # seconds that a hook may take


class Copilot(Agent):
    """See `Agent`."""

    key = "copilot"
    name = "GitHub Copilot CLI"
    program = "copilot"
    variable = "COPILOT_HOME"
    tested = (1, 0, 102)
    words = WORDS
    abilities = ABILITIES
    resuming = ("--resume",)
    prompting = ("--interactive=",)
    queues = True
    escapes = 2
    without_hooks = SHOWN_IN_PART
    hooks = HooksFile(
        folder=below_home(".copilot", "COPILOT_HOME"), name="hooks/bellboard.json", own=True
    )

    def observing(self, environ: Mapping[str, str], brief: bool) -> Observing:
        from .sessions import OpenSessions

        return OpenSessions(self, environ, brief).observing()

    def reporting(self, line: Callable[[str], str]) -> str:
        # Not preToolUse: a hook of it that fails refuses the tool.
        kinds = {name: kind for name, kind in KINDS.items() if name != "preToolUse"}
        hooks = {
            event: [{"type": "command", "bash": line(event), "timeoutSec": PATIENCE}]
            for event in (*(name for name in kinds if kinds[name] not in NOTES), "notification")
        }
        return json.dumps({"version": 1, "hooks": hooks}, indent=2, ensure_ascii=False)

    def event(
        self,
        payload: bytes,
        t: float,
        clock: float,
        origin: Origin,
        truncated: bool = False,
        name: str = "",
    ) -> Event:
        if name[:1].isupper():
            # A hook for another CLI, in a repository's settings, which Copilot runs as well.
            return Event("note", name[:60], t, clock)
        return super().event(payload, t, clock, origin, truncated, name)

    def prompt(self, screen: Sequence[str]) -> Prompt | None:
        return between_rules(screen, "❯ ", "")

    def account(self, record: Facts, about: Event) -> Event:
        """Return whether a turn runs; the log says what it asks, and how it ended."""
        works = record.get("working")
        status = "turn" if works is True else "idle" if works is False else ""
        since = time_of(record.get("refreshedAt")) or about.t
        origin = Origin(self.key, about.pid)
        return replace(
            about, name=f"registry {status}".strip(), origin=origin, status=status, at=since
        )

    def entry(self, session_id: str, entry: Facts, t: float, now: float) -> Event:
        """Decode an entry; `t` is its time, if the entry itself has none."""
        name, data = entry["type"], entry.get("data")
        read = OF_ANY_AGENT.get(name) or (None if entry.get("agentId") else OF_MAIN.get(name))
        kind, facts = read(data) if read is not None and isinstance(data, dict) else ("note", {})
        at = time_of(entry.get("timestamp")) or t
        return Event(kind, f"transcript {line(name, 60)}", at, now, session_id, **facts)

    def log_of(self, name: str, latest: str) -> str:
        return latest if name == ENTRIES else ""

    def request(
        self, payload: bytes, name: str, t: float, origin: Origin, truncated: bool = False
    ) -> Request | None:
        top = readable(payload, truncated)
        asks = ASKS.get(text_of(top, "notification_type"))
        if asks is None:
            return None
        title, message = (marked(text_of(top, key)) for key in ("title", "message"))
        sid, parts = text_of(top, "sessionId"), (part("text", message),)
        return unanswerable(top, name, sid, t, origin, asks, "", title, parts)
