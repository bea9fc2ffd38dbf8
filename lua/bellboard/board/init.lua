-- The board's windows: view.lua has their buffer, board/keys.lua their keys.
local canvas = require('bellboard.canvas')
local config = require('bellboard.config')
local highlight = require('bellboard.highlight')
local keys = require('bellboard.board.keys')
local preview = require('bellboard.board.preview')
local sessions = require('bellboard.sessions')
local show = require('bellboard.jump.show')
local view = require('bellboard.board.view')
local window = require('bellboard.window')

local M = {}

local api = vim.api

local NAME = 'bellboard://board'

--- Of a float, and one less than of the preview over it: below the pickers of other plugins, which
--- have 50 unless they choose.
local ZINDEX = 45

local function set_window_options()
  if vim.g.SessionLoad == 1 then -- a session file still puts other buffers into these windows
    return
  end
  for _, win in ipairs(view.windows()) do -- another plugin may have entered one of its own
    window.bare(win, { cursorline = true, scrolloff = 0 }) -- or the row under the cursor would move
    highlight.mark_cursor_line(win)
  end
end

--- Make a buffer the board's, also a buffer that a session file has restored.
---@param buf integer
local function adopt(buf)
  view.attach(buf)
  vim.b[buf].bellboard_view = true
  vim.bo[buf].buftype, vim.bo[buf].bufhidden = 'nowrite', 'wipe'
  vim.bo[buf].buflisted, vim.bo[buf].swapfile = false, false
  vim.bo[buf].undolevels, vim.bo[buf].modifiable = -1, false
  keys.attach(buf)
  vim.bo[buf].filetype = 'bellboard'
  local group = api.nvim_create_augroup('bellboard.board', {})
  local function on(events, callback, pattern)
    local where = pattern and { pattern = pattern } or { buffer = buf }
    local opts = vim.tbl_extend('error', { group = group, callback = callback }, where)
    api.nvim_create_autocmd(events, opts)
  end
  local later = vim.schedule_wrap(view.update)
  sessions.on_change('board', function()
    view.update()
    preview.update()
  end)
  on({ 'WinResized', 'VimResized' }, later, '*')
  on('WinLeave', later)
  on('BufWinEnter', set_window_options)
  local function loaded()
    set_window_options()
    view.update()
  end
  on('SessionLoadPost', vim.schedule_wrap(loaded), '*')
  on('CursorMoved', preview.update)
  on('BufWinLeave', vim.schedule_wrap(preview.update))
end

--- `:edit bellboard://board`, as session files do.
---@param buf integer
M.restore = function(buf)
  adopt(buf)
  set_window_options()
  view.update()
end

--- Fill the board that a session file has restored, also before this plugin was loaded, and close
--- our other windows: their buffers have only our names, and their keys do nothing.
M.clear_restored = function()
  for _, buf in ipairs(api.nvim_list_bufs()) do
    local name = api.nvim_buf_is_valid(buf) and api.nvim_buf_get_name(buf) or ''
    local is_left = name:find('^bellboard://') and not vim.b[buf].bellboard_view
    local wins = is_left and vim.fn.win_findbuf(buf) or {}
    if name == NAME and #wins > 0 then
      M.restore(buf)
    elseif is_left then
      vim.iter(wins):each(window.close)
      if api.nvim_buf_is_valid(buf) then -- else the buffer would be in the next session file
        api.nvim_buf_delete(buf, { force = true })
      end
    end
  end
end

---@param how 'split'|'vsplit'|'float'
---@return vim.api.keyset.win_config
local function layout(how)
  local options = config.get().board
  local function size(whole)
    return math.floor(options.size <= 1 and whole * options.size or options.size)
  end
  if how == 'float' then
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
  elseif how == 'vsplit' then
    return { split = 'right', win = -1, width = math.max(size(vim.o.columns), 40) }
  end
  return { split = 'below', win = -1, height = math.max(size(vim.o.lines), 6) }
end

--- Open the board, or go to its window.
---@param how? 'split'|'vsplit'|'tab'|'float' default: as configured
M.open = function(how)
  how = how or config.get().board.layout
  for _, win in ipairs(view.windows()) do
    if api.nvim_win_get_tabpage(win) == api.nvim_get_current_tabpage() then
      return window.enter(win)
    end
  end
  local buf = view.buffer()
  if not buf then
    buf = api.nvim_create_buf(false, true)
    canvas.name(buf, NAME)
    adopt(buf)
  end
  if how == 'tab' then
    window.tab(buf)
  else
    window.open(buf, true, layout(how))
  end
  set_window_options()
  view.update()
  view.first()
  if config.get().board.preview then
    preview.toggle()
  end
end

show.reopens.bellboard = M.open

return M
