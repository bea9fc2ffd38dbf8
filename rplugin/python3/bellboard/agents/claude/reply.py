"""Write the line that a hook of Claude Code prints to answer a question.

Seen on 2.1.76 to 2.1.332.  Questions and plans are never allowed without their input: newer
versions ignore that, and older ones take it as empty answers.  Of the suggestions in the payload,
only the chosen ones are sent back: a suggestion may let the whole session edit without asking.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from ...core.events import Origin
from ...core.request import HOOK, JOINER, OURS, STOPPED, TERMINAL, Answer, SentAnswer, check
from ...core.untrusted import Facts, list_of, text_of, time_of
from .request import AskingPayload, asked_in, request, shown_questions, suggested
from .transcript import INTERRUPTED, REJECTED, blocks_of

HOOKS: Final = frozenset({"PermissionRequest", "Elicitation"})  # events whose hooks can answer
DENIED: Final = "The user said no."
ACCEPT_EDITS: Final = {"type": "setMode", "mode": "acceptEdits", "destination": "session"}


def reply(payload: bytes, answer: Answer) -> bytes:
    """Return the line that gives an answer; empty if it is invalid or no hook can give it."""
    asked, made = asked_in(payload), request(payload, "", 0.0, Origin())
    if asked is None or made is None or check(made, answer):
        return b""
    if asked.hook_event_name not in HOOKS:
        return b""
    said = WRITERS.get(answer.choice, _suggested)(asked, answer)
    return msgspec.json.encode(
        {"hookSpecificOutput": {"hookEventName": asked.hook_event_name, **said}}
    )


def _allow(asked: AskingPayload, answer: Answer) -> Facts:
    return {"decision": {"behavior": "allow"}}


def _suggested(asked: AskingPayload, answer: Answer) -> Facts:
    """Return the chosen suggestions, unchanged."""
    (chosen,) = (each for each in suggested(asked, {})[0] if each.choice.id == answer.choice)
    return {"decision": {"behavior": "allow", "updatedPermissions": [*chosen.updates]}}


def _edit(asked: AskingPayload, answer: Answer) -> Facts:
    given = {**asked.tool_input, "command": answer.input}
    return {"decision": {"behavior": "allow", "updatedInput": given}}


def _deny(asked: AskingPayload, answer: Answer) -> Facts:
    return {"decision": {"behavior": "deny", "message": answer.message or DENIED}}


def _stop(asked: AskingPayload, answer: Answer) -> Facts:
    return {"decision": {"behavior": "deny", "message": DENIED, "interrupt": True}}


def _choose(asked: AskingPayload, answer: Answer) -> Facts:
    """Name each question and option by its own text, which may differ from the shown text."""
    answers = {}
    for raw, shown in zip(
        asked.tool_input["questions"], shown_questions(asked.tool_input), strict=True
    ):
        said = answer.answers.get(shown.text)
        if isinstance(said, list):
            own, chosen = zip(raw["options"], shown.options, strict=True), {*said}
            said = JOINER.join(option["label"] for option, seen in own if seen.label in chosen)
        if said:
            answers[raw["question"]] = said
    return {
        "decision": {"behavior": "allow", "updatedInput": {**asked.tool_input, "answers": answers}}
    }


def _approve(asked: AskingPayload, answer: Answer) -> Facts:
    return {"decision": {"behavior": "allow", "updatedInput": asked.tool_input}}


def _approve_edits(asked: AskingPayload, answer: Answer) -> Facts:
    given = {"behavior": "allow", "updatedInput": asked.tool_input}
    return {"decision": {**given, "updatedPermissions": [ACCEPT_EDITS]}}


def _fill(asked: AskingPayload, answer: Answer) -> Facts:
    return {"action": "accept", "content": answer.content}


def _decline(asked: AskingPayload, answer: Answer) -> Facts:
    return {"action": "decline"}


WRITERS: Final[dict[str, Callable[[AskingPayload, Answer], Facts]]] = {
    "allow": _allow,
    "edit": _edit,
    "deny": _deny,
    "stop": _stop,
    "choose": _choose,
    "approve": _approve,
    "approve-edits": _approve_edits,
    "keep": _deny,
    "fill": _fill,
    "decline": _decline,
}


# Find in a transcript whose answer to a permission counted.
#
# Seen on 2.1.76 to 2.1.330. From 2.1.119 on, an entry says that a hook decided, and it is
# written together with the result of the tool, before it; older versions show only the result.
# A tool that is interrupted looks as if the user had refused it, even if it was allowed before;
# but in that case the CLI has worked in between. A turn that a hook stopped looks as if the
# user had refused the tool, too; the entry that follows names the message only if it was the
# user (2.1.328, .330).


TELLS: Final = (2, 1, 119)  # the first version seen to say that a hook decided
NAMES: Final = (2, 1, 328)  # the first seen to name the interrupted message
NOES: Final = frozenset({"deny", "keep", "stop"})
CLOCKS: Final = 1.0  # seconds by which the times of two files may differ


class Result(NamedTuple):
    """The outcome of a tool."""

    text: str
    is_error: bool
    version: tuple[int, ...]

    @property
    def is_rejection(self) -> bool:
        return self.is_error and self.text.startswith(REJECTED)


def first_in(
    entries: Sequence[Facts], payload: bytes, tool_id: str, since: float, sent: SentAnswer
) -> str | None:
    """Return whose answer counted, "" if nothing shows it, None if more entries must come."""
    answer, hook = sent.answer, sent.hook
    asked = asked_in(payload)
    if asked is None or asked.agent_id or not entries:
        return ""
    tool = tool_id or _asking(entries, asked.tool_name, since)
    result = _result(entries, tool, since)
    if result is None:
        return None
    wanted = "deny" if answer.choice in NOES else "allow"
    decided = [d for e in entries if (d := _decision(e, tool))]
    if decided:
        return OURS if hook and decided[-1] == wanted else HOOK
    if result.is_rejection:
        return _of_rejection(entries, since, sent, result)
    if not _can_follow(result, answer):
        return TERMINAL
    if not hook:
        return ""
    if result.version >= TELLS:
        return TERMINAL
    return OURS if answer.choice in NOES else ""


def _of_rejection(
    entries: Sequence[Facts], since: float, sent: SentAnswer, result: Result
) -> str | None:
    """Return who stopped the turn at a tool: a hook that stops it leaves no other entry."""
    choice = sent.answer.choice
    if choice not in NOES:
        return TERMINAL if sent.went and sent.went.rests else STOPPED
    if not sent.hook:
        return ""
    if choice != "stop":
        return TERMINAL if result.version >= TELLS else ""
    if result.version < NAMES:
        return ""
    end = next((e for e in entries if _is_since(e, since) and _is_interruption(e)), None)
    if end is None:
        return None
    return TERMINAL if end.get("interruptedMessageId") else OURS


def _is_interruption(entry: Facts) -> bool:
    return any(text_of(block, "text").startswith(INTERRUPTED) for block in blocks_of(entry))


def _can_follow(result: Result, answer: Answer) -> bool:
    """Return whether an answer can have led to this outcome."""
    is_no = result.is_error and (answer.message or DENIED) in result.text
    return answer.choice not in NOES or is_no


def _asking(entries: Sequence[Facts], name: str, since: float) -> str:
    """Return the id of the tool that asked: the first of this name with a result since then."""
    named = {
        text_of(block, "id")
        for entry in entries
        for block in blocks_of(entry)
        if block.get("type") == "tool_use" and block.get("name") == name
    }
    over = (i for entry in entries if _is_since(entry, since) for i, _ in _results(entry))
    return next((i for i in over if i in named), "")


def _result(entries: Sequence[Facts], tool: str, since: float) -> Result | None:
    for entry in entries:
        for found, result in _results(entry) if _is_since(entry, since) else ():
            if tool and found == tool:
                return result
    return None


def _is_since(entry: Facts, since: float) -> bool:
    return (time_of(entry.get("timestamp")) or 0.0) >= since - CLOCKS


def _results(entry: Facts) -> Iterator[tuple[str, Result]]:
    numbers = re.findall(r"\d{1,9}", text_of(entry, "version"))
    for block in blocks_of(entry):
        if block.get("type") == "tool_result":
            content = block.get("content")
            texts = [text_of(part, "text") for part in list_of(content) if isinstance(part, dict)]
            text = content if isinstance(content, str) else "\n".join(texts)
            result = Result(text, block.get("is_error") is True, tuple(map(int, numbers)))
            yield text_of(block, "tool_use_id"), result


def _decision(entry: Facts, tool: str) -> str:
    """Return a hook's decision about a tool, or ""."""
    said = entry.get("attachment")
    if not isinstance(said, dict) or said.get("type") != "hook_permission_decision":
        return ""
    return text_of(said, "decision") if text_of(said, "toolUseID") == tool else ""
