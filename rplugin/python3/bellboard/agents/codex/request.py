"""Decode Codex's requests in full, and write answers for its server.

A declined command is refused, and the turn goes on; `stop` has the effect of “No” in the terminal.
Every member of the payload is shown.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from ...core.events import Origin, is_id
from ...core.request import Answer, Choice, Part, Request, are_distinct, digest_of
from ...core.text import marked
from ...core.untrusted import Facts, converted, decoder_of, leniently, text_of
from ..agent import OnDisk
from ..parts import (
    ALIKE,
    ALLOW,
    CHOOSE,
    STOP,
    UNREADABLE,
    UNTOLD,
    Input,
    Offered,
    chosen,
    inexact,
    json_part,
    part,
    question,
    readable,
    title_of,
    unclear,
    unshown,
)
from .dialect import BASH, FLAGS, PATCH, QUESTION, patched

ALWAYS: Final = Choice("always", "Yes, and do not ask about this again in this session")
DENY: Final = Choice("deny", "No; the turn goes on")
DECISIONS: Final = {
    "allow": "accept",
    "always": "acceptForSession",
    "deny": "decline",
    "stop": "cancel",
}


class _Payload(Struct):
    session_id: str
    hook_event_name: str
    tool_name: str
    turn_id: str = ""
    tool_use_id: str | None = None
    cwd: str | None = None
    tool_input: dict[str, Any] = {}
    agent_id: str | None = None
    agent_type: str | None = None


class _Question(Struct):
    id: str
    question: str
    header: str = ""
    options: list[Offered] | None = None


decoded = decoder_of(_Payload)


def request(
    payload: bytes, name: str, t: float, origin: Origin, truncated: bool = False
) -> Request | None:
    """Return the request in a payload; None if it is not the payload of a question."""
    exact = None if truncated else decoded(payload)
    p = exact or leniently(_Payload, readable(payload, truncated))
    questions = p.hook_event_name == "PreToolUse" and p.tool_name == QUESTION
    if not (questions or p.hook_event_name == "PermissionRequest"):
        return None
    if not is_id(p.session_id):
        return None
    whole = msgspec.to_builtins(p) if exact else payload.hex()
    made = Request(
        id=name,
        session_id=p.session_id,
        agent=origin.agent,
        pid=origin.pid or 0,
        thread=p.agent_id or "",
        thread_type=p.agent_type or "",
        kind="question" if questions else "permission",
        tool=p.tool_name,
        asked_at=t,
        digest=digest_of(name, origin.agent, origin.pid, whole),
    )
    made = msgspec.structs.replace(made, **(_asked(p) if questions else _permission(p)))
    return made if exact else inexact(made, truncated)


def reply(payload: bytes, answer: Answer) -> bytes:
    """Return an answer as a result for the server; empty if the server takes none of this kind."""
    if decision := DECISIONS.get(answer.choice):
        return msgspec.json.encode({"decision": decision})
    p = decoded(payload)
    asked = _questions(p.tool_input) if p else None
    if answer.choice != "choose" or asked is None:
        return b""
    answers: Facts = {}
    for q in asked:
        said = answer.answers.get(marked(q.question))
        if said:
            answers[q.id] = {"answers": chosen(said, q.options or ())}
    return msgspec.json.encode({"answers": answers})


def on_disk(payload: bytes) -> tuple[OnDisk, ...]:
    """See `Agent.on_disk`."""
    p = decoded(payload)
    if p is None or p.tool_name != PATCH:
        return ()
    paths = patched(text_of(p.tool_input, "command"), p.cwd or "")
    return tuple(OnDisk(path, "changed") for path in paths)


def _permission(p: _Payload) -> dict[str, Any]:
    given = Input(p.tool_input)
    command: tuple[Part, ...] = ()
    if p.tool_name in (BASH, PATCH) and (text := given.text("command")):
        command = (part("command" if p.tool_name == BASH else "text", text),)
    reason = given.text("description")
    rest = given.rest()
    words = {BASH: "Run a command", PATCH: "Change files"}
    return {
        "title": words.get(p.tool_name) or f"Use {marked(p.tool_name) or 'a tool'}",
        "parts": (*command, *([part("text", reason)] if reason else ()), *rest),
        "choices": (ALLOW, ALWAYS, DENY, STOP),
        **({} if command or rest else unclear(UNTOLD)),
    }


def _asked(p: _Payload) -> dict[str, Any]:
    asked = _questions(p.tool_input)
    if not asked:
        return {"parts": (json_part(p.tool_input),), **unclear(UNREADABLE)}
    questions = tuple(question(q.question, q.header, q.options or ()) for q in asked)
    # The answers are named by the ids.
    is_clear = are_distinct(questions) and len({q.id for q in asked}) == len(asked)
    return {
        "title": title_of(questions),
        "questions": questions,
        "parts": unshown(p.tool_input, _Question),
        **({"choices": (CHOOSE,)} if is_clear else unclear(ALIKE)),
    }


def _questions(given: Facts) -> list[_Question] | None:
    return converted(given.get("questions"), list[_Question])


# Recognize the request that a hook reported among the messages of Codex's server.
#
# A hook's payload lacks the id of the server's request. It has the turn and the command, and
# the tool that asks has the id of the item that waits.


COMMAND: Final = "item/commandExecution/requestApproval"
CHANGE: Final = "item/fileChange/requestApproval"
INPUT: Final = "item/tool/requestUserInput"
#: Tool of the hook → the server's method that asks.
ASKS: Final = {PATCH: CHANGE, QUESTION: INPUT}
#: Method → the members that a request may have: those that the hook reported, too, and those that
#: grant nothing.  Others, such as `additionalPermissions`, would grant something that nobody saw.
COMMON: Final = frozenset({"threadId", "turnId", "itemId", "startedAtMs", "reason"})
KNOWN: Final = {
    COMMAND: COMMON
    | {"kind", "environmentId", "command", "cwd", "commandActions"}
    | {"proposedExecpolicyAmendment", "availableDecisions"},
    CHANGE: COMMON,
    INPUT: COMMON | {"questions", "isBlocking", "autoResolutionMs"},
}
CANCEL: Final = "cancel"
REFUSALS: Final = ("decline", CANCEL)
#: The shells, with their flags, in which Codex runs commands, where a system or a package manager
#: puts them: the model can name a shell, and the hook does not report it.
SHELL: Final = re.compile(
    r"(?:(?:(?:/usr(?:/local)?|/opt/(?:homebrew|local)|/home/linuxbrew/\.linuxbrew)?"
    r"|/run/current-system/sw|/nix/store/[a-z0-9]{32}-[\w.+-]+)/bin/)?"
    r"(?:sh|bash|zsh|dash|ksh|fish)"
)
SHELL_FLAGS: Final = ("-c", "-lc")
LONGEST: Final = 1 << 16  # characters of a command line; the time to split it grows with the square
RESOLVED: Final = "serverRequest/resolved"


class Wanted(NamedTuple):
    """A request as the hook reported it."""

    method: str
    thread: str
    turn: str
    item: str  # the id of the tool; may be unknown for a command
    command: str
    cwd: str

    def among(self, said: Iterable[Facts]) -> dict[str, Facts]:
        """Return the requests among messages that wait, by id: the server may send one twice."""
        found: dict[str, Facts] = {}
        for message in said:
            if (request := self.found_in(message)) is not None:
                found[repr(request["id"])] = request
            for key in [key for key, known in found.items() if is_resolved(message, known)]:
                del found[key]
        return found

    def found_in(self, message: Facts) -> Facts | None:
        """Return the parameters of a message, with its id, if the message is this request."""
        given = message.get("params")
        if message.get("method") != self.method or not isinstance(given, dict):
            return None
        if (given.get("threadId"), given.get("turnId")) != (self.thread, self.turn):
            return None
        if (given.get("itemId") != self.item) if self.item else self.method != COMMAND:
            return None
        if self.method == COMMAND and not self._is_command(given):
            return None
        more = (value for name, value in given.items() if name not in KNOWN[self.method])
        return None if any(x is not None for x in more) else {**given, "id": message.get("id")}

    def _is_command(self, given: Facts) -> bool:
        """Return whether a request is to run this command, in the folder of the session."""
        is_here = not self.cwd or given.get("cwd") in (None, self.cwd)
        is_run = given.get("kind") in (None, "command")
        return is_run and is_here and runs_command(text_of(given, "command"), self.command)


def wanted_of(payload: bytes, tool_id: str) -> Wanted | None:
    """Return the request to look for; None if the payload has none, or not exactly enough."""
    p = decoded(payload)
    if p is None:
        return None
    method, command = ASKS.get(p.tool_name, COMMAND), p.tool_input.get("command")
    if not isinstance(command, str | None) or not p.turn_id or (method == COMMAND and not command):
        return None
    thread, item = p.agent_id or p.session_id, p.tool_use_id or tool_id
    return Wanted(method, thread, p.turn_id, item, command or "", p.cwd or "")


def waits(given: Facts) -> bool:
    """Return whether a thread that was resumed waits for somebody."""
    thread = given.get("thread")
    status = thread.get("status") if isinstance(thread, dict) else None
    flags = status.get("activeFlags") if isinstance(status, dict) else None
    return isinstance(flags, list) and any(flag in FLAGS for flag in flags if type(flag) is str)


def runs_command(line: str, command: str) -> bool:
    """Return whether a command line runs exactly this command, as it is or in a shell."""
    try:
        words = shlex.split(line) if len(line) < LONGEST else []
    except ValueError:
        return False
    return line == command or (
        len(words) == 3
        and SHELL.fullmatch(words[0]) is not None
        and words[1] in SHELL_FLAGS
        and words[2] == command
    )


def is_resolved(message: Facts, request: Facts) -> bool:
    """Return whether a message says that somebody has answered the request."""
    given = message.get("params")
    its = isinstance(given, dict) and given.get("requestId") == request["id"]
    return its and message.get("method") == RESOLVED


def contradicts(message: Facts, request: Facts, result: object) -> bool:
    """Return whether a message shows that another answer than this result counted."""
    given, method = message.get("params"), message.get("method")
    decision = result.get("decision") if isinstance(result, dict) else None
    if not isinstance(given, dict):
        return False
    item, turn = given.get("item"), given.get("turn")
    if method == "item/completed" and isinstance(item, dict):
        is_refused = item.get("status") == "declined"
        return item.get("id") == request.get("itemId") and is_refused != (decision in REFUSALS)
    if method == "turn/completed" and isinstance(turn, dict):
        is_its = turn.get("id") == request.get("turnId")
        return is_its and turn.get("status") == "interrupted" and decision != CANCEL
    return False
