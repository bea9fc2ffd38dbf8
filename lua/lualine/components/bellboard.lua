-- { 'bellboard' } in a lualine section. lualine redraws on its own events; ours is one of them.
local bellboard = require('bellboard')

local M = require('lualine.component'):extend()

function M:init(options)
  M.super.init(self, options)
  vim.api.nvim_create_autocmd('User', {
    group = vim.api.nvim_create_augroup('bellboard.lualine', {}),
    pattern = 'BellboardUpdate',
    callback = function()
      require('lualine').refresh()
    end,
  })
end

function M.update_status()
  return bellboard.statusline()
end

return M
