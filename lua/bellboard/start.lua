-- Starts the plugin in this Neovim: attaches what shows sessions, and tells the background process
-- which Neovim asks, and with which options.
local autostart = require('bellboard.process.autostart')
local config = require('bellboard.config')
local coprocess = require('bellboard.process.run')
local highlight = require('bellboard.highlight')
local host = require('bellboard.process.talk')
local push = require('bellboard.process.receive')
local sessions = require('bellboard.sessions')

local M = {}

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
    icons = highlight.icons(),
    callbacks = callbacks,
  }
end

---@type table|nil the options that it has
local sent

--- The first message to the background process.
---@param version string
---@return table
local function hello(version)
  sent = shared()
  return vim.tbl_extend('error', sent, push.place(), {
    v = 1,
    version = version,
    server = vim.v.servername,
    pid = vim.fn.getpid(),
    focused = host.last_focus(),
  })
end

local attached = false

--- Define highlights and autocommands, once.
M.attach = function()
  if attached then
    return
  end
  attached = true
  for _, module in ipairs({
    'terminals',
    'highlight',
    'place',
    'float',
    'statusline',
    'report.focus',
    'report.screens',
    'report.chats',
    'checktime',
  }) do
    require('bellboard.' .. module).attach()
  end
  push.on('snapshot', function()
    require('bellboard.install').greet()
  end)
  push.on('notice', function(notice)
    require('bellboard.notify').show(notice)
  end)
  push.on('past', function(log)
    require('bellboard.notify').history(log)
  end)
end

--- Tie the background process to this Neovim.
---@param version string of the plugin
M.wire = function(version)
  coprocess.own({
    prepare = M.attach,
    greet = function()
      return hello(version)
    end,
    gone = push.stopped,
    unbuilt = function(why, by_itself)
      sessions.changed()
      vim.schedule(function() -- or a window that a command opens would close the question
        require('bellboard.install').offer(why, by_itself)
      end)
    end,
  })
  host.on_push(function(published)
    push.receive(published, version)
  end)
end

--- Start with Neovim, unless the options or this use of Neovim forbid it.
M.automatically = function()
  autostart.await(config.get().auto_start, function()
    coprocess.start(true)
  end)
end

--- The options were set: restart the background process if it needs others.
M.reconfigure = function()
  if host.status().running then
    sessions.changed()
    if not vim.deep_equal(shared(), sent) then
      coprocess.restart()
    end
  end
end

return M
