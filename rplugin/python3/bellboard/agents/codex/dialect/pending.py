"""Recognise, among what Codex's server sends, the request that a hook reported.

A hook's payload lacks the id of the server's request.  It has the turn and the command, and the
tool that asks has the id of the item that waits.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from typing import Final, NamedTuple

from ....core.untrusted import Facts, text_of
from .names import FLAGS, PATCH, QUESTION
from .request import decoded

COMMAND: Final = "item/commandExecution/requestApproval"
CHANGE: Final = "item/fileChange/requestApproval"
INPUT: Final = "item/tool/requestUserInput"
#: Tool of the hook → the server's method that asks.
ASKS: Final = {PATCH: CHANGE, QUESTION: INPUT}
#: Method → the members that a request may have: those that the hook reported, too, and those that
#: grant nothing.  Any other, such as `additionalPermissions`, would grant what nobody was shown.
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
#: The programs, with their flags, that Codex runs a command in, where a system or a package manager
#: puts them: the model can name a shell, and the hook does not report which.
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
        """Return those of these requests that wait, by their ids: each may be sent twice."""
        found: dict[str, Facts] = {}
        for message in said:
            if (request := self.found_in(message)) is not None:
                found[repr(request["id"])] = request
            for key in [key for key, known in found.items() if is_resolved(message, known)]:
                del found[key]
        return found

    def found_in(self, message: Facts) -> Facts | None:
        """Return the parameters of a message, with its id, if it is this request."""
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
        return is_run and is_here and runs(text_of(given, "command"), self.command)


def wanted_of(payload: bytes, tool_id: str) -> Wanted | None:
    """Return what to look for; None if the payload does not ask, or not exactly enough."""
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


def runs(line: str, command: str) -> bool:
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
