-- Where the two parts of a request's view go on the screen.
local config = require('bellboard.config')
local highlight = require('bellboard.highlight')

local M = {}

--- Columns beside the text: a border and a blank on both sides.
local BESIDE = 4
--- Rows that are left of the screen, borders included.
local AROUND = 5
--- Rows that the lower part leaves at least: three borders, and one of text.
local LEAST = 4
--- Borders that two parts can share: corners, sides, and where the lower part starts.
-- stylua: ignore
local FRAMES = {
  rounded = { '╭', '╮', '╰', '╯', '─', '│', '├', '┤' },
  single  = { '┌', '┐', '└', '┘', '─', '│', '├', '┤' },
  double  = { '╔', '╗', '╚', '╝', '═', '║', '╠', '╣' },
  bold    = { '┏', '┓', '┗', '┛', '━', '┃', '┣', '┫' },
  solid   = { ' ', ' ', ' ', ' ', ' ', ' ', ' ', ' ' },
}

--- The borders of the upper part, which ends where the lower one starts, and of that.
---@return string[] above
---@return string[] below
local function borders()
  local frame = FRAMES[highlight.border()] or FRAMES[highlight.plain_border()]
  local nw, ne, sw, se, across, down, west, east = unpack(frame)
  local above = { nw, across, ne, down, east, across, west, down }
  return above, { '', '', '', down, se, across, sw, down }
end

--- There is no room for splits.
local is_tight = false

---@return boolean
M.is_split = function()
  return config.get().answer.layout == 'split' and not is_tight
end

--- Float both parts if one of them does, as there is no room for a split.
---@param part integer|nil its window; default: none is open yet
M.settle = function(part)
  is_tight = part ~= nil and (is_tight or vim.api.nvim_win_get_config(part).relative ~= '')
end

--- The cells of a row.
---@return integer
M.width = function()
  local most = M.is_split() and math.huge or config.get().answer.width
  return math.max(math.min(most, vim.o.columns) - BESIDE, 16)
end

--- The rows that the foot can have on this screen.
---@return integer
M.most_of_foot = function()
  return math.max(vim.o.lines - vim.o.cmdheight - LEAST, 1)
end

--- Where both parts go as floats. On a small screen, the last rows of the foot are left out.
---@param high integer rows of the text
---@param foot integer rows of the foot
---@return vim.api.keyset.win_config body
---@return vim.api.keyset.win_config foot
local function floats(high, foot)
  foot = math.min(foot, M.most_of_foot())
  local room = math.max(vim.o.lines - vim.o.cmdheight - foot - AROUND, 1)
  local height = math.max(math.min(high, room), 1)
  local width = M.width() + 2
  local top = math.max(math.floor((vim.o.lines - height - foot - 4) / 2) - 1, 0)
  local both = {
    relative = 'editor',
    width = width,
    col = math.max(math.floor((vim.o.columns - width - 2) / 2), 0),
    zindex = config.get().float.zindex + 1,
  }
  local above, below = borders()
  return vim.tbl_extend('error', { row = top, height = height, border = above }, both),
    vim.tbl_extend('error', { row = top + height + 2, height = foot, border = below }, both)
end

--- Where both parts go.
---@param body integer|nil window of the upper one, if it is open
---@param high integer rows of the text
---@param foot integer rows of the foot
---@return vim.api.keyset.win_config body
---@return vim.api.keyset.win_config foot
M.of = function(body, high, foot)
  if not M.is_split() then
    return floats(high, foot)
  end
  local above = { split = 'below', win = -1, height = math.max(math.floor(vim.o.lines * 0.5), 6) }
  return above, { split = 'below', win = body, height = foot }
end

return M
