-- Reads the rows of a terminal that shows a question, and types keys into it, for the background
-- process that answers it.
local terminals = require('bellboard.terminals')

local M = {}

local api = vim.api

--- Rows of the terminal to read: more than any dialog has.
local DEPTH = 60

--- The last rows of a terminal of this Neovim.
---@param tty string
---@return string[]|nil
M.rows = function(tty)
  local buf = terminals.buffer(tty)
  return buf and terminals.rows(buf, DEPTH) or nil
end

--- Type a key into a terminal of this Neovim that still shows these rows, one below the other.
---@param tty string
---@param rows string[]
---@param key string
---@return boolean typed
M.type = function(tty, rows, key)
  local lines = vim.tbl_map(function(row)
    return row:match('^(.*%S)') or ''
  end, M.rows(tty) or {})
  local text = '\n' .. table.concat(lines, '\n') .. '\n'
  if not text:find('\n' .. table.concat(rows, '\n') .. '\n', 1, true) then
    return false
  end
  api.nvim_chan_send(vim.bo[terminals.buffer(tty)].channel, key)
  return true
end

return M
