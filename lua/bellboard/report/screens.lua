-- Reports the terminals of this Neovim, for sessions whose status is visible nowhere else: the
-- screen itself, or the title that the program gave its terminal. Only Neovim can read them.
local host = require('bellboard.process.talk')
local receive = require('bellboard.process.receive')
local sessions = require('bellboard.sessions')
local terminals = require('bellboard.terminals')

local M = {}

local api = vim.api

local ROWS = 60 -- from the bottom up; no dialog has more
local SETTLE = 150 -- ms after a change, as a screen is drawn in parts
local LONGEST = 1000 -- ms between two reports while a screen keeps changing
local READS = 3 -- reads of a title after the last change: a CLI may set it after drawing
local LONG = 300 -- characters of a title; as many as the background process reads

---@class bellboard.Reader
---@field needs string the field of a session that is set if its terminal has to be read
---@field drawn fun(look: fun(): boolean): fun() makes the function to call after each drawing;
---  `look` reads and reports, and returns false once that is no longer needed
---@field report fun(buf: integer, session: bellboard.Session)
---@field forget? fun(buf: integer)
---@field watched table<integer, string> buffer → the session reported for it

--- The session in a terminal, if it has to be read.
---@param buf integer
---@param needs string
---@return bellboard.Session|nil
local function session_in(buf, needs)
  local session = api.nvim_buf_is_loaded(buf) and terminals.session(buf)
  return session and session[needs] and session or nil
end

---@type table<integer, string> buffer → its title as last reported
local titles = {}

---@type bellboard.Reader
local screen = {
  needs = 'blind',
  watched = {},
  report = function(buf, session)
    host.notify('screen', session.session_id, session.pid, terminals.rows(buf, ROWS))
  end,
  drawn = function(look)
    local is_due, last = false, 0
    return function()
      if not is_due then
        is_due = true
        vim.defer_fn(function()
          is_due, last = false, vim.uv.now()
          look()
        end, math.max(SETTLE, last + LONGEST - vim.uv.now()))
      end
    end
  end,
}

--- Titles are read a few times after each drawing. (A watcher of b:term_title crashes 0.10.)
---@type bellboard.Reader
local title = {
  needs = 'title_tells',
  watched = {},
  report = function(buf, session)
    local text = vim.b[buf].term_title
    if type(text) == 'string' then
      text = vim.fn.strcharpart(text, 0, LONG)
      local is_new = titles[buf] ~= text
      if is_new and host.notify('title', session.session_id, session.pid or 0, text) then
        titles[buf] = text
      end
    end
  end,
  drawn = function(look)
    local reads = 0
    local function again()
      reads = look() and reads - 1 or 0
      if reads > 0 then
        vim.defer_fn(again, SETTLE)
      end
    end
    return function()
      local is_reading = reads > 0
      reads = READS
      if not is_reading then
        vim.defer_fn(again, SETTLE)
      end
    end
  end,
  forget = function(buf)
    titles[buf] = nil
  end,
}

---@param reader bellboard.Reader
---@param buf integer
local function forget(reader, buf)
  reader.watched[buf] = nil
  if reader.forget then
    reader.forget(buf)
  end
end

---@param reader bellboard.Reader
---@param buf integer
local function watch(reader, buf)
  local drawn = reader.drawn(function()
    local session = session_in(buf, reader.needs)
    if session then
      reader.report(buf, session)
    end
    return session ~= nil
  end)
  local is_attached = api.nvim_buf_attach(buf, false, {
    on_lines = function()
      if not session_in(buf, reader.needs) then
        forget(reader, buf)
        return true
      end
      drawn()
    end,
    on_detach = function()
      forget(reader, buf)
    end,
  })
  reader.watched[buf] = is_attached and '' or nil
end

--- Watch the terminals that have to be read.
---@param reader bellboard.Reader
---@param again boolean report them even if unchanged
local function attend(reader, again)
  for _, session in ipairs(sessions.list()) do
    local buf = session[reader.needs] and terminals.buffer(session.tty)
    if buf and not reader.watched[buf] then
      watch(reader, buf)
    end
    if buf and (again or reader.watched[buf] ~= session.session_id) then
      forget(reader, buf)
      reader.watched[buf] = session.session_id
      local known = session_in(buf, reader.needs)
      if known then
        reader.report(buf, known)
      end
    end
  end
end

---@param again boolean
local function attend_all(again)
  attend(screen, again)
  attend(title, again)
end

M.attach = function()
  sessions.on_change('screens', function()
    attend_all(false)
  end)
  receive.on('snapshot', function()
    attend_all(true)
  end)
end

return M
