-- Where the user was before a view opened, to return there.
local visual = require('bellboard.visual')
local windows = require('bellboard.windows')

local M = {}

local api = vim.api

--- Return a function that restores the window, the mode and the cursor.
---@param is_split boolean the sizes of windows will change
---@return fun()
M.keep = function(is_split)
  local win, mode = api.nvim_get_current_win(), api.nvim_get_mode().mode
  local buf, cursor = api.nvim_get_current_buf(), api.nvim_win_get_cursor(0)
  local sizes = is_split and vim.fn.winrestcmd() or nil
  if mode:find('^[iRt]') then
    vim.cmd.stopinsert()
  else
    visual.leave()
  end
  return function()
    if sizes then
      pcall(vim.cmd, 'silent ' .. sizes)
    end
    if not (api.nvim_win_is_valid(win) and api.nvim_win_get_buf(win) == buf) then
      return
    end
    windows.go(win)
    local start = mode:find('^i') and 'startinsert'
      or mode:find('^Rv') and 'startgreplace'
      or mode:find('^R') and 'startreplace'
    if start then
      local line = api.nvim_get_current_line()
      vim.cmd[start]({ bang = cursor[2] >= #line })
      pcall(api.nvim_win_set_cursor, win, cursor)
    elseif mode:find('^t') then
      vim.cmd.startinsert()
    end
  end
end

return M
