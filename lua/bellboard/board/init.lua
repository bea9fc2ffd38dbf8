-- The board's windows: page.lua has what they show, board/keys.lua their keys.
local beside = require('bellboard.board.preview')
local canvas = require('bellboard.canvas')
local config = require('bellboard.config')
local highlight = require('bellboard.highlight')
local page = require('bellboard.board.page')
local sessions = require('bellboard.sessions')
local window = require('bellboard.window')

local M = {}

local api = vim.api

M.NAME = 'bellboard://board'

--- Of a float, and one less than of the preview over it: below the pickers of other plugins, which
--- have 50 unless they choose.
local ZINDEX = 45

--- Close it where it is a float: it would cover what is shown next.
local function close_float()
  for _, win in ipairs(page.windows()) do
    if api.nvim_win_get_config(win).relative ~= '' then
      window.close(win)
    end
  end
end

---@param win integer
---@return boolean
local function is_elsewhere(win)
  return window.is_normal(win) and api.nvim_win_get_buf(win) ~= page.buffer()
end

--- Go to another window, so that a jump does not replace the board. A float closes.
M.leave = function()
  beside.close()
  local last = vim.fn.win_getid(vim.fn.winnr('#')) -- the board itself, after a popup
  if is_elsewhere(last) then
    api.nvim_set_current_win(last)
  else
    window.go_back(api.nvim_get_current_win())
  end
  if not is_elsewhere(api.nvim_get_current_win()) then
    local other = vim.iter(api.nvim_tabpage_list_wins(0)):find(is_elsewhere)
    api.nvim_set_current_win(other or 0)
  end
  close_float()
end

--- Leave the board if it is a float.
M.leave_float = function()
  local is_float = api.nvim_win_get_config(0).relative ~= ''
  if is_float and api.nvim_get_current_buf() == page.buffer() then
    M.leave()
  end
end

--- Close the board, and go back to the window before.
M.close = function()
  local win = api.nvim_get_current_win()
  M.leave()
  window.close(win)
end

local function set_window_options()
  if vim.g.SessionLoad == 1 then -- a session file still puts other buffers into copies of it
    return
  end
  for _, win in ipairs(page.windows()) do -- another plugin may have entered one of its own
    window.bare(win, { cursorline = true, scrolloff = 0 }) -- or the row under the cursor would move
  end
end

--- Make a buffer the board's; also one that a session file has restored.
---@param buf integer
local function adopt(buf)
  page.attach(buf)
  vim.b[buf].bellboard_view = true
  vim.bo[buf].buftype, vim.bo[buf].bufhidden = 'nowrite', 'wipe'
  vim.bo[buf].buflisted, vim.bo[buf].swapfile = false, false
  vim.bo[buf].undolevels, vim.bo[buf].modifiable = -1, false
  require('bellboard.board.keys').attach(buf)
  vim.bo[buf].filetype = 'bellboard'
  local group = api.nvim_create_augroup('bellboard.board', {})
  local function on(events, callback, pattern)
    local where = pattern and { pattern = pattern } or { buffer = buf }
    local opts = vim.tbl_extend('error', { group = group, callback = callback }, where)
    api.nvim_create_autocmd(events, opts)
  end
  local later = vim.schedule_wrap(page.update)
  sessions.on_change('board', function()
    page.update()
    beside.update()
  end)
  on({ 'WinResized', 'VimResized' }, later, '*')
  on('WinLeave', later)
  on('BufWinEnter', set_window_options)
  local function loaded()
    set_window_options()
    page.update()
  end
  on('SessionLoadPost', vim.schedule_wrap(loaded), '*')
  on('CursorMoved', beside.update)
  on('BufWinLeave', vim.schedule_wrap(beside.update))
end

--- `:edit bellboard://board`, as session files do.
---@param buf integer
M.restore = function(buf)
  adopt(buf)
  set_window_options()
  page.update()
end

---@return vim.api.keyset.win_config
local function layout()
  local options = config.get().board
  local function size(whole)
    return math.floor(options.size <= 1 and whole * options.size or options.size)
  end
  if options.layout == 'float' then
    local width, height = math.floor(vim.o.columns * 0.9), math.floor(vim.o.lines * 0.8)
    return {
      relative = 'editor',
      width = width,
      height = height,
      row = math.floor((vim.o.lines - height) / 2) - 1,
      col = math.floor((vim.o.columns - width) / 2),
      border = highlight.border(),
      title = ' Agent sessions ',
      zindex = ZINDEX,
    }
  elseif options.layout == 'vsplit' then
    return { split = 'right', win = -1, width = math.max(size(vim.o.columns), 40) }
  end
  return { split = 'below', win = -1, height = math.max(size(vim.o.lines), 6) }
end

--- Open the board, or go to its window.
M.open = function()
  for _, win in ipairs(page.windows()) do
    if api.nvim_win_get_tabpage(win) == api.nvim_get_current_tabpage() then
      return window.enter(win)
    end
  end
  local buf = page.buffer()
  if not buf then
    buf = api.nvim_create_buf(false, true)
    canvas.name(buf, M.NAME)
    adopt(buf)
  end
  if config.get().board.layout == 'tab' then
    window.tab(buf)
  else
    window.open(buf, true, layout())
  end
  set_window_options()
  page.update()
  page.first()
  if config.get().board.preview then
    beside.toggle()
  end
end

return M
