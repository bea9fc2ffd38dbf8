-- Positions on the board by what is there, so that what is under a cursor stays there.
local M = {}

local api = vim.api

local FIRST = 3 -- row below the board's own heading

---@class bellboard.Position
---@field row integer
---@field top integer first row that the window shows
---@field padded integer empty rows that were put above the first section
---@field id? string session
---@field below integer rows below the session's first
---@field key? string section
---@field at? integer place in the section; nil: on its heading

--- What is under a window's cursor.
---@param win integer
---@param lines bellboard.Line[]
---@param padded integer
---@return bellboard.Position
M.of = function(win, lines, padded)
  local row, below = api.nvim_win_get_cursor(win)[1], 0
  local under = lines[row] or {}
  while under.id and not lines[row - below].head do
    below = below + 1
  end
  return {
    row = row,
    top = vim.fn.line('w0', win),
    padded = padded,
    id = under.id,
    below = below,
    key = under.section and under.section.key,
    at = under.at,
  }
end

---@param spot bellboard.Position
---@return bellboard.Held|nil
M.held = function(spot)
  return spot.id and { id = spot.id, key = spot.key, at = spot.at } or nil
end

--- The first row of a session.
---@param id string
---@param lines bellboard.Line[]
---@return integer|nil
M.row_of = function(id, lines)
  for row, line in ipairs(lines) do
    if line.head and line.id == id then
      return row
    end
  end
end

---@param spot bellboard.Position
---@param lines bellboard.Line[]
---@return integer
local function find(spot, lines)
  local row = spot.id and M.row_of(spot.id, lines)
  if row then
    local below = 0
    while below < spot.below and (lines[row + below + 1] or {}).id == spot.id do
      below = below + 1
    end
    return row + below
  end
  for nth, line in ipairs(spot.key and not spot.id and lines or {}) do
    if line.section and line.section.key == spot.key and not line.id then
      return nth
    end
  end
  local same = spot.row < FIRST and spot.row or math.max(FIRST, spot.row - spot.padded)
  return math.max(1, math.min(same, #lines))
end

--- How many rows are missing above, for the cursor to stay on its line of the screen.
---@param spot bellboard.Position
---@param lines bellboard.Line[] without padding
---@return integer
M.missing = function(spot, lines)
  if spot.row < FIRST or #lines < FIRST then
    return 0
  end
  return math.max(0, 1 - (find(spot, lines) - (spot.row - spot.top)))
end

--- Put a window's cursor back: in the current window with its line of the screen; in others the
--- window stays where it is, and the cursor follows as far as the window shows.
---@param win integer
---@param spot bellboard.Position
---@param lines bellboard.Line[]
---@param current boolean
M.restore = function(win, spot, lines, current)
  local row = find(spot, lines)
  local top = current and math.max(1, row - (spot.row - spot.top)) or math.min(spot.top, #lines)
  if not current and (row < top or row >= top + api.nvim_win_get_height(win)) then
    row = math.max(1, math.min(spot.row, #lines))
  end
  local cursor = api.nvim_win_get_cursor(win)
  if row ~= cursor[1] or top ~= vim.fn.line('w0', win) then
    api.nvim_win_call(win, function()
      vim.fn.winrestview({ lnum = row, col = cursor[2], topline = top })
    end)
  end
end

return M
