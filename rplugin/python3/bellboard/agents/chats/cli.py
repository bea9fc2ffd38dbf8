"""Plugins with chats inside Neovim, as the rest of the program observes them."""

from __future__ import annotations

from typing import Final

from ..agent import Agent
from ..registry import CHATS


class Chat(Agent):
    """See `Cli`."""

    def __init__(self, key: str) -> None:
        self.key, self.name = key, f"{key}.nvim"


CLIS: Final = {key: Chat(key) for key in CHATS}
