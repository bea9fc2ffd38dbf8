"""The themes to look at: name, the command that sets it, and the terminal's type."""

from __future__ import annotations

from typing import Final

_PASTEL = """
vim.o.background = '%(background)s'
vim.cmd.highlight('clear')
vim.g.colors_name = 'pastel'
for name, hl in pairs({
  Normal = { fg = '%(text)s', bg = '%(base)s' },
  NormalFloat = { fg = '%(text)s', bg = '%(mantle)s' },
  FloatBorder = { fg = '%(blue)s' },
  FloatTitle = { fg = '%(text)s', bold = true },
  StatusLine = { fg = '%(text)s', bg = '%(mantle)s' },
  StatusLineNC = { fg = '%(dim)s', bg = '%(mantle)s' },
  TabLineFill = { bg = '%(mantle)s' },
  Comment = { fg = '%(dim)s', italic = true },
  NonText = { fg = '%(dim)s' },
  Title = { fg = '%(blue)s', bold = true },
  Special = { fg = '%(blue)s' },
  CursorLine = { bg = '%(mantle)s' },
  Visual = { bg = '%(dim)s' },
  DiagnosticError = { fg = '%(red)s', italic = true },
  DiagnosticWarn = { fg = '%(yellow)s', italic = true },
  DiagnosticInfo = { fg = '%(sky)s', italic = true },
  DiagnosticHint = { fg = '%(sky)s', italic = true },
  DiagnosticOk = { fg = '%(green)s', italic = true },
}) do
  vim.api.nvim_set_hl(0, name, hl)
end
vim.api.nvim_exec_autocmds('ColorScheme', { pattern = 'pastel' })
"""
_DARK: Final = {
    "background": "dark",
    "text": "#cdd6f4",
    "base": "#1e1e2e",
    "mantle": "#181825",
    "dim": "#6c7086",
    "blue": "#89b4fa",
    "red": "#f38ba8",
    "yellow": "#f9e2af",
    "sky": "#89dceb",
    "green": "#a6e3a1",
}
_LIGHT: Final = {
    "background": "light",
    "text": "#4c4f69",
    "base": "#eff1f5",
    "mantle": "#e6e9ef",
    "dim": "#9ca0b0",
    "blue": "#1e66f5",
    "red": "#d20f39",
    "yellow": "#df8e1d",
    "sky": "#04a5e5",
    "green": "#40a02b",
}

FULL, FEW = "xterm-256color", "xterm-16color"
_RICH = "vim.o.termguicolors = true "
_LIGHTER = "vim.o.background = 'light' "
#: name → Lua, the terminal's type, whether it is dark
THEMES: Final = {
    "default": (_RICH, FULL, True),
    "default-light": (_RICH + _LIGHTER, FULL, False),
    "habamax": (_RICH + "vim.cmd.colorscheme('habamax')", FULL, True),
    "retrobox": (_RICH + "vim.cmd.colorscheme('retrobox')", FULL, True),
    "retrobox-light": (_RICH + _LIGHTER + "vim.cmd.colorscheme('retrobox')", FULL, False),
    "pastel": (_RICH + _PASTEL % _DARK, FULL, True),
    "pastel-light": (_RICH + _PASTEL % _LIGHT, FULL, False),
    "256": ("vim.cmd.colorscheme('habamax')", FULL, True),
    "16": ("", FEW, True),
    "16-light": (_LIGHTER, FEW, False),
}
