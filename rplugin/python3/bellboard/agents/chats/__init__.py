"""Plugins with chats inside Neovim, whose words `lua/bellboard/evidence/chats.lua` defines."""
