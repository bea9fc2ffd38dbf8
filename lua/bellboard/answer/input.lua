-- A small window to type in, of one or more lines.
local canvas = require('bellboard.canvas')
local cells = require('bellboard.text')
local config = require('bellboard.config')
local highlight = require('bellboard.highlight')
local message = require('bellboard.message')
local window = require('bellboard.window')

local M = {}

local api = vim.api

--- Its height at first, and at most, in lines.
local LEAST, MOST = 3, 12

---@class bellboard.Input
---@field title string
---@field text? string to start with
---@field filetype? string
---@field takes? string which texts can be sent, if not all

---@class bellboard.Input.Open
---@field win integer
---@field why? string why the text can no longer be sent
---@field after? fun() once it is closed

---@type bellboard.Input.Open|nil
local now

---@return boolean
M.is_open = function()
  return now ~= nil and api.nvim_win_is_valid(now.win)
end

---@param text string
---@return bellboard.Chunk[]
local function edge_of(text)
  return { { (' %s '):format(text), 'BellboardDim' } }
end

--- Show that the text can no longer be sent; it can still be read.
---@param why string
---@param after fun() what to do once it is closed
M.warn = function(why, after)
  local open = assert(now)
  open.why, open.after = why, after
  local room = api.nvim_win_get_width(open.win) - 2
  local footer = edge_of(cells.cut(cells.safe(why), math.max(room, 1)))
  api.nvim_win_set_config(open.win, { footer = footer, footer_pos = 'right' })
end

--- Let the user type a text; `done` gets it, or nil if the user cancelled.
---@param input bellboard.Input
---@param done fun(text: string|nil, is_left: boolean) with whether the user has gone elsewhere
M.open = function(input, done)
  local width = math.max(math.min(config.get().answer.width, vim.o.columns) - 8, 12)
  local footer = '<C-s> send · <C-c> cancel'
  footer = input.takes and ('%s · %s'):format(footer, input.takes) or footer
  local buf = canvas.buffer()
  local lines = vim.split(input.text or '', '\n', { plain = true })
  api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].textwidth = 0
  local height = math.max(LEAST, math.min(#lines, MOST, vim.o.lines - 6))
  local win = window.open(buf, true, {
    relative = 'editor',
    width = width,
    height = height,
    row = math.max(math.floor((vim.o.lines - height) / 2) - 1, 0),
    col = math.max(math.floor((vim.o.columns - width - 2) / 2), 0),
    style = 'minimal',
    border = highlight.border(),
    title = { { (' %s '):format(input.title), 'BellboardFloatTitle' } },
    footer = edge_of(cells.cut(footer, width - 2)),
    footer_pos = 'right',
    zindex = config.get().float.zindex + 2,
  })
  window.bare(win, { wrap = true, linebreak = true })
  highlight.frame(win)
  vim.bo[buf].syntax = input.filetype or ''
  local mine = { win = win } ---@type bellboard.Input.Open
  now = mine
  ---@return string
  local function written()
    return table.concat(api.nvim_buf_get_lines(buf, 0, -1, false), '\n')
  end
  ---@param text string|nil
  local function finish(text)
    if now ~= mine then
      return
    end
    now = nil
    local is_left = api.nvim_get_current_win() ~= win
    vim.cmd.stopinsert()
    window.close(win)
    done(text, is_left)
    if mine.after then
      mine.after()
    end
  end
  --- Save what was typed, unless it was taken or cancelled.
  ---@param typed string
  ---@param why string
  local function rescue(typed, why)
    if now == mine and vim.trim(typed) ~= '' and typed ~= (input.text or '') then
      canvas.cut(typed)
      message.info(('%s Your text was not sent; it is in register 1.'):format(why))
    end
  end
  local function send()
    if mine.why then
      rescue(written(), mine.why)
    end
    finish(not mine.why and written() or nil)
  end
  local function cancel()
    finish(nil)
  end
  local function map(modes, lhs, act, desc)
    vim.keymap.set(modes, lhs, act, { buffer = buf, nowait = true, desc = desc })
  end
  map({ 'n', 'i' }, '<C-s>', send, 'send')
  map('n', '<CR>', send, 'send')
  map({ 'n', 'i' }, '<C-c>', cancel, 'cancel')
  map('n', 'q', cancel, 'cancel')
  map('n', '<Esc>', cancel, 'cancel')
  local typed = ''
  local function leave()
    rescue(typed, 'Its window was left.')
    cancel()
  end
  api.nvim_create_autocmd('WinLeave', {
    buffer = buf,
    callback = function()
      typed = written() -- the buffer may be gone soon
      window.left(win, leave)
    end,
  })
  api.nvim_create_autocmd('BufWipeout', {
    buffer = buf,
    callback = vim.schedule_wrap(leave), -- also while a command is being typed
  })
  vim.cmd.startinsert({ bang = true })
  api.nvim_win_set_cursor(win, { #lines, #lines[#lines] })
end

return M
