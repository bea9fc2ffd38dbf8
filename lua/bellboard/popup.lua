-- Lines to read: in a float over the board, or in a window of their own, such as the output of the
-- shell program.
local canvas = require('bellboard.canvas')
local cells = require('bellboard.text')
local config = require('bellboard.config')
local highlight = require('bellboard.highlight')
local message = require('bellboard.message')
local moment = require('bellboard.moment')
local program = require('bellboard.process.program')
local window = require('bellboard.window')

local M = {}

local api = vim.api

---@class bellboard.Below the window below the others
---@field win integer
---@field buf? integer

---@type bellboard.Below|nil
local below

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
  local more = at_end and ' · more above ' or ' · more below '
  local shown = canvas.buffer(lines)
  local win = window.open(shown, true, {
    relative = 'editor',
    width = width,
    height = height,
    row = math.max(0, math.floor((vim.o.lines - height) / 2) - 1),
    col = math.floor((vim.o.columns - width) / 2),
    style = 'minimal',
    border = highlight.border(),
    title = ' ' .. cells.cut(title, width - 2) .. ' ',
    footer = {
      { ' q', 'BellboardKey' },
      { ' close' .. (#lines > height and more or ' '), 'BellboardDim' },
    },
    zindex = config.get().float.zindex + 1,
  })
  highlight.frame(win)
  vim.wo[win].wrap = false
  if at_end then
    api.nvim_win_set_cursor(win, { #lines, 0 })
  end
  local function close()
    window.close(win)
  end
  for _, key in ipairs({ 'q', '<Esc>' }) do
    vim.keymap.set('n', key, close, { buffer = shown, desc = 'close', nowait = true })
  end
  api.nvim_create_autocmd('WinLeave', {
    buffer = shown,
    callback = function()
      window.left(win, close)
    end,
  })
  return shown
end

---@param lines string[]
---@param at_end? boolean
---@return integer buf
local function put_below(lines, at_end)
  local buf = canvas.buffer(vim.tbl_map(cells.safe_line, lines))
  local shows = below and api.nvim_win_is_valid(below.win) and api.nvim_win_get_buf(below.win)
  local is_there = shows and shows == below.buf
  if is_there and api.nvim_win_get_tabpage(below.win) ~= api.nvim_get_current_tabpage() then
    window.close(below.win)
    is_there = false
  end
  if is_there then
    vim.wo[below.win].winfixbuf = false
    api.nvim_win_set_buf(below.win, buf)
    window.enter(below.win)
  else
    local height = math.max(3, math.min(#lines, math.floor(vim.o.lines / 2)))
    local win = window.open(buf, true, { split = 'below', win = -1, height = height })
    below = { win = win }
  end
  below.buf = buf
  window.bare(below.win, { wrap = true, linebreak = true, breakindent = true })
  local rows = api.nvim_win_text_height(below.win, {}).all
  api.nvim_win_set_height(below.win, math.max(3, math.min(rows, math.floor(vim.o.lines / 2))))
  api.nvim_win_set_cursor(below.win, { at_end and #lines or 1, 0 })
  return buf
end

--- Show lines in a window below the others: the one of earlier lines, or a new one. An open command
--- line is waited for.
---@param lines string[]
---@param name string what they are
---@param at_end? boolean start at the last line
---@param on_line? fun(row: integer) called by <CR>, after the window was closed
M.window = function(lines, name, at_end, on_line)
  moment.when('open', function()
    local buf = put_below(lines, at_end)
    canvas.name(buf, 'bellboard://' .. name)
    local mine = assert(below)
    local function close()
      window.close(mine.win)
    end
    vim.keymap.set('n', 'q', close, { buffer = buf, desc = 'close', nowait = true })
    if on_line then
      vim.keymap.set('n', '<CR>', function()
        local row = api.nvim_win_get_cursor(0)[1]
        close()
        on_line(row)
      end, { buffer = buf, desc = 'go to the session', nowait = true })
    end
  end)
end

--- Say why a command failed: in a message, or in a window if a message would lose its middle.
---@param why string
---@param name string of the command
---@param printed? string[] what it printed before that, for the window
M.refuse = function(why, name, printed)
  local lines, fits = { unpack(printed or {}) }, message.fits(why)
  if fits then
    message.error(why)
  else
    vim.list_extend(lines, vim.split(why, '\n'))
  end
  if #lines > 0 then
    M.window(lines, name, not fits)
  end
end

--- Commands that print what happened, and whether the newest, at the end, is read first.
local logs = { explain = false, history = true, replay = true }

--- Run a command of the shell program, and show its output in a message or in a window.
---@param words string[]
M.command = function(words)
  local columns = logs[words[1]] ~= nil and vim.o.columns - 1 or nil
  program.run(words, function(printed, why, partly)
    local text = (printed or partly or ''):gsub('%s+$', '')
    local lines = vim.split(text, '\n', { trimempty = true })
    if not printed then
      M.refuse(('%s: %s'):format(words[1], why), words[1], lines)
    elseif #lines > 1 or not message.fits(text) then
      M.window(lines, words[1], logs[words[1]])
    else
      message.info(cells.safe(vim.trim(lines[1] or words[1] .. ': done')))
    end
  end, columns)
end

return M
