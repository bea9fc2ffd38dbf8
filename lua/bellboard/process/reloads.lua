-- When the plugin is loaded again, as by `:Lazy reload`, ends what the modules loaded before have
-- opened and started. (checktime.lua is about files in buffers.)
local textlock = require('bellboard.textlock')

local M = {}

local api = vim.api

local NAME = 'bellboard.reloads'
local group = api.nvim_create_augroup(NAME, { clear = false })

--- Do something once they are loaded again.
---@param act fun()
M.on = function(act)
  api.nvim_create_autocmd('User', {
    group = group,
    pattern = NAME,
    nested = true, -- windows that it closes have autocommands
    callback = function()
      textlock.after(act)
    end,
  })
end

-- Now, those that were loaded before.
api.nvim_exec_autocmds('User', { group = group, pattern = NAME, modeline = false })
api.nvim_clear_autocmds({ group = group })

return M
