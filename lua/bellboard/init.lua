-- The public functions; see |bellboard-functions|. Everything else is loaded when it is needed.
local config = require('bellboard.config')
local coprocess = require('bellboard.process.run')
local host = require('bellboard.process.talk')
local message = require('bellboard.message')
local program = require('bellboard.process.program')
local receive = require('bellboard.process.receive')
local sessions = require('bellboard.sessions')
local start = require('bellboard.start')

local M = {}

M.version = program.version

M.statuses = sessions.statuses

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

--- The sessions to show in this Neovim's float.
---@return bellboard.Session[]
M.calling = sessions.calling

--- Close the float of this Neovim until another session is blocked.
M.dismiss = function()
  require('bellboard.float').dismiss()
end

--- The number of sessions in each status.
---@return table<bellboard.Status, integer>
M.counts = sessions.counts

--- The rank of a repository, the busiest first.
---@param repository string
---@return integer|nil
M.place = sessions.place

--- Whether the sessions may be outdated: the background process is not running, or the database
--- belongs to a newer version.
---@return boolean
M.stale = sessions.stale

--- What the background process reports about itself.
---@return table<string, any>
M.health = sessions.health

--- Text for 'statusline', with colors. Cached, so it costs a table lookup.
---@param opts? bellboard.StatuslineOpts
---@return string
M.statusline = function(opts)
  return require('bellboard.statusline').text(opts)
end

--- Kinds of evidence, as the background process knows them.
-- stylua: ignore
local KINDS = {
  'answer', 'client', 'config', 'facts', 'forget', 'goto', 'hook', 'label', 'name', 'note',
  'osc7501', 'pane', 'park', 'process', 'raw', 'registry', 'restart', 'screen', 'server', 'set',
  'snooze', 'tick', 'title', 'transcript', 'view',
}
--- Keys beside the evidence: its time, viewer, origin and event.
local BESIDE = { 't', 'viewer', 'origin', 'event' }

--- Report an event of this Neovim, such as a label.
---@param evidence table
---@return boolean sent
M.tell = function(evidence)
  local found, other = 0, nil
  for key in pairs(type(evidence) == 'table' and evidence or {}) do
    if vim.list_contains(KINDS, key) then
      found = found + 1
    elseif not vim.list_contains(BESIDE, key) then
      other = key
    end
  end
  if found == 1 and other == nil then
    return host.tell(evidence)
  end
  local what = other ~= nil and ('there is no "%s"'):format(tostring(other)) or 'give one kind'
  message.warn(('tell: %s; see :help bellboard.tell()'):format(what))
  return false
end

--- The hooks with which agentic.nvim reports its chats, around those of the user.
---@param theirs? table<string, fun(data: table): any>
---@return table<string, fun(data: table): any>
M.agentic_hooks = function(theirs)
  return require('bellboard.report.agentic').hooks(theirs)
end

--- Start the background process.
M.start = function()
  coprocess.start()
end

--- Restart the background process with the current configuration.
M.restart = coprocess.restart

--- Start the background process with Neovim, unless the options or this use of Neovim forbid it.
M.autostart = start.automatically

M.stop = coprocess.stop

--- Set options. Optional: `vim.g.bellboard` does the same.
---@param opts? bellboard.UserConfig|fun(): bellboard.UserConfig
M.setup = function(opts)
  config.set(opts)
  start.reconfigure()
end

--- Act on the session of this id or name, if there is exactly one.
---@param called string
---@param act fun(id: string)
local function with(called, act)
  local session = require('bellboard.find_session').one(called)
  if session then
    act(session.session_id)
  end
end

--- Go to a session, wherever it runs; if several match, to the one that needs you.
---@param called string its id, the start of its id, its name or project
M.jump = function(called)
  local names = require('bellboard.find_session')
  names.choose(called, names.needs_you, require('bellboard.jump').to)
end

--- Go to the next session that needs you.
---@param count? integer
---@param filter? string as on the board, such as `agent:codex`
M.next = function(count, filter)
  require('bellboard.jump').step(tonumber(count) or 1, nil, filter)
end

---@param count? integer
---@param filter? string
M.prev = function(count, filter)
  require('bellboard.jump').step(-(tonumber(count) or 1), nil, filter)
end

--- Go back to where the first jump started.
M.back = function()
  require('bellboard.jump').back()
end

--- Show the request of a session, to answer it; or answer it.
---@param called? string default: the most urgent one
---@param choice? string|bellboard.Answer
---@param done? fun(reply: bellboard.Reply)
M.answer = function(called, choice, done)
  local answer, names = require('bellboard.answer'), require('bellboard.find_session')
  if called and not choice then
    return names.choose(called, names.asks, answer.to)
  end
  local session, why
  if called then
    session, why = names.one(called, names.asks)
  end
  if session and choice then
    answer.give(session, choice, done or function() end)
  elseif why and choice and done then
    done({ ok = false, why = why })
  elseif not called then
    answer.to()
  end
end

--- Put a text into the prompt of a session; without one, or with `edit`, let the user write it.
---@param called? string default: the user chooses
---@param text? string
---@param opts? { submit?: boolean, edit?: boolean, on_done?: fun(reply: bellboard.Reply) }
M.send = function(called, text, opts)
  local names, send = require('bellboard.find_session'), require('bellboard.send')
  opts = opts or {}
  if not text or opts.edit then
    local here = require('bellboard.send.context').here()
    return names.pick(called or '', names.REST, function(id)
      send.open(id, { text = text, here = here })
    end)
  end
  local session, why = names.one(called or '', names.that(names.REST))
  if session then
    send.send(session, text, opts.submit == true, opts.on_done)
  elseif opts.on_done then
    opts.on_done({ ok = false, why = why })
  end
end

--- Get the request of a session, in full.
---@param called string
---@param done fun(request: bellboard.Request|nil, why: string|nil)
M.request = function(called, done)
  local session, why = require('bellboard.find_session').one(called)
  if session then
    require('bellboard.answer.request').get(session, nil, done)
  else
    done(nil, why)
  end
end

--- Mute a session for some minutes; 0 unmutes it.
---@param called string
---@param minutes? number default: end its snooze, or the usual time
M.snooze = function(called, minutes)
  with(called, function(id)
    require('bellboard.session_edit').snooze(id, minutes)
  end)
end

--- Park a session: no float and no notices until it is unparked.
---@param called string
---@param on? boolean default: toggle
M.park = function(called, on)
  with(called, function(id)
    require('bellboard.session_edit').park(id, on)
  end)
end

--- Set or remove a session's label.
---@param called string
---@param text? string
M.label = function(called, text)
  with(called, function(id)
    require('bellboard.session_edit').label(id, text)
  end)
end

--- Get or set the notification mode of every Neovim.
---@param name? 'quiet'|'normal'|'all'
---@return 'quiet'|'normal'|'all'
M.mode = function(name)
  if name ~= nil and not require('bellboard.session_edit').mode(name) then
    name = nil
  end
  return name or sessions.mode()
end

--- Run a subcommand of `:ClaudeSessions`.
---@param verb string
---@param count? integer
---@param rest? string[]
M.run = function(verb, count, rest)
  require('bellboard.command').run(verb, count, rest)
end

--- Go to the next session with the status of a count in the statusline; the right button opens the
--- picker, the middle one the board.
---@param nth integer of the statuses
---@param button string
M._click = function(nth, _, button)
  vim.schedule(function()
    if button == 'l' then
      require('bellboard.jump').step(1, M.statuses[nth])
    else
      M.run(button == 'm' and 'board' or 'pick')
    end
  end)
end

--- Show a push at once. Tests and benchmarks call it; the background process calls `process.talk`.
---@param published string
M._push = function(published)
  receive.receive(published)
end

-- The rest is called from other Neovims, which may have another version of this plugin.

--- Show a terminal of this Neovim for a jump from another one.
M._arrive = function(...)
  return require('bellboard.jump').arrive(...)
end

--- The rows of a terminal of this Neovim, to answer from another one.
M._rows = function(...)
  return require('bellboard.terminals').last_rows(...)
end

--- Type an answer into a terminal of this Neovim, if it still shows the question.
M._type = function(...)
  return require('bellboard.terminals').type(...)
end

--- The lines of a terminal of this Neovim, for a preview in another one.
M._shown = function(...)
  return require('bellboard.preview').of_terminal(...)
end

return M
