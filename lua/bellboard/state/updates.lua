-- Listens to `User BellboardUpdate`: what shows sessions is to be drawn again.
local M = {}

local api = vim.api

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
