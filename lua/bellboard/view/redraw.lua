-- Everything that shows sessions, brought up to date.
local statusline = require('bellboard.view.statusline')

local M = {}

--- The statusline's text first: whoever listens may ask for it.
M.all = function()
  statusline.update()
  vim.api.nvim_exec_autocmds('User', { pattern = 'BellboardUpdate', modeline = false })
end

return M
