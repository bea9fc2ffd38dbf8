local config = require('bellboard.config')

local M = {}

---@class bellboard.HostStatus
---@field running boolean
---@field channel? integer
---@field command string[]
---@field why string where the interpreter was found
---@field restarts integer
---@field gave_up boolean
---@field stderr string[] its last lines
---@field exit? integer code of the last death

---@class bellboard.Reply what became of an errand
---@field ok boolean
---@field why? string why not
---@field text? string
---@field key? string
---@field rows? string[]

--- A host that lived this long died of something else than its start.
local QUICK = 10
--- The first pause before a restart; each quick death doubles it.
local PAUSE, LONGEST_PAUSE = 0.2, 30
local KEPT_LINES = 20

---@type bellboard.HostStatus
local state =
  { running = false, command = {}, why = '', restarts = 0, gave_up = false, stderr = {} }
local quick_deaths = 0
local born = 0
local pushed = false
---@type fun(up: boolean)
local listener = function() end
---@type table|nil what the host is told first
local greeting
---@type uv.uv_timer_t|nil
local pause
---@type table<integer, fun(reply: bellboard.Reply)> who waits for a reply, by its number
local waiting = {}
local asked = 0

---@return number seconds on a clock that nobody sets
local function clock()
  return vim.uv.hrtime() / 1e9
end

---@param text string
local function warn(text)
  vim.schedule(function()
    vim.notify('bellboard: ' .. text, vim.log.levels.WARN)
  end)
end

---@param lines string[] as jobstart gives them: the first one continues the last
local function keep(_, lines)
  local tail = state.stderr
  tail[math.max(1, #tail)] = (tail[#tail] or '') .. lines[1]
  vim.list_extend(tail, lines, 2)
  while #tail > KEPT_LINES do
    table.remove(tail, 1)
  end
end

---@return string|nil
local function missing_module()
  for _, line in ipairs(state.stderr) do
    local name = line:match("ModuleNotFoundError: No module named '([%w_]+)")
    if name then
      return name
    end
  end
end

local function launch()
  pause = nil
  local interpreter = config.interpreter()
  state.command, state.why, state.stderr = interpreter.command, interpreter.why, {}
  born, pushed = clock(), false
  local ok, channel = pcall(vim.fn.jobstart, config.program(), {
    rpc = true,
    cwd = '/', -- a host outlives the folder that Neovim happens to stand in
    on_stderr = keep,
    on_exit = function(id, code)
      M._on_exit(id, code)
    end,
  })
  if not ok or channel <= 0 then
    state.stderr = { tostring(channel) }
    state.gave_up = true
    local command = table.concat(state.command, ' ')
    warn(('cannot start "%s" (%s). :checkhealth bellboard'):format(command, state.why))
    return
  end
  state.channel, state.running = channel, true
  M.notify('start', greeting)
end

--- The reply to an errand. Only the host calls this.
---@param number integer
---@param reply bellboard.Reply
M._reply = function(number, reply)
  local done = waiting[number]
  waiting[number] = nil
  if done then
    done(reply)
  end
end

---@param channel integer
---@param code integer
M._on_exit = function(channel, code)
  if channel ~= state.channel or vim.v.exiting ~= vim.NIL then
    return -- an older one, or Neovim itself is leaving
  end
  state.channel, state.running, state.exit = nil, false, code
  for number in pairs(waiting) do
    M._reply(number, { ok = false, why = 'the host has died' })
  end
  listener(false)
  if not greeting then
    return -- it was asked to stop
  end
  local module = missing_module()
  if module then
    state.gave_up = true
    local text =
      '%s has no module "%s". Run once: cd %s && uv sync --no-dev   (:checkhealth bellboard)'
    warn(text:format(table.concat(state.command, ' '), module, config.root()))
    return
  end
  quick_deaths = (pushed and clock() - born >= QUICK) and 0 or quick_deaths + 1
  if quick_deaths >= config.get().restarts then
    state.gave_up = true
    warn(('the host died %d times in a row. :checkhealth bellboard'):format(quick_deaths))
    return
  end
  state.restarts = state.restarts + 1
  local seconds = math.min(PAUSE * 2 ^ math.max(0, quick_deaths - 1), LONGEST_PAUSE)
  pause = vim.defer_fn(launch, seconds * 1000)
end

--- Start the host, unless it runs or waits to be started again.
---@param hello table what it is told first
---@param on_change fun(up: boolean) called with false when it dies
M.start = function(hello, on_change)
  if state.running or pause then
    return
  end
  greeting, listener = hello, on_change
  state.gave_up, quick_deaths = false, 0
  launch()
end

--- A push arrived: the host is well.
M.heard = function()
  pushed = true
end

--- Tell the host something; a dead one is no error.
---@param method string
---@param ... any
---@return boolean told
M.notify = function(method, ...)
  if not state.channel then
    return false
  end
  return (pcall(vim.rpcnotify, state.channel, method, ...))
end

--- Have the host do something for a person, which it may refuse; nobody waits for the reply.
---@param what 'stop'|'answer'
---@param told table
---@param done fun(reply: bellboard.Reply)
M.ask = function(what, told, done)
  asked = asked + 1
  waiting[asked] = done
  if not M.notify('ask', asked, what, told) then
    M._reply(asked, { ok = false, why = 'the host is away' })
  end
end

--- The user is at this Neovim now; the next host is told as well.
M.focused = function()
  if greeting then
    local seconds, micros = vim.uv.gettimeofday()
    greeting.focused = seconds + micros / 1e6
    M.notify('focus', greeting.focused)
  end
end

M.stop = function()
  greeting = nil
  if pause and not pause:is_closing() then
    pause:close()
  end
  pause = nil
  local channel = state.channel
  if channel then
    M.notify('stop')
    vim.defer_fn(function()
      pcall(vim.fn.jobstop, channel) -- it had its chance; gone already is fine
    end, 500)
  end
end

--- Start it anew, also one that was given up.
M.restart = function()
  quick_deaths = -1 -- this death is wanted
  state.gave_up = false
  if state.channel then
    vim.fn.jobstop(state.channel)
  elseif not pause then
    launch()
  end
end

---@return bellboard.HostStatus
M.status = function()
  return state
end

return M
