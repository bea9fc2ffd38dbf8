"""Write what a hook of Claude Code prints to answer a question.

Seen on 2.1.76 to 2.1.332.  Questions and plans are never allowed without their input: newer
versions ignore that, and older ones take it as empty answers.  Of the suggestions in the payload,
only what was chosen is sent back: they may let the whole session edit without asking.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from ....core.events import Origin
from ....core.request import JOINER, Answer, check
from ....core.untrusted import Facts
from .forms import questions_of
from .request import Asked, asked_in, request, suggested

HOOKS: Final = frozenset({"PermissionRequest", "Elicitation"})  # whose output is an answer
DENIED: Final = "The user said no."
ACCEPT_EDITS: Final = {"type": "setMode", "mode": "acceptEdits", "destination": "session"}


def reply(payload: bytes, answer: Answer) -> bytes:
    """Return the line that gives an answer; empty if it is refused, or the hook cannot give it."""
    asked, made = asked_in(payload), request(payload, "", 0.0, Origin())
    if asked is None or made is None or check(made, answer):
        return b""
    if asked.hook_event_name not in HOOKS:
        return b""
    said = WRITERS.get(answer.choice, _suggested)(asked, answer)
    return msgspec.json.encode(
        {"hookSpecificOutput": {"hookEventName": asked.hook_event_name, **said}}
    )


def _allow(asked: Asked, answer: Answer) -> Facts:
    return {"decision": {"behavior": "allow"}}


def _suggested(asked: Asked, answer: Answer) -> Facts:
    """Return exactly what was suggested, and chosen."""
    (chosen,) = (each for each in suggested(asked, {})[0] if each.choice.id == answer.choice)
    return {"decision": {"behavior": "allow", "updatedPermissions": [*chosen.updates]}}


def _edit(asked: Asked, answer: Answer) -> Facts:
    given = {**asked.tool_input, "command": answer.input}
    return {"decision": {"behavior": "allow", "updatedInput": given}}


def _deny(asked: Asked, answer: Answer) -> Facts:
    return {"decision": {"behavior": "deny", "message": answer.message or DENIED}}


def _stop(asked: Asked, answer: Answer) -> Facts:
    return {"decision": {"behavior": "deny", "message": DENIED, "interrupt": True}}


def _choose(asked: Asked, answer: Answer) -> Facts:
    """Name each question and option by its own text, which may differ from the one shown."""
    answers = {}
    for raw, shown in zip(
        asked.tool_input["questions"], questions_of(asked.tool_input), strict=True
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


def _approve(asked: Asked, answer: Answer) -> Facts:
    return {"decision": {"behavior": "allow", "updatedInput": asked.tool_input}}


def _approve_edits(asked: Asked, answer: Answer) -> Facts:
    given = {"behavior": "allow", "updatedInput": asked.tool_input}
    return {"decision": {**given, "updatedPermissions": [ACCEPT_EDITS]}}


def _fill(asked: Asked, answer: Answer) -> Facts:
    return {"action": "accept", "content": answer.content}


def _decline(asked: Asked, answer: Answer) -> Facts:
    return {"action": "decline"}


WRITERS: Final[dict[str, Callable[[Asked, Answer], Facts]]] = {
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
