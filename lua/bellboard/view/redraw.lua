-- Updates everything that shows sessions.
local ink = require('bellboard.view.ink')
local statusline = require('bellboard.view.statusline')

local M = {}

--- The statusline first: listeners may ask for its text.
M.all = function()
  ink.restore()
  statusline.update()
  vim.api.nvim_exec_autocmds('User', { pattern = 'BellboardUpdate', modeline = false })
end

return M
