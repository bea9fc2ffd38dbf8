-- The terminal that this Neovim runs in.
local M = {}

local api = vim.api

--- Send an escape sequence to it.
---@param sequence string
M.send = function(sequence)
  if vim.env.TMUX and sequence:sub(1, 1) == '\27' then -- tmux only passes on wrapped sequences
    sequence = '\27Ptmux;' .. sequence:gsub('\27', '\27\27') .. '\27\\'
  end
  if api.nvim_ui_send then
    api.nvim_ui_send(sequence)
  else
    api.nvim_chan_send(vim.v.stderr, sequence)
  end
end

return M
