-- How long ago something was, in one short word, as `core/words.py` says it.
local sessions = require('bellboard.sessions')

local M = {}

---@type uv.uv_timer_t|nil
local timer
local due = math.huge
local arming = false

local function rearm()
  arming = false
  timer = timer or assert(vim.uv.new_timer())
  local wait = math.max(0, due - sessions.now()) * 1000
  timer:start(
    math.ceil(wait),
    0,
    vim.schedule_wrap(function()
      due = math.huge
      sessions.changed()
    end)
  )
end

--- Redraw when an age that is shown changes.
---@param when number
local function revisit(when)
  if when < due then
    due = when
    if not arming then
      arming = true
      vim.schedule(rearm)
    end
  end
end

local units = { { 86400, 'd' }, { 3600, 'h' }, { 60, 'm' } }

--- The time since something, in one short word. The steps are coarse, so that the
--- screen changes rarely, and a timer waits for the next one.
---@param since number
---@return string
M.of = function(since)
  local seconds = math.max(0, sessions.now() - since)
  local step, text = 10, 'now'
  if seconds >= 60 then
    for _, unit in ipairs(units) do
      if seconds >= unit[1] then
        step = unit[1]
        text = ('%d%s'):format(math.floor(seconds / step), unit[2])
        break
      end
    end
  elseif seconds >= step then
    text = ('%ds'):format(math.floor(seconds / step) * step)
  end
  revisit(since + (math.floor(seconds / step) + 1) * step)
  return text
end

--- The time until something; empty if that has passed.
---@param till number|nil
---@return string
M.left = function(till)
  local seconds = till and till - sessions.now() or 0
  if seconds <= 0 then
    return ''
  end
  local step, text = 60, '1m'
  for _, unit in ipairs(units) do
    if seconds > (unit[1] > 60 and 2 or 1) * unit[1] then -- 90m rather than 2h
      step = unit[1]
      text = ('%d%s'):format(math.ceil(seconds / step), unit[2])
      break
    end
  end
  revisit(till - (math.ceil(seconds / step) - 1) * step)
  return text
end

--- How long the machine of a session could not be followed: `stale 5m`; empty if it can be.
---@param session bellboard.Session
---@return string
M.outdated = function(session)
  return session.link_since and 'stale ' .. M.of(session.link_since) or ''
end

--- How long a session has reported nothing, as `quiet 32m`; if a tool runs, how long it runs, as
--- `running 40m`. Empty for a session that reports.
---@param session bellboard.Session
---@return string
M.quiet = function(session)
  if not session.quiet_since then
    return ''
  end
  local tool = session.tool_since
  return tool and 'running ' .. M.of(tool) or 'quiet ' .. M.of(session.quiet_since)
end

return M
