-- Starts, restarts and ends the background process of this Neovim.
local config = require('bellboard.config')
local message = require('bellboard.message')
local program = require('bellboard.process.program')

local M = {}

---@class bellboard.HostStatus
---@field running boolean
---@field heard boolean a push of it has arrived
---@field channel? integer
---@field command string[]
---@field restarts integer
---@field gave_up? string why it was not started again, until one runs
---@field is_unbuilt boolean its Python packages, or its Python, are missing
---@field stderr string[] its last lines
---@field exit? integer last exit code

--- Seconds after which a crash no longer counts as a failed start.
local QUICK = 10
--- Seconds before the first restart; each crash in a row doubles them, up to a maximum.
local PAUSE, LONGEST_PAUSE = 0.2, 30
--- Milliseconds for the process to stop when asked, before it is killed.
local GRACE = 500
local KEPT_LINES = 20
--- Levels of nesting to send; deeper means a table that contains itself.
local DEEPEST = 16

---@type bellboard.HostStatus
local state = {
  running = false,
  heard = false,
  command = {},
  restarts = 0,
  is_unbuilt = false,
  stderr = {},
}
local crashes = 0
local started = 0
---@type fun(channel: integer)
local on_end = function() end

---@class bellboard.Owner what the rest of the plugin does for the process
---@field prepare fun() before it starts
---@field greet fun(): table makes the first message, also after a restart
---@field gone fun(for_good: boolean) it has ended
---@field unbuilt fun(why: string, by_itself: boolean) its Python packages, or its Python, are
---  missing; whether Neovim has started it, not the user

---@type bellboard.Owner
local owner
--- Whether the process should run; nil: it was neither started nor stopped yet.
---@type boolean|nil
local wanted
local by_itself = false
--- Whether the process was asked to stop.
local ending = false
---@type uv.uv_timer_t|nil
local pause

---@return number seconds, monotonic
local function ticks()
  return vim.uv.hrtime() / 1e9
end

---@param lines string[] as from |channel-lines|: the first one continues the last
local function keep(_, lines)
  local tail = state.stderr
  tail[math.max(1, #tail)] = (tail[#tail] or '') .. lines[1]
  vim.list_extend(tail, lines, 2)
  while #tail > KEPT_LINES do
    table.remove(tail, 1)
  end
end

--- The reason of its end: its last message, or the last line of a traceback.
---@return string
local function last_words()
  local said = vim.tbl_filter(function(line)
    return line ~= ''
  end, state.stderr)
  if #said == 0 then
    return ('exit code %s'):format(state.exit)
  end
  return said[1]:find('^Traceback') and said[#said] or table.concat(said, '; ')
end

--- The missing packages or Python, in words.
---@return string|nil
local function lack()
  for _, line in ipairs(state.stderr) do
    local name = line:match("ModuleNotFoundError: No module named '([%w_]+)")
    if name then
      return ('%s has no module "%s"'):format(table.concat(state.command, ' '), name)
    elseif line:find('^bellboard needs Python') then
      return line
    end
  end
end

--- Wait for a build instead of starting the process again and again.
---@param why string
local function await_build(why)
  state.gave_up, state.is_unbuilt = why, true
  owner.unbuilt(why, by_itself)
end

--- Cancel a launch that waits for the end of a pause.
local function end_pause()
  if pause and not pause:is_closing() then
    pause:close()
  end
  pause = nil
end

--- Defined below: the launch also handles the end, which may launch again.
---@type fun(channel: integer, code: integer)
local ended

--- The part of a value that can be sent: a function among the options would make all fail.
---@param value any
---@param depth? integer
---@return any
local function sendable(value, depth)
  local kind = type(value)
  depth = depth or 0
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
  end_pause()
  local interpreter = program.interpreter()
  state.command, state.stderr = interpreter.command, {}
  started, state.heard, ending = ticks(), false, false
  local ok, channel = pcall(vim.fn.jobstart, program.command(), {
    rpc = true,
    cwd = '/', -- the current directory may be removed
    on_stderr = keep,
    on_exit = function(id, code)
      ended(id, code)
    end,
  })
  if not ok or channel <= 0 then
    state.stderr = { tostring(channel) }
    local command = table.concat(state.command, ' ')
    return await_build(('cannot start "%s" (%s)'):format(command, interpreter.why))
  end
  state.channel, state.running = channel, true
  M.notify('start', sendable(owner.greet()))
end

--- The current process has ended: start the next, if it should run.
local function go_on()
  owner.gone(not wanted)
  if not wanted then
    return -- it was asked to stop
  end
  if ending then
    return launch() -- asked to stop, then to start
  end
  local why = lack()
  if why then
    return await_build(why)
  end
  crashes = (state.heard and ticks() - started >= QUICK) and 0 or crashes + 1
  if crashes >= config.get().max_restarts then
    state.gave_up = 'the background process stopped after repeated crashes'
    message.warn(('cannot run: %s. See :checkhealth bellboard'):format(last_words()))
    return
  end
  state.restarts = state.restarts + 1
  local seconds = math.min(PAUSE * 2 ^ math.max(0, crashes - 1), LONGEST_PAUSE)
  pause = vim.defer_fn(launch, seconds * 1000)
end

ended = function(channel, code)
  if channel == state.channel then -- not a previous one
    state.channel, state.running, state.exit = nil, false, code
    if vim.v.exiting == vim.NIL then
      go_on()
    end
  end
  on_end(channel) -- last: a callback may start or restart the process at once
end

--- Ask the process to stop, and kill it if it does not.
local function finish()
  local channel = state.channel
  if not channel or ending then
    return
  end
  M.notify('stop')
  ending = true
  vim.defer_fn(function()
    pcall(vim.fn.jobstop, channel) -- it may have ended already
  end, GRACE)
end

--- Set the functions that are called for the process, once.
---@param new bellboard.Owner
M.own = function(new)
  owner = new
end

--- Start the background process, unless it is running or about to be restarted.
---@param is_by_itself? boolean Neovim does it, not the user
M.start = function(is_by_itself)
  wanted, by_itself = true, is_by_itself == true
  owner.prepare()
  if state.running or pause then
    return -- if it was asked to stop, it starts again
  end
  crashes = 0
  launch()
end

--- A push has arrived, so the start has succeeded.
M.heard = function()
  state.heard = true
  state.gave_up, state.is_unbuilt = nil, false
end

--- Keep a problem with a push among the last words of the process.
---@param problem string
M.note = function(problem)
  keep(nil, { problem, '' })
end

--- Send a message to the background process, if it is running.
---@param method string
---@param ... any
---@return boolean sent
M.notify = function(method, ...)
  if not state.channel or ending then
    return false
  end
  return (pcall(vim.rpcnotify, state.channel, method, ...))
end

M.stop = function()
  wanted = false
  end_pause()
  finish()
end

--- Restart the process with the current configuration, even after too many crashes.
M.restart = function()
  config.read()
  wanted, by_itself = true, false
  owner.prepare()
  crashes = 0
  if state.channel then
    finish()
  else
    launch()
  end
end

--- Call back when a background process ends, also a previous one.
---@param callback fun(channel: integer)
M.on_end = function(callback)
  on_end = callback
end

--- Whether the process was started, and not stopped since, even if it cannot run; nil: neither yet.
---@return boolean|nil
M.is_wanted = function()
  return wanted
end

---@return bellboard.HostStatus
M.status = function()
  return state
end

-- When the plugin is loaded again, as by `:Lazy reload`, the previous process ends.
local group = vim.api.nvim_create_augroup('bellboard.run', { clear = false })
local opts = { group = group, pattern = 'bellboard.run' }
vim.api.nvim_exec_autocmds('User', { group = group, pattern = 'bellboard.run', modeline = false })
vim.api.nvim_clear_autocmds(opts)
vim.api.nvim_create_autocmd('User', vim.tbl_extend('error', opts, { callback = M.stop }))

return M
