-- A small window to type in, of one or more lines.
local canvas = require('bellboard.view.canvas')
local config = require('bellboard.config')
local ink = require('bellboard.view.ink')

local M = {}

local api = vim.api

--- Lines that it has at first, and at most.
local LEAST, MOST = 3, 12

---@class bellboard.Input
---@field title string
---@field text? string to start with
---@field filetype? string

--- Let the user type a text; `done` gets it, or nil if the user gave up.
---@param input bellboard.Input
---@param done fun(text: string|nil)
M.open = function(input, done)
  local width = math.max(math.min(config.get().answer.width, vim.o.columns) - 8, 12)
  local buf = api.nvim_create_buf(false, true)
  local lines = vim.split(input.text or '', '\n', { plain = true })
  api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].bufhidden, vim.bo[buf].textwidth = 'wipe', 0
  local height = math.max(LEAST, math.min(#lines, MOST, vim.o.lines - 6))
  local win = api.nvim_open_win(buf, true, {
    relative = 'editor',
    width = width,
    height = height,
    row = math.max(math.floor((vim.o.lines - height) / 2) - 1, 0),
    col = math.max(math.floor((vim.o.columns - width - 2) / 2), 0),
    style = 'minimal',
    border = 'rounded',
    title = { { (' %s '):format(input.title), ink.on('BellboardFloatTitle', 'BellboardFloat') } },
    footer = { { ' <C-s> send · <C-c> cancel ', ink.on('BellboardDim', 'BellboardFloat') } },
    footer_pos = 'right',
    zindex = config.get().float.zindex + 2,
  })
  canvas.bare(win, { wrap = true, linebreak = true })
  local edge = ink.on('BellboardFloatBorder', 'BellboardFloat')
  vim.wo[win].winhighlight = 'NormalFloat:BellboardFloat,FloatBorder:' .. edge
  vim.bo[buf].syntax = input.filetype or ''
  local over = false
  ---@param text string|nil
  local function finish(text)
    if over then
      return
    end
    over = true
    vim.cmd.stopinsert()
    if api.nvim_win_is_valid(win) then
      api.nvim_win_close(win, true)
    end
    done(text)
  end
  local function send()
    finish(table.concat(api.nvim_buf_get_lines(buf, 0, -1, false), '\n'))
  end
  local function cancel()
    finish(nil)
  end
  local function map(modes, lhs, act, desc)
    vim.keymap.set(modes, lhs, act, { buffer = buf, nowait = true, desc = desc })
  end
  map({ 'n', 'i' }, '<C-s>', send, 'send')
  map({ 'n', 'i' }, '<C-c>', cancel, 'cancel')
  map('n', 'q', cancel, 'cancel')
  map('n', '<Esc>', cancel, 'cancel')
  api.nvim_create_autocmd({ 'WinLeave', 'BufWipeout' }, {
    buffer = buf,
    callback = vim.schedule_wrap(cancel),
  })
  vim.cmd.startinsert({ bang = true })
  api.nvim_win_set_cursor(win, { #lines, #lines[#lines] })
end

return M
