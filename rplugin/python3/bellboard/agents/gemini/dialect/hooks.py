"""What Gemini CLI calls its hook events.

AfterAgent also runs after Esc and after errors: its log says how the turn ended (`log.py`).
PreCompress runs before every request to the model, and compacts nothing.  No hook says that a
dialog was answered: the title does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ....core.untrusted import Facts, object_of, text_of
from ...words import FIELDS, Reader, Words, from_key, kind_in, typed_prompt

#: Hook → kind.
KINDS: Final[dict[str, str]] = {
    "SessionStart": "start",  # or resume: by its source
    "SessionEnd": "end",
    "BeforeAgent": "prompt",
    "AfterAgent": "rest",
    "BeforeTool": "tool",
    "AfterTool": "tool end",  # or interrupt: by its result
    "Notification": "note",  # or request: by its type
    "PreCompress": "note",
    "BeforeModel": "note",
    "AfterModel": "note",
    "BeforeToolSelection": "note",
}
PERMISSION: Final = "ToolPermission"
QUESTION: Final = "ask_user"
CANCELLED: Final = "Command cancelled by user."
#: What a dialog is about, best first.
ABOUT: Final = ("command", "filePath", "title")


def about(top: Facts) -> Facts:
    """Return the details of a notification."""
    return object_of(top.get("details"))


def _answer(top: Facts, facts: Facts) -> None:
    facts["message"] = text_of(top, "prompt_response")
    facts.pop("prompt", None)


def _tool_end(top: Facts, facts: Facts) -> str | None:
    shown = text_of(object_of(top.get("tool_response")), "returnDisplay")
    return "interrupt" if shown == CANCELLED else None


def _notification(top: Facts, facts: Facts) -> str | None:
    facts["source"] = text_of(top, "notification_type")
    if facts["source"] != PERMISSION:
        return None
    details = about(top)
    is_question = text_of(details, "type") == QUESTION
    facts["asks"] = "question" if is_question else "permission"
    facts["detail"] = next(filter(None, (text_of(details, key) for key in ABOUT)), "")
    return "request"


READ: Final[Mapping[str, Reader]] = {
    "SessionStart": kind_in({"resume": "resume"}, "source"),
    "SessionEnd": from_key("source", "reason"),
    "BeforeAgent": typed_prompt,
    "AfterAgent": _answer,
    "AfterTool": _tool_end,
    "Notification": _notification,
}
WORDS: Final = Words(KINDS, READ, FIELDS)
