local bellboard = require('bellboard')
local config = require('bellboard.config')
local host = require('bellboard.process.talk')
local program = require('bellboard.process.program')
local sessions = require('bellboard.sessions')

local M = {}

local health = vim.health

--- Milliseconds. `bellboard doctor` takes 250 ms, and stops after six seconds at most.
local PATIENCE = 10000
local SIGTERM = 15
--- Facts that only the running background process has; `bellboard doctor` reports the rest.
local OWN = { 'pid', 'watch', 'watch_note', 'notices', 'answers', 'counts' }

---@param value any
---@return string|nil
local function worded(value)
  if type(value) ~= 'table' then
    return value ~= nil and value ~= '' and tostring(value) or nil
  end
  local parts = {}
  for key, member in vim.spairs(value) do
    local text = worded(member)
    if text and member ~= 0 then
      parts[#parts + 1] = type(key) == 'string' and key .. ' ' .. text or text
    end
  end
  return #parts > 0 and table.concat(parts, ', ') or nil
end

local function editor()
  health.start('bellboard: editor')
  local problems = config.problems()
  for _, problem in ipairs(problems) do
    health.error(problem)
  end
  if #problems == 0 then
    health.ok('configuration')
  end
  local command = vim.api.nvim_get_commands({}).ClaudeSessions
  if command and command.definition ~= 'Agent sessions' then
    health.warn(':ClaudeSessions belongs to another plugin', 'use :Bellboard')
  end
  if not sessions.stale() then -- the next section says why they are
    health.info('float: ' .. require('bellboard.float').status())
  end
end

local function coprocess()
  health.start('bellboard: background process')
  local status = host.status()
  local interpreter = program.interpreter()
  health.info(('%s (%s)'):format(table.concat(interpreter.command, ' '), interpreter.why))
  local said = sessions.health()
  if status.running then
    health.ok(('running, channel %d'):format(status.channel))
    if said.version == bellboard.version then
      health.ok('version ' .. bellboard.version)
    elseif said.version then
      health.error(
        ('it is version %s, the plugin is %s'):format(said.version, bellboard.version),
        'another bellboard may come first on the Python path; restart Neovim after an update'
      )
    else
      health.warn('nothing received from it yet')
    end
  elseif status.gave_up then
    health.error(host.trouble())
  else
    health.warn('not running', ':ClaudeSessions process start')
  end
  if status.restarts > 0 then
    local times = status.restarts == 1 and 'once' or status.restarts .. ' times'
    health.info(('restarted %s, last exit code %s'):format(times, status.exit))
  end
  for _, line in ipairs(status.stderr) do
    if line ~= '' and not status.is_unbuilt then
      health.info('stderr: ' .. line)
    end
  end
  for _, key in ipairs(OWN) do
    local text = worded(said[key])
    if text then
      health.info(('%s: %s'):format(key:gsub('_', ' '), text))
    end
  end
  for about, note in vim.spairs(said.notes or {}) do
    health.warn(('%s: %s'):format(about, note))
  end
end

--- Everything else, as `bellboard doctor` reports it. It needs the same Python packages.
local function doctor()
  if host.status().is_unbuilt then
    return
  end
  local command = vim.list_extend(program.command(), { 'doctor', '--json' })
  local started, process = pcall(vim.system, command, { text = true, timeout = PATIENCE })
  local done = started and process:wait() or { stderr = tostring(process) }
  local decoded, report = pcall(vim.json.decode, done.stdout or '')
  if not decoded or type(report) ~= 'table' or report.v ~= 1 then
    health.start('bellboard: doctor')
    local why = done.signal == SIGTERM and 'timed out' or vim.trim(done.stderr or '')
    health.error('bellboard doctor failed', why ~= '' and why or nil)
    return
  end
  local section
  for _, fact in ipairs(report.facts) do
    if fact.section ~= section then
      section = fact.section
      health.start('bellboard: ' .. section)
    end
    local advice = fact.advice ~= '' and fact.advice or nil
    if fact.level == 'warn' or fact.level == 'error' then
      health[fact.level](fact.text, advice)
    else -- these take no advice
      local level = health[fact.level] or health.info
      level(advice and ('%s: %s'):format(fact.text, advice) or fact.text)
    end
  end
end

M.check = function()
  editor()
  coprocess()
  doctor()
end

return M
