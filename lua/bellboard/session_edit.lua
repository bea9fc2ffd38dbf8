-- Snoozes, parks and labels sessions, and sets the notification mode.
local config = require('bellboard.config')
local host = require('bellboard.process.talk')
local message = require('bellboard.message')
local sessions = require('bellboard.sessions')

local M = {}

--- Minutes of the longest snooze, a year; as in a shell.
local LONGEST = 525600

---@type table<string, string[]> message → names of the sessions that it is about
local done = {}

--- Report a change of a session; one message for all sessions of one command.
---@param text string with a place for the name
---@param id string
local function say(text, id)
  if not done[text] then
    done[text] = {}
    vim.schedule(function()
      local names = done[text]
      done[text] = nil
      message.info(text:format(#names == 1 and names[1] or ('%d sessions'):format(#names)))
    end)
  end
  local session = sessions.get(id)
  table.insert(done[text], session and sessions.name(session) or id)
end

---@param session bellboard.Session|nil
---@return boolean
M.is_snoozed = function(session)
  return session ~= nil and (session.snoozed_until or 0) > sessions.now()
end

---@param session bellboard.Session|nil
---@return boolean
M.is_parked = function(session)
  return session ~= nil and vim.list_contains(session.markers or {}, 'parked')
end

--- Whether the user does not want to be asked about a session now.
---@param session bellboard.Session
---@return boolean
M.is_muted = function(session)
  return M.is_snoozed(session) or M.is_parked(session)
end

--- Mute a session for some minutes; 0 unmutes it.
---@param id string
---@param minutes? number default: end its snooze, else the usual time
M.snooze = function(id, minutes)
  local is_snoozed = M.is_snoozed(sessions.get(id))
  minutes = minutes or is_snoozed and 0 or config.get().notices.snooze
  if type(minutes) ~= 'number' or not (minutes >= 0 and minutes <= LONGEST) then
    return say(('%%s: not snoozed; give 0 to %d minutes'):format(LONGEST), id)
  elseif minutes == 0 and not is_snoozed then
    return say('%s: not snoozed', id)
  end
  local till = minutes > 0 and sessions.now() + 60 * minutes or 0
  if host.tell({ snooze = { session_id = id, ['until'] = till } }) then
    local at = os.date(minutes < 720 and '%H:%M' or '%a %H:%M', math.floor(till))
    say(
      till == 0 and '%s: snooze ended'
        or ('%%s: snoozed until %s; snooze again to end it'):format(at),
      id
    )
  end
end

--- Park a session: no float and no notices until it is unparked.
---@param id string
---@param on? boolean default: toggle
M.park = function(id, on)
  if on == nil then
    on = not M.is_parked(sessions.get(id))
  end
  if host.tell({ park = { session_id = id, parked = on } }) then
    say(on and '%s: parked; park again unparks it' or '%s: unparked', id)
  end
end

---@param id string
---@return string
local function label_of(id)
  local session = sessions.get(id)
  return session and session.label or ''
end

---@param id string
local function say_label(id)
  local label = label_of(id):gsub('%%', '%%%%')
  say(label == '' and '%s: label removed' or '%s: labeled ' .. label, id)
end

---@type table<string, string> session → its label until another one is written
local unwritten = {}

--- Report labels that are written by now.
---@return boolean all of them
local function confirm()
  for id, before in pairs(unwritten) do
    local is_there = sessions.get(id) ~= nil
    if not is_there or label_of(id) ~= before then
      unwritten[id] = nil
    end
    if is_there and not unwritten[id] then
      say_label(id)
    end
  end
  return next(unwritten) == nil
end

--- Set or remove a session's label. It is reported once it is written.
---@param id string
---@param text? string
M.label = function(id, text)
  local before = label_of(id)
  text = text and tostring(text) or ''
  if text == '' and before == '' then
    return say('%s: no label to remove', id)
  elseif text == before then
    return say_label(id)
  elseif not host.tell({ label = { session_id = id, label = text } }) then
    return
  end
  unwritten[id] = before
  sessions.on_change('label', confirm)
end

--- Set the notification mode of every Neovim.
---@param name 'quiet'|'normal'|'all'
---@return boolean set
M.mode = function(name)
  if not vim.list_contains({ 'quiet', 'normal', 'all' }, name) then
    message.warn(('no mode "%s"; there are quiet, normal and all'):format(tostring(name)))
  elseif host.notify('mode', name) then
    message.info(('notification mode of every Neovim: %s'):format(name))
    return true
  else
    message.warn('mode not changed: the background process is not running')
  end
  return false
end

return M
