local config = require('bellboard.config')
local message = require('bellboard.message')
local program = require('bellboard.system.program')

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
--- It is asked to stop, and ended if it has not after so many milliseconds.
local CHANCE = 500
local KEPT_LINES = 20
--- Levels of what it is told; deeper is a table that holds itself.
local DEEPEST = 16

---@type bellboard.HostStatus
local state =
  { running = false, command = {}, why = '', restarts = 0, gave_up = false, stderr = {} }
local quick_deaths = 0
local born = 0
local pushed = false
---@type fun(up: boolean)
local listener = function() end
---@type (fun(): table)|nil what the host is told first; nil: none is wanted
local greeting
---@type number|nil when somebody was at this Neovim last
local focused
--- The one that runs was asked to end.
local ending = false
--- Something here throws at what the host says.
local broken = false
---@type uv.uv_timer_t|nil
local pause
---@type table<integer, { channel: integer, done: fun(reply: bellboard.Reply) }> by number
local waiting = {}
local asked = 0

---@return number seconds on a clock that nobody sets
local function clock()
  return vim.uv.hrtime() / 1e9
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

--- What of a value can be sent: a function in the options would keep all of them from the host.
---@param value any
---@param depth integer
---@return any
local function sendable(value, depth)
  local kind = type(value)
  if kind == 'string' or kind == 'number' or kind == 'boolean' or value == vim.NIL then
    return value
  elseif kind ~= 'table' or depth > DEEPEST then
    return nil
  end
  local copy = vim.islist(value) and #value > 0 and {} or vim.empty_dict()
  for key, member in pairs(value) do
    if type(key) == 'string' or vim.islist(value) then
      copy[key] = sendable(member, depth + 1)
    end
  end
  return copy
end

local function launch()
  if pause and not pause:is_closing() then
    pause:close()
  end
  pause = nil
  local interpreter = program.interpreter()
  state.command, state.why, state.stderr = interpreter.command, interpreter.why, {}
  born, pushed, ending = clock(), false, false
  local ok, channel = pcall(vim.fn.jobstart, program.command(), {
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
    message.warn(('cannot start "%s" (%s). :checkhealth bellboard'):format(command, state.why))
    return
  end
  state.channel, state.running = channel, true
  local hello = greeting and greeting() or {}
  hello.focused = focused or hello.focused
  M.notify('start', sendable(hello, 0))
end

--- The reply to an errand. Only the host calls this.
---@param number integer
---@param reply bellboard.Reply
M._reply = function(number, reply)
  local asker = waiting[number]
  waiting[number] = nil
  if asker then
    asker.done(reply)
  end
end

--- What somebody did cannot be written. Only the host calls this.
---@param text string
M._complain = function(text)
  message.warn(text)
end

--- What the host publishes; a mistake in here must not wait for a key at every change.
---@param push string
M._pushed = function(push)
  local ok, problem = pcall(require('bellboard')._push, push)
  if not ok then
    keep(nil, { tostring(problem), '' })
    if not broken then
      broken = true
      message.warn('what the host says cannot be shown. :checkhealth bellboard')
    end
  end
end

---@param channel integer
---@param code integer
M._on_exit = function(channel, code)
  for number, asker in pairs(waiting) do
    if asker.channel == channel then
      M._reply(number, { ok = false, why = 'the host has died' })
    end
  end
  if channel ~= state.channel or vim.v.exiting ~= vim.NIL then
    return -- an older one, or Neovim itself is leaving
  end
  state.channel, state.running, state.exit = nil, false, code
  listener(false)
  if not greeting then
    return -- it was asked to stop
  end
  if ending then
    return launch() -- asked to stop, and then wanted again
  end
  local module = missing_module()
  if module then
    state.gave_up = true
    local text =
      '%s has no module "%s". Run once: cd %s && uv sync --no-dev   (:checkhealth bellboard)'
    message.warn(text:format(table.concat(state.command, ' '), module, program.root()))
    return
  end
  quick_deaths = (pushed and clock() - born >= QUICK) and 0 or quick_deaths + 1
  if quick_deaths >= config.get().restarts then
    state.gave_up = true
    message.warn(('the host died %d times in a row. :checkhealth bellboard'):format(quick_deaths))
    return
  end
  state.restarts = state.restarts + 1
  local seconds = math.min(PAUSE * 2 ^ math.max(0, quick_deaths - 1), LONGEST_PAUSE)
  pause = vim.defer_fn(launch, seconds * 1000)
end

--- End the one that runs: it is asked, and has a moment to do so.
local function finish()
  local channel = state.channel
  if not channel or ending then
    return
  end
  M.notify('stop')
  ending = true
  vim.defer_fn(function()
    pcall(vim.fn.jobstop, channel) -- it had its chance; gone already is fine
  end, CHANCE)
end

--- Start the host, unless it runs or waits to be started again.
---@param hello fun(): table what it is told first, also after a restart
---@param on_change fun(up: boolean) called with false when it dies
M.start = function(hello, on_change)
  greeting, listener = hello, on_change
  if state.running or pause then
    return -- one that is asked to end is followed by another
  end
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
  if not state.channel or ending then
    return false
  end
  return (pcall(vim.rpcnotify, state.channel, method, ...))
end

--- Tell the host about something that happened here.
---@param evidence table
---@return boolean told
M.tell = function(evidence)
  local told = M.notify('evidence', evidence)
  if not told and not (evidence.view ~= nil or evidence['goto']) then
    message.warn(('%s was not done: the host is away'):format(next(evidence)))
  end
  return told
end

--- Have the host do something for a person, which it may refuse; nobody waits for the reply.
---@param what 'stop'|'answer'
---@param told table
---@param done fun(reply: bellboard.Reply)
M.ask = function(what, told, done)
  asked = asked + 1
  waiting[asked] = { channel = state.channel, done = done }
  if not M.notify('ask', asked, what, told) then
    M._reply(asked, { ok = false, why = 'the host is away' })
  end
end

--- The user is at this Neovim now; the next host is told as well.
M.focused = function()
  local seconds, micros = vim.uv.gettimeofday()
  focused = seconds + micros / 1e6
  M.notify('focus', focused)
end

M.stop = function()
  greeting = nil
  if pause and not pause:is_closing() then
    pause:close()
  end
  pause = nil
  finish()
end

--- Start it anew, also one that was given up, with what is configured now.
---@param hello fun(): table
---@param on_change fun(up: boolean)
M.restart = function(hello, on_change)
  greeting, listener = hello, on_change
  state.gave_up, quick_deaths = false, 0
  if state.channel then
    finish()
  else
    launch()
  end
end

---@return bellboard.HostStatus
M.status = function()
  return state
end

return M
