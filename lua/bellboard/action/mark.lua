-- Snooze, park and label sessions, and choose which notices are on.
local config = require('bellboard.config')
local host = require('bellboard.host')
local message = require('bellboard.message')
local sessions = require('bellboard.state.sessions')
local terminals = require('bellboard.state.terminals')

local M = {}

--- The session with this id, id prefix or project, if there is exactly one.
---@param word string
---@return bellboard.Session|nil
M.find = function(word)
  local exact = sessions.get(word)
  local found = exact and { exact } or {}
  for _, session in ipairs(exact and {} or sessions.list()) do
    local is_meant = vim.startswith(session.session_id, word) or session.words.project == word
    found[#found + 1] = is_meant and session or nil
  end
  if #found ~= 1 then
    local many = #found > 1 and ('%d sessions match'):format(#found) or 'no session matches'
    message.info(('%s "%s"'):format(many, word))
  end
  return #found == 1 and found[1] or nil
end

--- The sessions to act on: the one named, the one in this window, or all in the float.
---@param word? string
---@return bellboard.Session[]
M.meant = function(word)
  if word then
    return { M.find(word) }
  end
  local here = terminals.current()
  local meant = here and { here } or sessions.calling()
  if #meant == 0 then
    message.info('no session needs you: name one')
  end
  return meant
end

--- Mute a session for some minutes; 0 unmutes it.
---@param id string
---@param minutes? number
M.snooze = function(id, minutes)
  local seconds, micros = vim.uv.gettimeofday()
  minutes = minutes or config.get().notices.snooze
  local till = minutes > 0 and seconds + micros / 1e6 + 60 * minutes or 0
  host.tell({ snooze = { session_id = id, ['until'] = till } })
end

--- Park a session: no float and no notices until it is unparked.
---@param id string
---@param on? boolean default: toggle
M.park = function(id, on)
  local session = sessions.get(id)
  if on == nil then
    on = not (session and vim.tbl_contains(session.markers or {}, 'parked'))
  end
  host.tell({ park = { session_id = id, parked = on } })
end

--- Set or remove a session's label.
---@param id string
---@param text? string
M.label = function(id, text)
  host.tell({ label = { session_id = id, label = text or '' } })
end

--- Choose which notices are on, in every Neovim.
---@param name 'quiet'|'normal'|'all'
M.mode = function(name)
  if host.notify('mode', name) then
    message.info(('notices in every Neovim: %s'):format(name))
  else
    message.warn('the notices stay as they are: the background process is not running')
  end
end

--- The arguments of `:ClaudeSessions snooze`, `park` and `label`.
---@type table<string, fun(rest: string[])>
M.verbs = {
  snooze = function(rest)
    local minutes = tonumber(rest[1]) and tonumber(table.remove(rest, 1))
    for _, session in ipairs(M.meant(rest[1])) do
      M.snooze(session.session_id, minutes)
    end
  end,
  park = function(rest)
    for _, session in ipairs(M.meant(rest[1])) do
      M.park(session.session_id)
    end
  end,
  label = function(rest)
    for _, session in ipairs(M.meant(rest[2])) do
      M.label(session.session_id, rest[1])
    end
  end,
}

return M
