"""Decode what Lua reports of a chat inside Neovim, whose words `evidence/chats.lua` defines."""

from __future__ import annotations

from typing import Final

from ...registry import CHATS
from ...words import Worded, Words, failure

#: What a chat does → kind.
KINDS: Final[dict[str, str]] = {
    "opens": "start",
    "works": "prompt",
    "asks": "request",
    "goes on": "form answer",
    "fails": "failure",
    "rests": "rest",
    "breaks off": "interrupt",
    "closes": "end",
}
FIELDS: Final = {"session_id": "session_id", "cwd": "cwd", "tool": "tool_name"}
WORDS: Final = Words(KINDS, {"fails": failure("error")}, FIELDS, event="event")
DIALECTS: Final = {key: Worded(key, WORDS) for key in CHATS}
