-- The public functions; see |bellboard-functions|. Everything else is loaded when it is needed.
local config = require('bellboard.config')
local host = require('bellboard.host')
local push = require('bellboard.push')
local sessions = require('bellboard.state.sessions')

local M = {}

M.version = '0.1.0'

M.statuses = sessions.statuses

local attached = false

--- All sessions, most urgent first, then oldest first. Do not change them.
---@param opts? { hidden?: boolean }
---@return bellboard.Session[]
M.sessions = function(opts)
  return opts and opts.hidden and sessions.all() or sessions.list()
end

---@param id string
---@return bellboard.Session|nil
M.session = sessions.get

--- The session of a terminal device.
---@param tty string
---@return bellboard.Session|nil
M.session_of_tty = sessions.of_tty

--- Those that call you and that this Neovim is to show in its float, as the host decided.
---@return bellboard.Session[]
M.calling = sessions.calling

--- How many sessions there are in each status.
---@return table<bellboard.Status, integer>
M.counts = sessions.counts

--- The place of a repository among all of them, the busiest first; the host ranks them.
---@param repository string
---@return integer|nil
M.place = sessions.place

--- Whether the host is away, so that what is shown may be old.
---@return boolean
M.stale = sessions.stale

--- What the host said about itself.
---@return table<string, any>
M.health = sessions.health

--- Text for the statusline, coloured; costs a table look-up.
---@param opts? bellboard.StatuslineOpts
---@return string
M.statusline = function(opts)
  return require('bellboard.view.statusline').text(opts)
end

--- Tell the host about something that happened here.
---@param evidence table
---@return boolean told
M.tell = host.tell

--- Store options. Never needed: `vim.g.bellboard` does the same.
---@param opts? bellboard.UserConfig
M.setup = config.set

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

--- Listen to what happens in this Neovim; once.
M._attach = function()
  if attached then
    return
  end
  attached = true
  for _, module in ipairs({
    'state.terminals',
    'view.style',
    'view.place',
    'view.float',
    'evidence.focus',
    'evidence.screens',
  }) do
    require('bellboard.' .. module).attach()
  end
end

--- Start the host and what shows its news.
M.start = function()
  M._attach()
  host.start(hello, push.stopped)
end

--- Start the host anew, with what is configured now.
M.restart = function()
  config.read()
  M._attach()
  host.restart(hello, push.stopped)
end

M.autostart = function()
  if config.get().auto_start then
    M.start()
  end
end

M.stop = host.stop

--- Go to a session, wherever it runs.
---@param id string
M.jump = function(id)
  require('bellboard.action.jump').to(id)
end

--- Go to the next session that needs you.
---@param count? integer
M.next = function(count)
  require('bellboard.action.jump').step(count or 1)
end

---@param count? integer
M.prev = function(count)
  require('bellboard.action.jump').step(-(count or 1))
end

--- Go back to where the first jump began.
M.back = function()
  require('bellboard.action.jump').back()
end

--- Answer the permission that a session asks for; by default the most urgent one's.
---@param id? string
M.answer = function(id)
  require('bellboard.action.answer').to(id)
end

--- No float and no notice of a session for so many minutes; 0: from now on again.
---@param id string
---@param minutes? number
M.snooze = function(id, minutes)
  require('bellboard.action.mark').snooze(id, minutes)
end

--- No float and no notice of a session until it is taken out of the park.
---@param id string
---@param on? boolean without it: the other way round
M.park = function(id, on)
  require('bellboard.action.mark').park(id, on)
end

--- Give a session a label, or take it off.
---@param id string
---@param text? string
M.label = function(id, text)
  require('bellboard.action.mark').label(id, text)
end

--- What rings at all, in every Neovim; with a name, from now on.
---@param name? 'quiet'|'normal'|'all'
---@return 'quiet'|'normal'|'all'
M.mode = function(name)
  if name then
    require('bellboard.action.mark').mode(name)
  end
  return name or sessions.mode()
end

--- Do what a subcommand of `:ClaudeSessions` does.
---@param verb string
---@param count? integer
---@param rest? string[]
M.run = function(verb, count, rest)
  require('bellboard.command').run(verb, count, rest)
end

-- What follows is called by name from elsewhere, where another version of this plugin may run.

--- Take what the host publishes.
---@param published bellboard.Push|string
M._push = function(published)
  push.receive(published, M.version)
end

--- Another Neovim goes to a terminal of this one.
M._arrive = function(...)
  return require('bellboard.action.jump').arrive(...)
end

--- Another Neovim shows what a terminal of this one shows.
M._shown = function(...)
  return require('bellboard.view.preview').of_terminal(...)
end

return M
