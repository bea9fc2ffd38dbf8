-- Watches the terminals of this Neovim whose contents the background process needs, and reports
-- when one was drawn.
local sessions = require('bellboard.sessions')
local terminals = require('bellboard.terminals')
local updates = require('bellboard.updates')

local M = {}

local api = vim.api

---@class bellboard.Drawn what reads terminals
---@field name string
---@field needs string the field of a session that is set if its terminal has to be read
---@field drawn fun(buf: integer): fun() returns what to call each time the buffer was drawn
---@field report fun(buf: integer, session: bellboard.Session)
---@field forget? fun(buf: integer)

--- The session in a terminal, if its contents are needed.
---@param buf integer
---@param needs string
---@return bellboard.Session|nil
M.session = function(buf, needs)
  local session = api.nvim_buf_is_loaded(buf) and terminals.session(buf)
  return session and session[needs] and session or nil
end

---@param reader bellboard.Drawn
---@return { renew: fun(), attach: fun() }
M.watch = function(reader)
  ---@type table<integer, string> watched buffer → the session reported for it
  local heard = {}

  ---@param buf integer
  local function forget(buf)
    heard[buf] = nil
    if reader.forget then
      reader.forget(buf)
    end
  end

  ---@param buf integer
  local function listen(buf)
    local drawn = reader.drawn(buf)
    local is_heard = api.nvim_buf_attach(buf, false, {
      on_lines = function()
        if not M.session(buf, reader.needs) then
          forget(buf)
          return true
        end
        drawn()
      end,
      on_detach = function()
        forget(buf)
      end,
    })
    heard[buf] = is_heard and '' or nil
  end

  --- Watch the terminals whose contents are needed.
  ---@param again? boolean report them even if unchanged
  local function attend(again)
    for _, session in ipairs(sessions.list()) do
      local buf = session[reader.needs] and terminals.buffer(session.tty)
      if buf and not heard[buf] then
        listen(buf)
      end
      if buf and (again or heard[buf] ~= session.session_id) then
        forget(buf)
        heard[buf] = session.session_id
        local known = M.session(buf, reader.needs)
        if known then
          reader.report(buf, known)
        end
      end
    end
  end

  return {
    --- Report everything to a new background process.
    renew = function()
      attend(true)
    end,
    attach = function()
      updates.on(reader.name, function()
        attend()
      end)
    end,
  }
end

return M
