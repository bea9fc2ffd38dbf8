-- The command line and its window. While that is open, no other window can be opened or entered.
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

--- Whether Neovim keeps a window because the command-line window was opened from there.
---@param win integer
---@return boolean
M.is_from = function(win)
  return vim.fn.getcmdwintype() ~= '' and win == vim.fn.win_getid(vim.fn.winnr('#'))
end

--- Do something once the user is in neither that window nor the command line.
---@param act fun()
M.after = function(act)
  local in_window = vim.fn.getcmdwintype() ~= ''
  if not in_window and not vim.api.nvim_get_mode().mode:find('^c') then
    return act()
  end
  vim.api.nvim_create_autocmd(in_window and 'CmdwinLeave' or 'CmdlineLeave', {
    once = true,
    callback = vim.schedule_wrap(function()
      M.after(act)
    end),
  })
end

--- Do something soon if the user has left a window for another one. The command-line window is
--- none: Neovim keeps the window that it was opened from, and returns there.
---@param win integer
---@param act fun()
M.left = function(win, act)
  vim.schedule(function()
    M.after(function()
      if vim.api.nvim_get_current_win() ~= win then
        act()
      end
    end)
  end)
end

return M
