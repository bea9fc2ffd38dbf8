"""avante.nvim: chats inside Neovim, which Lua reports."""
