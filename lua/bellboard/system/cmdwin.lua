-- The command-line window. While it is open, no other window can be opened or entered.
local M = {}

--- Close it if it is open, then do something.
---@param act fun()
M.leave = function(act)
  if vim.fn.getcmdwintype() == '' then
    return act()
  end
  local opts = { once = true, callback = vim.schedule_wrap(act) }
  vim.api.nvim_create_autocmd('CmdwinLeave', opts)
  vim.cmd.quit()
end

return M
