-- Stores, shows and announces the pushes of the background process.
local config = require('bellboard.config')
local coprocess = require('bellboard.process.run')
local message = require('bellboard.message')
local program = require('bellboard.process.program')
local sessions = require('bellboard.sessions')

local M = {}

---@type integer|nil number of the last push
local last
local asked = false
local warned = {}
--- The newest transition that was announced, or was older than the first push; and when the
--- background process ended. The next process goes on from there.
---@type integer|nil
local seen
---@type number|nil
local left

---@alias bellboard.Arrival
---| 'front' whether this Neovim had the focus last
---| 'snapshot' all sessions, as a process that has just started sends them
---| 'notice' a notice to show
---| 'past' past notices, as asked for

---@type table<bellboard.Arrival, (fun(data: any))[]>
local listeners = { front = {}, snapshot = {}, notice = {}, past = {} }

--- Call a function when something besides sessions arrives.
---@param what bellboard.Arrival
---@param act fun(data: any)
M.on = function(what, act)
  table.insert(listeners[what], act)
end

---@param what bellboard.Arrival
---@param data? any
local function call_all(what, data)
  for _, act in ipairs(listeners[what]) do
    act(data)
  end
end

---@param key string
---@param text string
local function warn_once(key, text)
  if not warned[key] then
    warned[key] = true
    message.warn(text)
  end
end

---@param callback bellboard.Callback|nil
---@param data bellboard.TransitionData
local function call(callback, data)
  if type(callback) == 'function' then -- commands are run by the background process
    local ok, problem = pcall(callback, data)
    if not ok then
      message.error('error in a transition callback: ' .. tostring(problem))
    end
  end
end

---@param transition bellboard.Transition
local function announce(transition)
  local session = sessions.last_known(transition.session_id)
  local about = { session = session, agent = session and session.agent }
  ---@type bellboard.TransitionData
  local data = vim.tbl_extend('force', transition, about)
  local options = config.get()
  call(options.on_transition, data)
  call(options.on[data.to], data)
  sessions.emit('BellboardTransition', data)
end

--- Announce new transitions.
---@param push bellboard.Push
local function announce_all(push)
  if push.at and push.at < (seen or 0) then
    seen = nil -- another database, which counts from 1
  end
  for _, transition in ipairs(push.transitions or {}) do
    local is_new = not (seen and transition.id and transition.id <= seen)
    seen = is_new and transition.id or seen -- first, as a callback may restart the process
    if is_new and transition.live ~= false then
      announce(transition)
    end
  end
  seen = push.at or seen
end

---@param push bellboard.Push
---@return boolean understood
local function check(push)
  if push.v ~= 2 then
    local text = 'the background process speaks protocol %s, not 2: restart Neovim'
    warn_once('v', text:format(push.v))
    return false
  elseif push.version ~= program.version then
    local text = 'the background process is version %s, the plugin %s. See :checkhealth bellboard'
    warn_once('version', text:format(push.version, program.version))
  end
  return true
end

--- Report that hooks have vanished from a settings file, with the command that repairs it.
---@param where string
---@param repair string arguments of the command
local function report_vanished(where, repair)
  local command = ':ClaudeSessions install' .. repair
  local texts = { where .. '; ' .. command, 'hooks gone; ' .. command }
  message.warn(vim.iter(texts):find(message.fits) or where .. '; see :checkhealth bellboard')
end

--- vim.NIL would be truthy.
local nil_is_nil = { luanil = { object = true, array = true } }

---@param encoded string JSON: pynvim converts it faster than a table
M.receive = function(encoded)
  ---@type bellboard.Push
  local push = vim.json.decode(encoded, nil_is_nil)
  if not check(push) then
    return
  end
  coprocess.heard()
  if push.full then
    asked = false
  elseif push.seq ~= (last or -1) + 1 and not asked then
    asked = true
    coprocess.notify('snapshot')
  end
  local vanished = sessions.health().vanished
  local changed = sessions.take(push)
  last = push.seq -- only now: a push that fails counts as missed
  local health = sessions.health()
  if health.vanished and health.vanished ~= vanished then
    report_vanished(health.vanished, health.repair or '')
  end
  if sessions.stale() then
    warn_once('stale', (health.notes or {}).database or 'showing the last known sessions')
  end
  if push.front ~= nil then
    call_all('front', push.front)
  end
  if changed then
    sessions.changed()
  end
  if push.full then
    call_all('snapshot')
  end
  for _, notice in ipairs(push.notices or {}) do
    call_all('notice', notice)
  end
  if push.notice_log then
    call_all('past', push.notice_log)
  end
  announce_all(push)
end

--- Where the next background process goes on.
---@return { seen: integer|nil, left: number|nil }
M.place = function()
  return { seen = seen, left = seen and left or nil }
end

--- The background process has ended.
---@param for_good boolean
M.stopped = function(for_good)
  sessions.expire()
  last, left = nil, sessions.now()
  if for_good then
    seen = nil -- changes until the next start are no news then
  end
  vim.defer_fn(function()
    if sessions.stale() then
      sessions.changed()
    end
  end, for_good and 0 or 1000) -- a restart takes less
end

return M
