-- Reports the files of which this Neovim has unsaved changes, if agents are to ask before they
-- write one: their hooks read the list.
local config = require('bellboard.config')
local host = require('bellboard.process.talk')
local receive = require('bellboard.process.receive')
local unsaved = require('bellboard.unsaved')

local M = {}

local api = vim.api

---@type string[] the files, as the background process knows them
local reported = {}
local is_due = false

--- Report what has changed; the options may have, too.
M.renew = function()
  is_due = false
  local paths = config.get().ask_unsaved and unsaved.paths() or {}
  if not vim.deep_equal(paths, reported) and host.notify('unsaved', paths) then
    reported = paths
  end
end

M.attach = function()
  api.nvim_create_autocmd({ 'BufModifiedSet', 'BufFilePost', 'BufUnload' }, {
    group = api.nvim_create_augroup('bellboard.report.unsaved', {}),
    callback = function()
      if not is_due then
        is_due = true
        vim.schedule(M.renew)
      end
    end,
  })
  receive.on('snapshot', function() -- of a process that knows none
    reported = {}
    M.renew()
  end)
end

return M
