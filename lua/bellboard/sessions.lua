-- The sessions as last published by the background process, and the callbacks of changes.
local cells = require('bellboard.text')
local config = require('bellboard.config')
local message = require('bellboard.message')
local moment = require('bellboard.moment')

local M = {}

local NAME = 24 -- cells of a title in a message

---@type bellboard.Status[] most urgent first
M.statuses = config.statuses

local rank = {}
for nth, status in ipairs(M.statuses) do
  rank[status] = nth
end

---@type table<string, bellboard.Session>
local by_id = {}
---@type bellboard.Session[] without the hidden ones, most urgent first
local ordered = {}
---@type table<string, bellboard.Session>
local by_tty = {}
---@type table<bellboard.Status, integer>
local counts = {}
---@type bellboard.Session[] of machines that cannot be reached for long
local folded = {}
---@type table<string, integer> rank of a repository, the busiest first
local places = {}
---@type string[] ids of the sessions in the float
local calling = {}
---@type table<string, string> why other blocked sessions are not in it, by id
local left_out = {}
---@type string|nil address of the Neovim that had the focus last; empty: none has a screen
local in_front
---@type string|nil which notices are on
local mode
---@type table<string, bellboard.Session> removed by the last push; its transitions may name them
local gone = {}
local stale = false
---@type table<string, any>
local health = {}

--- Whether a session's label keeps it on top.
---@param session bellboard.Session
---@return boolean
local function pinned(session)
  local label = session.label and config.get().notices.labels[session.label]
  return label ~= nil and label.pin == true
end
M.pinned = pinned

---@param a bellboard.Session
---@param b bellboard.Session
local function more_urgent(a, b)
  local x, y = rank[a.status] or 99, rank[b.status] or 99
  if x ~= y then
    return x < y
  elseif pinned(a) ~= pinned(b) then
    return pinned(a)
  elseif a.since ~= b.since then
    return a.since < b.since
  end
  return a.session_id < b.session_id
end

local function reorder()
  ordered, by_tty, counts, folded = {}, {}, {}, {}
  for _, status in ipairs(M.statuses) do
    counts[status] = 0
  end
  for _, session in pairs(by_id) do
    if not session.hidden then
      ordered[#ordered + 1] = session
      counts[session.status] = (counts[session.status] or 0) + 1
    end
    if session.folded then
      folded[#folded + 1] = session
    end
    local tty = not session.board and session.tty -- those of a board there are not looked at here
    local there = by_tty[tty or '']
    if tty and not (there and more_urgent(there, session)) then
      by_tty[tty] = session
    end
  end
  table.sort(ordered, more_urgent)
end

--- A copy of a table with other entries; a few loops, as this runs before each redraw.
---@generic T: table
---@param base T
---@param change T
---@return T
local function altered(base, change)
  local copy = {}
  for key, value in pairs(base) do
    copy[key] = value
  end
  for key, value in pairs(change) do
    copy[key] = value
  end
  return copy
end

--- A copy of a session with its changes: callbacks may have kept the session.
---@param session bellboard.Session
---@param change bellboard.Change
---@return bellboard.Session
local function with(session, change)
  local copy = altered(session, change)
  copy.words = altered(session.words, change.words)
  for _, key in ipairs(change.gone) do
    copy[key] = nil
  end
  copy.gone = nil
  return copy
end

--- Store a push.
---@param push bellboard.Push
---@return boolean changed whether there is anything new to show
M.take = function(push)
  local was_stale = stale
  stale = push.stale == true
  health = push.health or health
  health.version = push.version
  if push.groups then
    places = {}
    for nth, name in ipairs(push.groups) do
      places[name] = nth
    end
  end
  calling, mode = push.float or calling, push.mode or mode
  left_out, in_front = push.left_out or left_out, push.in_front or in_front
  local sessions, changes, removed = push.sessions or {}, push.changes or {}, push.removed or {}
  local beside = push.full or push.health or push.float or was_stale ~= stale
  if not beside and #sessions + #changes + #removed == 0 then
    return false
  end
  by_id, gone = push.full and {} or by_id, {}
  for _, session in ipairs(sessions) do
    by_id[session.session_id] = session
  end
  for _, change in ipairs(changes) do
    local session = by_id[change.session_id]
    -- Unknown only after a lost message: all sessions are on their way.
    by_id[change.session_id] = session and with(session, change)
  end
  for _, id in ipairs(removed) do
    gone[id], by_id[id] = by_id[id], nil
  end
  reorder()
  return true
end

--- The background process has ended, so the sessions may be outdated.
M.expire = function()
  stale = true
end

---@return bellboard.Session[]
M.list = function()
  return ordered
end

--- The sessions of machines that were unreachable for long, which are only counted.
---@return bellboard.Session[]
M.folded = function()
  return folded
end

--- All sessions, including hidden ones.
---@return bellboard.Session[]
M.all = function()
  local all = vim.tbl_values(by_id)
  table.sort(all, more_urgent)
  return all
end

---@param id string
---@return bellboard.Session|nil
M.get = function(id)
  return by_id[id]
end

--- The name of a session in a message: its project, and its title if it is one of several there.
---@param session bellboard.Session
---@return string
M.name = function(session)
  local words = session.words
  local is_one_of_several = words.title ~= ''
    and vim.iter(ordered):any(function(other)
      return other.session_id ~= session.session_id and other.words.project == words.project
    end)
  return words.project
    .. (is_one_of_several and (' "%s"'):format(cells.cut(words.title, NAME)) or '')
end

--- A session, even if the last push removed it.
---@param id string
---@return bellboard.Session|nil
M.last_known = function(id)
  return by_id[id] or gone[id]
end

---@param tty string
---@return bellboard.Session|nil
M.of_tty = function(tty)
  return by_tty[tty]
end

---@return bellboard.Session[]
M.calling = function()
  local sessions = {}
  for _, id in ipairs(calling) do
    sessions[#sessions + 1] = by_id[id]
  end
  return sessions
end

--- Why sessions that are blocked are not in the float, by id.
---@return table<string, string>
M.left_out = function()
  return left_out
end

--- The address of the Neovim that had the focus last, as far as it is known; empty: none has a
--- screen.
---@return string|nil
M.in_front = function()
  return in_front
end

---@return table<bellboard.Status, integer>
M.counts = function()
  return counts
end

---@param repository string
---@return integer|nil
M.place = function(repository)
  return places[repository]
end

---@return 'quiet'|'normal'|'all'
M.mode = function()
  return mode or config.get().notices.mode
end

---@return boolean
M.stale = function()
  return stale
end

---@return table<string, any>
M.health = function()
  return health
end

-- Whoever shows sessions listens for their changes.

---@type { name: string, act: fun(): boolean|nil }[]
local listeners = {}
---@type table<string, string> the last error of each listener and event: each is reported once
local failures = {}

---@param what string
---@param why string
local function report(what, why)
  if why ~= failures[what] then
    failures[what] = why
    local first = why:match('^[^\n]*:%s*\n%s*([^\n]+)') or why:match('^[^\n]+')
    message.error(('%s failed: %s'):format(what, first))
  end
end

--- Call a function at each change, until it returns true. It replaces the function of the same
--- name.
---@param name string
---@param act fun(): boolean|nil
M.on_change = function(name, act)
  for _, listener in ipairs(listeners) do
    if listener.name == name then
      listener.act = act
      return
    end
  end
  listeners[#listeners + 1] = { name = name, act = act }
end

--- Execute the autocommands of a `User` event. Neovim would show an error in one of them in several
--- lines, and wait for ENTER; the others run all the same.
---@param event string
---@param data? any
M.emit = function(event, data)
  local before = vim.v.errmsg
  vim.api.nvim_set_vvar('errmsg', '')
  require('bellboard.sessions')._run = function() -- of the module that is loaded by now
    vim.api.nvim_exec_autocmds('User', { pattern = event, modeline = false, data = data })
  end
  vim.cmd("silent! unsilent lua require('bellboard.sessions')._run()")
  local why = vim.v.errmsg
  vim.api.nvim_set_vvar('errmsg', why ~= '' and why or before)
  if why ~= '' then
    report('an autocommand of ' .. event, why)
  end
end

---@type fun()
M._run = nil

local function show()
  local over = {}
  for _, listener in ipairs({ unpack(listeners) }) do
    local act = listener.act
    local ok, result = pcall(act) -- another plugin shows sessions, too
    if not ok then
      report('the update of ' .. listener.name, tostring(result))
    end
    over[listener] = ok and result == true and listener.act == act or nil
  end
  listeners = vim.tbl_filter(function(listener)
    return not over[listener]
  end, listeners)
  M.emit('BellboardUpdate')
end

--- Announce a change of sessions: call what shows them first, then the autocommands of `User
--- BellboardUpdate`.
M.changed = function()
  moment.when('draw', show)
end

--- The time of day, as Python's time.time() has it.
---@return number seconds since the epoch
M.now = function()
  local seconds, micros = vim.uv.gettimeofday()
  return seconds + micros / 1e6
end

return M
