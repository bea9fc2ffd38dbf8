-- Finds a corner of the screen where a float covers nothing in use: no other float, no window that
-- shows only one thing, such as the board or a change that is asked about, no terminal whose
-- question is on the screen, not the cursor.
local terminals = require('bellboard.terminals')

local M = {}

local api = vim.api

--- Floats of this width are scrollbars and the like, which may be covered.
local THIN = 2

---@class bellboard.Area 0-based; `bottom` and `right` are the first ones outside
---@field top integer
---@field left integer
---@field bottom integer
---@field right integer

---@class bellboard.Corner
---@field anchor 'NE'|'SE'
---@field row integer
---@field col integer

--- Rows above and below the cursor that a single line leaves free: it lasts, and somebody writes.
local NEAR = 3

---@return bellboard.Area the screen without tabline, last statusline and command line
local function screen()
  local tabline = vim.o.showtabline
  local top = (tabline == 2 or tabline == 1 and #api.nvim_list_tabpages() > 1) and 1 or 0
  local bottom = vim.o.lines - vim.o.cmdheight - (vim.o.laststatus > 0 and 1 or 0)
  return { top = top, left = 0, bottom = bottom, right = vim.o.columns }
end

---@param win integer
---@param layout vim.api.keyset.win_config
---@return bellboard.Area
local function area_of(win, layout)
  local edge = layout.border and layout.border ~= 'none' and 2 or 0
  local width = api.nvim_win_get_width(win) + edge
  local height = api.nvim_win_get_height(win) + edge
  local row, col = unpack(api.nvim_win_get_position(win))
  if layout.relative == 'editor' then -- its position ignores the anchor until it is drawn
    row = layout.row - (layout.anchor:find('S') and height or 0)
    col = layout.col - (layout.anchor:find('E') and width or 0)
  end
  return { top = row, left = col, bottom = row + height, right = col + width }
end

---@return bellboard.Area
local function cursor()
  local position = api.nvim_win_get_cursor(0)
  local at = vim.fn.screenpos(0, position[1], position[2] + 1)
  return { top = at.row - 1, left = at.col - 1, bottom = at.row, right = at.col }
end

--- The rows of the current window near the cursor.
---@return bellboard.Area
local function near_cursor()
  local row, left = cursor().top, api.nvim_win_get_position(0)[2]
  local right = left + api.nvim_win_get_width(0)
  return { top = row - NEAR, left = left, bottom = row + NEAR + 1, right = right }
end

--- Everything in use on this tab page, but for the cursor.
---@param own integer|nil the float to find a corner for
---@return bellboard.Area[]
local function in_use(own)
  local areas = {}
  for _, win in ipairs(api.nvim_tabpage_list_wins(0)) do
    local layout = api.nvim_win_get_config(win)
    local buf = api.nvim_win_get_buf(win)
    local area = area_of(win, layout)
    local used
    if layout.relative ~= '' then
      local thin = area.right - area.left <= THIN
      used = win ~= own and not layout.hide and not thin
    elseif vim.bo[buf].buftype == 'terminal' then
      local session = terminals.session(buf)
      used = session and session.status == 'blocked'
    else
      used = vim.wo[win].winfixbuf
        or vim.w[win].bellboard_diff
        or api.nvim_buf_get_name(buf):find('^bellboard://')
    end
    areas[#areas + 1] = used and area or nil
  end
  return areas
end

---@param areas bellboard.Area[]
---@param own bellboard.Area
---@return boolean
local function is_free(areas, own)
  for _, area in ipairs(areas) do
    local rows = area.top < own.bottom and own.top < area.bottom
    if rows and area.left < own.right and own.left < area.right then
      return false
    end
  end
  return true
end

---@class bellboard.Size including the border
---@field width integer
---@field height integer

--- The first of several sizes that fits into a free corner at the right, and that corner: the
--- present one if it can stay, else the upper one first.
---@param sizes bellboard.Size[]
---@param own integer|nil the float
---@param present bellboard.Corner|nil
---@return integer|nil
---@return bellboard.Corner|nil
M.find = function(sizes, own, present)
  local areas, whole = in_use(own), screen()
  local order = present and present.anchor == 'SE' and { 'SE', 'NE' } or { 'NE', 'SE' }
  for which, size in ipairs(sizes) do
    local about = size.height == 1 and near_cursor() or cursor()
    for _, anchor in ipairs(order) do
      local top = anchor == 'NE' and whole.top or whole.bottom - size.height
      local left = whole.right - size.width
      local area = { top = top, left = left, bottom = top + size.height, right = left + size.width }
      local inside = top >= whole.top and left >= 0 and area.bottom <= whole.bottom
      if inside and is_free(areas, area) and is_free({ about }, area) then
        local row = anchor == 'NE' and whole.top or whole.bottom
        return which, { anchor = anchor, row = row, col = whole.right }
      end
    end
  end
end

return M
