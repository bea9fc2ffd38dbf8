-- Hands in what terminals of this Neovim show, for sessions whose status nothing better tells. Only
-- Neovim can read them, and it reads them only when they have changed.
local host = require('bellboard.host')
local sessions = require('bellboard.state.sessions')
local terminals = require('bellboard.state.terminals')

local M = {}

local api = vim.api

local ROWS = 60 -- from the last one up; the host looks at as many
local SETTLE = 150 -- ms after a change: a screen is drawn in parts
local LONGEST = 1000 -- ms from one look to the next, while a screen changes often

---@type table<integer, string> buffers that are listened to → the session that was told of
local heard = {}

--- The session in a terminal, if nothing but its screen tells of it.
---@param buf integer
---@return bellboard.Session|nil
local function blind(buf)
  local session = terminals.session(buf)
  return session and session.blind and session or nil
end

---@param buf integer
local function hand_in(buf)
  local session = api.nvim_buf_is_loaded(buf) and blind(buf)
  if session then
    local rows = terminals.rows(buf, ROWS)
    host.notify('screen', session.session_id, session.pid, rows)
  end
end

---@param buf integer
local function listen(buf)
  local waiting, last = false, 0
  local function look()
    waiting, last = false, vim.uv.now()
    hand_in(buf)
  end
  local is_heard = api.nvim_buf_attach(buf, false, {
    on_lines = function()
      if not blind(buf) then
        heard[buf] = nil
        return true
      end
      if not waiting then
        waiting = true
        vim.defer_fn(look, math.max(SETTLE, last + LONGEST - vim.uv.now()))
      end
    end,
    on_detach = function()
      heard[buf] = nil
    end,
  })
  heard[buf] = is_heard and '' or nil
end

--- Listen to the terminals that have to be read; what a new host has to hear is told again.
---@param anew? boolean
local function attend(anew)
  for _, session in ipairs(sessions.list()) do
    local buf = session.blind and terminals.buffer(session.tty)
    if buf and not heard[buf] then
      listen(buf)
    end
    if buf and (anew or heard[buf] ~= session.session_id) then
      heard[buf] = session.session_id
      hand_in(buf)
    end
  end
end

--- A host that is new has read no screen.
M.renew = function()
  attend(true)
end

M.attach = function()
  api.nvim_create_autocmd('User', {
    group = api.nvim_create_augroup('bellboard.screens', {}),
    pattern = 'BellboardUpdate',
    callback = function()
      attend()
    end,
  })
end

return M
