-- Starts the plugin in this Neovim: the parts that show and report sessions, and the background
-- process.
local autostart = require('bellboard.process.autostart')
local config = require('bellboard.config')
local coprocess = require('bellboard.process.run')
local host = require('bellboard.process.talk')
local program = require('bellboard.process.program')
local receive = require('bellboard.process.receive')
local sessions = require('bellboard.sessions')

local M = {}

local attached = false

--- The options that the background process needs.
---@return table
local function shared()
  local options, callbacks = config.get(), vim.empty_dict()
  for status, callback in pairs(options.on) do
    callbacks[status] = type(callback) == 'table' and callback or nil
  end
  callbacks.transition = type(options.on_transition) == 'table' and options.on_transition or nil
  return {
    options = next(options.host) and options.host or vim.empty_dict(),
    notices = options.notices,
    machines = next(options.machines) and options.machines or vim.empty_dict(),
    pull_requests = options.pull_requests,
    icons = require('bellboard.highlight').icons(),
    callbacks = callbacks,
  }
end

---@type table|nil the options that it has
local sent

--- The first message to the background process.
---@return table
local function hello()
  sent = shared()
  return vim.tbl_extend('error', sent, receive.place(), {
    v = 1,
    version = program.version,
    server = vim.v.servername,
    pid = vim.fn.getpid(),
    focused = host.last_focus(),
  })
end

--- Define highlights and autocommands, once.
M.attach = function()
  if attached then
    return
  end
  attached = true
  require('bellboard.terminals').attach()
  require('bellboard.highlight').attach()
  require('bellboard.place').attach()
  require('bellboard.float').attach({
    answer = function(id)
      require('bellboard.answer').to(id)
    end,
    go = function(id)
      require('bellboard.jump').to(id)
    end,
    pick = function()
      require('bellboard.picker').open()
    end,
    compare = function(change)
      require('bellboard.answer').compare(change)
    end,
  })
  require('bellboard.unsaved').attach(require('bellboard.float').update)
  require('bellboard.statusline').attach()
  require('bellboard.report.focus').attach()
  require('bellboard.report.screens').attach()
  require('bellboard.report.chats').attach()
  require('bellboard.report.outward').attach()
  require('bellboard.report.unsaved').attach()
  require('bellboard.checktime').attach()
  require('bellboard.quit').attach()
  receive.on('snapshot', function()
    require('bellboard.install').greet()
  end)
  receive.on('notice', function(notice)
    require('bellboard.notify').show(notice)
  end)
  receive.on('past', function(log)
    require('bellboard.notify').history(log)
  end)
end

coprocess.own({
  prepare = M.attach,
  greet = hello,
  gone = function(for_good)
    require('bellboard.report.outward').clear()
    receive.stopped(for_good)
  end,
  unbuilt = function(why, by_itself)
    sessions.changed()
    vim.schedule(function() -- else a window that a command opens would close the question
      require('bellboard.install').offer(why, by_itself)
    end)
  end,
})
host.on_push(function(published)
  receive.receive(published)
end)

--- Start the background process with Neovim, unless the options or this use of Neovim forbid it.
M.automatically = function()
  autostart.await(config.get().auto_start, function()
    coprocess.start(true)
  end)
end

--- The options may have changed: show sessions as they say, and restart the process if it needs
--- them.
M.reconfigure = function()
  if host.status().running then
    sessions.changed()
    require('bellboard.report.outward').renew()
    require('bellboard.report.unsaved').renew()
    if not vim.deep_equal(shared(), sent) then
      coprocess.restart()
    end
  end
end

return M
