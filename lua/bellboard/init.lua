local config = require('bellboard.config')
local host = require('bellboard.host')

local M = {}

M.version = '0.1.0'

--- Most urgent first; this order is the order of everything on the screen.
---@type bellboard.Status[]
M.statuses = { 'blocked', 'error', 'completed', 'unknown', 'working', 'background', 'idle' }

local rank = {}
for place, status in ipairs(M.statuses) do
  rank[status] = place
end

---@type table<string, bellboard.Session>
local by_id = {}
---@type bellboard.Session[] without the hidden ones, most urgent first
local ordered = {}
---@type table<string, bellboard.Session>
local by_tty = {}
---@type table<bellboard.Status, integer>
local counts = {}
---@type table<string, integer> place of a repository among all, the busiest first
local places = {}
---@type string[] ids of those that call you
local calling = {}
---@type string|nil what rings at all, as the host said last
local mode
---@type integer|nil
local last_seq
---@type table<string, bellboard.Session> what the last push took away: transitions may follow it
local gone = {}
local asked = false
local stale = false
local attached = false
local warned = {}
---@type table<string, any>
local health = {}

---@param text string
---@param level? integer
local function notify(text, level)
  vim.schedule(function()
    vim.notify('bellboard: ' .. text, level or vim.log.levels.WARN)
  end)
end

---@param key string
---@param text string
local function warn_once(key, text)
  if not warned[key] then
    warned[key] = true
    notify(text)
  end
end

--- Python's None arrives as vim.NIL, which is true: take it out, at every depth.
local function without_nil(value)
  if type(value) ~= 'table' then
    return value
  end
  for key, member in pairs(value) do
    if member == vim.NIL then
      value[key] = nil
    elseif type(member) == 'table' then
      without_nil(member)
    end
  end
  return value
end

--- Whether a session's label puts it before the others of its status.
---@param session bellboard.Session
---@return boolean
local function pinned(session)
  local label = session.label and config.get().notices.labels[session.label]
  return label ~= nil and label.pin == true
end

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
  ordered, by_tty, counts = {}, {}, {}
  for _, status in ipairs(M.statuses) do
    counts[status] = 0
  end
  for _, session in pairs(by_id) do
    if not session.hidden then
      ordered[#ordered + 1] = session
      counts[session.status] = (counts[session.status] or 0) + 1
    end
    if session.tty then
      by_tty[session.tty] = session
    end
  end
  table.sort(ordered, more_urgent)
end

---@param callback bellboard.Callback|nil
---@param data bellboard.TransitionData
local function call(callback, data)
  if type(callback) == 'function' then -- a command is the host's affair
    local ok, problem = pcall(callback, data)
    if not ok then
      notify('a transition callback threw: ' .. tostring(problem), vim.log.levels.ERROR)
    end
  end
end

---@param transition bellboard.Transition
---@param session? bellboard.Session
local function announce(transition, session)
  ---@type bellboard.TransitionData
  local data = vim.tbl_extend('force', transition, { session = session })
  local options = config.get()
  call(options.on_transition, data)
  call(options.on[data.to], data)
  vim.api.nvim_exec_autocmds('User', {
    pattern = 'BellboardTransition',
    modeline = false,
    data = data,
  })
end

--- Draw anew and tell everyone; also when only the shown ages have changed.
M._refresh = function()
  require('bellboard.statusline').update()
  vim.api.nvim_exec_autocmds('User', { pattern = 'BellboardUpdate', modeline = false })
end

local nil_is_nil = { luanil = { object = true, array = true } }

--- Take what the host publishes. Only the host calls this.
---@param push bellboard.Push|string JSON, for pynvim walks through every value of a table
M._push = function(push)
  push = type(push) == 'string' and vim.json.decode(push, nil_is_nil) or without_nil(push)
  if push.v ~= 1 then
    warn_once('v', ('the host speaks version %s of the protocol, not 1'):format(push.v))
    return
  elseif push.version ~= M.version then
    warn_once(
      'version',
      ('the running host is %s, this plugin %s. :checkhealth bellboard'):format(
        push.version,
        M.version
      )
    )
  end
  host.heard()
  if push.full then
    by_id, asked = {}, false
  elseif push.seq ~= (last_seq or -1) + 1 and not asked then
    asked = true
    host.notify('snapshot')
  end
  local was_stale = stale
  last_seq, stale = push.seq, push.stale == true
  local vanished = health.vanished
  health = push.health or health
  health.version = push.version
  if health.vanished and health.vanished ~= vanished then
    local text = ('%s; :%s install'):format(health.vanished, config.get().command)
    if #text + #'bellboard: ' >= vim.v.echospace then -- else it would ask for ENTER
      text = ('hooks gone; :%s install'):format(config.get().command)
    end
    notify(text)
  end
  if stale then
    warn_once('stale', (health.notes or {}).database or 'what is shown is old')
  end

  if push.groups then
    places = {}
    for place, name in ipairs(push.groups) do
      places[name] = place
    end
  end
  local sessions, removed = push.sessions or {}, push.removed or {}
  calling, mode = push.float or calling, push.mode or mode
  if push.front ~= nil then
    require('bellboard.view').is_front(push.front)
  end
  local news = push.full or push.health or push.float or was_stale ~= stale
  if news or #sessions > 0 or #removed > 0 then
    gone = {}
    for _, session in ipairs(sessions) do
      by_id[session.session_id] = session
    end
    for _, id in ipairs(removed) do
      gone[id], by_id[id] = by_id[id], nil
    end
    reorder()
    M._refresh()
  end
  if push.full then
    require('bellboard.view').renew()
    require('bellboard.witness').renew()
  end
  for _, notice in ipairs(push.notices or {}) do
    require('bellboard.notice').show(notice)
  end
  if push.rung then
    require('bellboard.notice').history(push.rung)
  end
  for _, transition in ipairs(push.transitions or {}) do
    if transition.live ~= false then
      announce(transition, by_id[transition.session_id] or gone[transition.session_id])
    end
  end
end

--- The host is gone for now.
M._went = function()
  stale, last_seq = true, nil
  vim.defer_fn(function() -- a restart takes less: nobody need see it
    if stale then
      M._refresh()
    end
  end, 1000)
end

--- All sessions, most urgent first, then oldest first. Do not change them.
---@param opts? { hidden?: boolean }
---@return bellboard.Session[]
M.sessions = function(opts)
  if opts and opts.hidden then
    local all = vim.tbl_values(by_id)
    table.sort(all, more_urgent)
    return all
  end
  return ordered
end

---@param id string
---@return bellboard.Session|nil
M.session = function(id)
  return by_id[id]
end

--- The session of a terminal device.
---@param tty string
---@return bellboard.Session|nil
M.session_of_tty = function(tty)
  return by_tty[tty]
end

--- Those that call you and that this Neovim is to show in its float, as the host decided.
---@return bellboard.Session[]
M.calling = function()
  local sessions = {}
  for _, id in ipairs(calling) do
    sessions[#sessions + 1] = by_id[id]
  end
  return sessions
end

--- How many sessions there are in each status.
---@return table<bellboard.Status, integer>
M.counts = function()
  return counts
end

--- The place of a repository among all of them, the busiest first; the host ranks them.
---@param repository string
---@return integer|nil
M.place = function(repository)
  return places[repository]
end

--- Whether the host is away, so that what is shown may be old.
---@return boolean
M.stale = function()
  return stale
end

--- What the host said about itself.
---@return table<string, any>
M.health = function()
  return health
end

--- Text for the statusline, coloured; costs a table look-up.
---@param opts? bellboard.StatuslineOpts
---@return string
M.statusline = function(opts)
  return require('bellboard.statusline').text(opts)
end

--- Tell the host about something that happened here.
---@param evidence table
---@return boolean told
M.tell = function(evidence)
  local told = host.notify('evidence', evidence)
  if not told and not (evidence.view ~= nil or evidence['goto']) then
    notify(('%s was not done: the host is away'):format(next(evidence)))
  end
  return told
end

--- Store options. Never needed: `vim.g.bellboard` does the same.
---@param opts? bellboard.UserConfig
M.setup = function(opts)
  config.set(opts)
end

--- What a host is told first: as things are configured now.
---@return table
local function hello()
  local options, callbacks = config.get(), vim.empty_dict()
  for status, callback in pairs(options.on) do
    callbacks[status] = type(callback) == 'table' and callback or nil
  end
  callbacks.transition = type(options.on_transition) == 'table' and options.on_transition or nil
  local seconds, micros = vim.uv.gettimeofday()
  return {
    v = 1,
    version = M.version,
    server = vim.v.servername,
    pid = vim.fn.getpid(),
    focused = seconds + micros / 1e6,
    options = next(options.host) and options.host or vim.empty_dict(),
    notices = options.notices,
    pull_requests = options.pull_requests,
    callbacks = callbacks,
  }
end

local function attach()
  if not attached then
    attached = true
    require('bellboard.ui').attach()
    require('bellboard.jump').attach()
    require('bellboard.float').attach()
    require('bellboard.view').attach()
    require('bellboard.witness').attach()
  end
end

--- Start the host and what shows its news.
M.start = function()
  attach()
  host.start(hello, M._went)
end

--- Start the host anew, with what is configured now.
M.restart = function()
  config.read()
  attach()
  host.restart(hello, M._went)
end

M.autostart = function()
  if config.get().auto_start then
    M.start()
  end
end

M.stop = function()
  host.stop()
end

--- Go to a session, wherever it runs.
---@param id string
M.jump = function(id)
  require('bellboard.jump').to(id)
end

--- Go to the next session that needs you.
---@param count? integer
M.next = function(count)
  require('bellboard.jump').step(count or 1)
end

---@param count? integer
M.prev = function(count)
  require('bellboard.jump').step(-(count or 1))
end

--- Answer the permission that a session asks for; by default the most urgent one's.
---@param id? string
M.answer = function(id)
  require('bellboard.answer').to(id)
end

--- No float and no notice of a session for so many minutes; 0: from now on again.
---@param id string
---@param minutes? number
M.snooze = function(id, minutes)
  require('bellboard.notice').snooze(id, minutes)
end

--- No float and no notice of a session until it is taken out of the park.
---@param id string
---@param on? boolean without it: the other way round
M.park = function(id, on)
  require('bellboard.notice').park(id, on)
end

--- Give a session a label, or take it off.
---@param id string
---@param text? string
M.label = function(id, text)
  require('bellboard.notice').label(id, text)
end

--- What rings at all, in every Neovim; with a name, from now on.
---@param name? 'quiet'|'normal'|'all'
---@return 'quiet'|'normal'|'all'
M.mode = function(name)
  if name then
    require('bellboard.notice').mode(name)
  end
  return name or mode or config.get().notices.mode
end

--- Go back to where the first jump began.
M.back = function()
  require('bellboard.jump').back()
end

--- Do what a subcommand of `:ClaudeSessions` does.
---@param verb string
---@param count? integer
---@param rest? string[]
M.run = function(verb, count, rest)
  require('bellboard.command').run(verb, count, rest)
end

return M
