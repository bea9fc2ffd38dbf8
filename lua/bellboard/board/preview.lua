-- A preview beside the board, of the session under its cursor.
local canvas = require('bellboard.canvas')
local highlight = require('bellboard.highlight')
local preview = require('bellboard.preview')
local view = require('bellboard.board.view')
local window = require('bellboard.window')

local M = {}

local api = vim.api

local WIDE = 110 -- columns of a board that has room for a preview at its right
local ROWS = 8 -- at least, of a preview above or over the board
local NONE = ' Put the cursor on a session.' -- before it shows one
local PAUSE = 40 -- ms that the cursor must rest

---@type integer|nil
local win
---@type bellboard.Session|nil what it shows
local shown
local waiting = false

---@return boolean
M.is_open = function()
  return win ~= nil and api.nvim_win_is_valid(win)
end

M.close = function()
  if M.is_open() then
    window.close(win)
  end
  win, shown = nil, nil
end

--- The place of the preview: a split at the right, else a float above the board or its lower half.
---@param board integer
---@return vim.api.keyset.win_config
local function layout(board)
  local width = api.nvim_win_get_width(board)
  local below = api.nvim_win_get_config(board)
  local is_float = below.relative ~= ''
  if width >= WIDE and not is_float then
    return { split = 'right', win = board, width = math.floor(width / 2) }
  end
  local row, column = unpack(api.nvim_win_get_position(board))
  local height, above = api.nvim_win_get_height(board), row >= ROWS + 2
  local rows = above and math.min(row - 2, 20) or math.max(math.floor(height / 2), 1)
  return {
    relative = 'editor',
    row = above and row - rows - 2 or row + height - rows - 2,
    col = column,
    width = math.max(width - 2, 1),
    height = rows,
    border = highlight.border(),
    focusable = false,
    zindex = is_float and below.zindex + 1 or nil,
  }
end

---@param board integer
local function open(board)
  local buf = canvas.buffer()
  canvas.replace(buf, { NONE })
  win = window.open(buf, false, layout(board))
  canvas.name(buf, 'bellboard://preview')
  window.bare(win)
end

local function follow()
  waiting = false
  if not M.is_open() then
    return
  elseif #view.windows() == 0 then
    return M.close()
  end
  local session = api.nvim_get_current_buf() == view.buffer() and view.under_cursor()
  if session and session ~= shown then
    local again = shown ~= nil and shown.session_id == session.session_id
    shown = session
    preview.into(session, api.nvim_win_get_buf(win), again)
  end
end

--- Show the session that is under the cursor now, once the cursor rests.
M.update = function()
  if M.is_open() and not waiting then
    waiting = true
    vim.defer_fn(follow, PAUSE)
  end
end

M.toggle = function()
  if M.is_open() then
    return M.close()
  end
  open(api.nvim_get_current_win())
  follow()
end

return M
