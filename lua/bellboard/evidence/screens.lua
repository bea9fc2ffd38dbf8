-- Reports what terminals of this Neovim show, for sessions whose status is visible nowhere else.
-- Only Neovim can read them; it does so when they change.
local host = require('bellboard.host')
local sessions = require('bellboard.state.sessions')
local terminals = require('bellboard.state.terminals')

local M = {}

local api = vim.api

local ROWS = 60 -- from the bottom up; as many as the background process reads
local SETTLE = 150 -- ms after a change, as a screen is drawn in parts
local LONGEST = 1000 -- ms between two reports while a screen keeps changing

---@type table<integer, string> watched buffer → the session reported for it
local heard = {}

--- The session in a terminal, if only its screen shows its status.
---@param buf integer
---@return bellboard.Session|nil
local function blind(buf)
  local session = terminals.session(buf)
  return session and session.blind and session or nil
end

---@param buf integer
local function report(buf)
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
    report(buf)
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

--- Watch the terminals that have to be read.
---@param again? boolean report them even if unchanged
local function attend(again)
  for _, session in ipairs(sessions.list()) do
    local buf = session.blind and terminals.buffer(session.tty)
    if buf and not heard[buf] then
      listen(buf)
    end
    if buf and (again or heard[buf] ~= session.session_id) then
      heard[buf] = session.session_id
      report(buf)
    end
  end
end

--- Report all screens to a new background process.
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
