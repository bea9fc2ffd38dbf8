-- `User` events: what shows sessions is to be drawn again, and what happened to one.
local message = require('bellboard.message')

local M = {}

local api = vim.api

---@type table<string, string> event → what an autocommand of it failed with last
local failures = {}

--- Execute the autocommands of an event. Neovim would show an error in one of them in several
--- lines, and wait for ENTER; the others run all the same.
---@param event string
---@param data? any
M.fire = function(event, data)
  local before = vim.v.errmsg
  api.nvim_set_vvar('errmsg', '')
  require('bellboard.updates')._run = function() -- of the module that is loaded by now
    api.nvim_exec_autocmds('User', { pattern = event, modeline = false, data = data })
  end
  vim.cmd("silent! unsilent lua require('bellboard.updates')._run()")
  local why = vim.v.errmsg
  api.nvim_set_vvar('errmsg', why ~= '' and why or before)
  if why ~= '' and why ~= failures[event] then
    failures[event] = why
    local first = why:match('^[^\n]*:%s*\n%s*([^\n]+)') or why:match('^[^\n]+')
    message.error(('an autocommand of %s failed: %s'):format(event, first))
  end
end

---@type fun()
M._run = nil

--- Call a function at each update, until it returns true.
---@param group string of autocommands; those that it had are removed
---@param callback fun(): boolean|nil
M.on = function(group, callback)
  api.nvim_create_autocmd('User', {
    group = api.nvim_create_augroup('bellboard.' .. group, {}),
    pattern = 'BellboardUpdate',
    callback = callback,
  })
end

return M
