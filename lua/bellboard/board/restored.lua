-- What a session file has restored of our windows, or had before this plugin was loaded: buffers
-- that only have our names. The board is filled again, all others are closed.
local board = require('bellboard.board')
local window = require('bellboard.window')

local M = {}

local api = vim.api

--- Leave no window whose keys do nothing.
M.clear = function()
  for _, buf in ipairs(api.nvim_list_bufs()) do
    local name = api.nvim_buf_is_valid(buf) and api.nvim_buf_get_name(buf) or ''
    local is_left = name:find('^bellboard://') and not vim.b[buf].bellboard_view
    local wins = is_left and vim.fn.win_findbuf(buf) or {}
    if name == board.NAME and #wins > 0 then
      board.restore(buf)
    elseif is_left then
      vim.iter(wins):each(window.close)
      if api.nvim_buf_is_valid(buf) then -- it would be in the next session file
        api.nvim_buf_delete(buf, { force = true })
      end
    end
  end
end

return M
