-- The terminal that shows a question, in this Neovim or in another one: read it, type a key.
local neighbour = require('bellboard.system.neighbour')
local terminals = require('bellboard.state.terminals')

local M = {}

local api = vim.api

--- Rows of the terminal to read: more than any dialog has.
local DEPTH = 60
--- Run in another Neovim, which may have another version of this plugin.
local READ = "local ok, rows = pcall(require('bellboard')._rows, ...) return ok and rows or false"
local TYPE = "local ok, typed = pcall(require('bellboard')._type, ...) return ok and typed"

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
    return (row:gsub('%s+$', ''))
  end, M.rows(tty) or {})
  local text = '\n' .. table.concat(lines, '\n') .. '\n'
  if not text:find('\n' .. table.concat(rows, '\n') .. '\n', 1, true) then
    return false
  end
  api.nvim_chan_send(vim.bo[terminals.buffer(tty)].channel, key)
  return true
end

--- Whether a session's terminal belongs to another Neovim that can be asked.
---@param session bellboard.Session
---@return boolean
M.is_elsewhere = function(session)
  local address = session.nvim
  return address ~= nil and address ~= vim.v.servername and not terminals.buffer(session.tty)
end

--- Read the terminal that shows a session's question; nothing if it is a tmux pane.
---@param session bellboard.Session
---@param done fun(rows: string[]|nil, why: string|nil)
M.read = function(session, done)
  if not M.is_elsewhere(session) then
    return done(M.rows(session.tty))
  end
  neighbour.ask(session.nvim, READ, { session.tty }, function(rows, why)
    local lost = why ~= '' and why or 'its terminal is not there'
    done(rows or nil, not rows and 'the other Neovim did not show it: ' .. lost or nil)
  end)
end

--- Type a key into the terminal that was read, if it still shows these rows.
---@param session bellboard.Session
---@param rows string[]
---@param key string
---@param done fun(typed: boolean)
M.answer = function(session, rows, key, done)
  if not M.is_elsewhere(session) then
    return done(M.type(session.tty, rows, key))
  end
  neighbour.ask(session.nvim, TYPE, { session.tty, rows, key }, function(typed)
    done(typed == true)
  end)
end

return M
