-- Lines to read: in a float over the board, or in a window of their own.
local canvas = require('bellboard.view.canvas')
local cells = require('bellboard.view.cells')
local config = require('bellboard.config')
local ink = require('bellboard.view.ink')

local M = {}

local api = vim.api

--- Show lines in a float that closes when it is left.
---@param lines string[]
---@param title string
---@param at_end? boolean start at the last line
---@return integer buf
M.open = function(lines, title, at_end)
  local width = 20
  for _, text in ipairs(lines) do
    width = math.max(width, cells.width(text) + 2)
  end
  width = math.min(width, vim.o.columns - 4)
  local height = math.max(1, math.min(#lines, vim.o.lines - 6))
  local shown = canvas.buffer(lines)
  local win = api.nvim_open_win(shown, true, {
    relative = 'editor',
    width = width,
    height = height,
    row = math.max(0, math.floor((vim.o.lines - height) / 2) - 1),
    col = math.floor((vim.o.columns - width) / 2),
    style = 'minimal',
    border = ink.border(),
    title = ' ' .. cells.cut(title, width - 2) .. ' ',
    footer = #lines > height and ' more below ' or nil,
    zindex = config.get().float.zindex + 1,
  })
  ink.frame(win)
  vim.wo[win].wrap = false
  if at_end then
    api.nvim_win_set_cursor(win, { #lines, 0 })
  end
  local function close()
    if api.nvim_win_is_valid(win) then
      api.nvim_win_close(win, true)
    end
  end
  for _, key in ipairs({ 'q', '<Esc>' }) do
    vim.keymap.set('n', key, close, { buffer = shown, desc = 'close', nowait = true })
  end
  api.nvim_create_autocmd('WinLeave', {
    buffer = shown,
    once = true,
    callback = vim.schedule_wrap(close),
  })
  return shown
end

--- Show lines in a new window below the others, from the last one.
---@param lines string[]
M.window = function(lines)
  local buf = canvas.buffer(vim.tbl_map(cells.safe_line, lines))
  local height = math.max(3, math.min(#lines, math.floor(vim.o.lines / 2)))
  local before = api.nvim_get_current_win()
  local win = api.nvim_open_win(buf, true, { split = 'below', win = -1, height = height })
  api.nvim_set_option_value('wrap', false, { scope = 'local', win = win })
  vim.keymap.set('n', 'q', function()
    canvas.close(win, before)
  end, { buffer = buf, desc = 'close' })
  vim.cmd.normal({ 'G', bang = true })
end

return M
