"""Plugins with chats inside Neovim, as the rest of the program observes them."""

from __future__ import annotations

from typing import Final

from ..agent import Cli
from ..registry import CHATS


class Chat(Cli):
    """See `Cli`."""

    def __init__(self, key: str) -> None:
        self.key, self.name = key, f"{key}.nvim"


CLIS: Final = {key: Chat(key) for key in CHATS}
