-- What a user tells of a session: snooze it, park it, label it; and which notices are on.
local config = require('bellboard.config')
local host = require('bellboard.host')
local message = require('bellboard.message')
local sessions = require('bellboard.state.sessions')
local terminals = require('bellboard.state.terminals')

local M = {}

--- The session that a word names: its id, the beginning of it, or its project if only one has it.
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
    local many = #found > 1 and ('%d sessions are called'):format(#found) or 'no session is called'
    message.info(('%s "%s"'):format(many, word))
  end
  return #found == 1 and found[1] or nil
end

--- Those that are meant: the one named, else the one in this window, else all in the float.
---@param word? string
---@return bellboard.Session[]
M.meant = function(word)
  if word then
    return { M.find(word) }
  end
  local here = terminals.current()
  local meant = here and { here } or sessions.calling()
  if #meant == 0 then
    message.info('nothing calls you; name a session')
  end
  return meant
end

--- No word of a session for so many minutes; 0: from now on again.
---@param id string
---@param minutes? number
M.snooze = function(id, minutes)
  local seconds, micros = vim.uv.gettimeofday()
  minutes = minutes or config.get().notices.snooze
  local till = minutes > 0 and seconds + micros / 1e6 + 60 * minutes or 0
  host.tell({ snooze = { session_id = id, ['until'] = till } })
end

--- No word of a session until it is taken out of the park.
---@param id string
---@param on? boolean without it: the other way round
M.park = function(id, on)
  local session = sessions.get(id)
  if on == nil then
    on = not (session and vim.tbl_contains(session.markers or {}, 'parked'))
  end
  host.tell({ park = { session_id = id, parked = on } })
end

--- Give a session a label, or take it off.
---@param id string
---@param text? string
M.label = function(id, text)
  host.tell({ label = { session_id = id, label = text or '' } })
end

--- What rings at all from now on, in every Neovim.
---@param name 'quiet'|'normal'|'all'
M.mode = function(name)
  if host.notify('mode', name) then
    message.info(name == 'quiet' and 'nothing rings, in any Neovim' or 'notices: ' .. name)
  else
    message.info('the host is away')
  end
end

--- What comes after `:ClaudeSessions snooze`, `park` and `label`.
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
