-- Visual and Select mode, which must end before something else gets the window.
local M = {}

--- End them, if the user is in one of them.
M.leave = function()
  if vim.api.nvim_get_mode().mode:find('^[vVsS\22\19]') then
    vim.cmd.normal({ '\27', bang = true })
  end
end

return M
