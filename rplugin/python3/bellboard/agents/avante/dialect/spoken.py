"""The dialect of avante.nvim, whose chats Lua reports.

This file does no I/O, knows no clock, and tolerates any input.
"""

from __future__ import annotations

from typing import Final

from ...chats import chat

DIALECT: Final = chat("avante")
