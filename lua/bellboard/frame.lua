-- What stands in the edges of a float: its title above, its keys below.
local cells = require('bellboard.text')

local M = {}

---@class bellboard.Hint a key that the frame names
---@field [1] string
---@field [2] string what it does, in words
---@field is_dim? boolean it does not count now
---@field rank? integer those with the highest give way first

--- The character of an edge of a window.
---@param win integer
---@param side 'top'|'bottom'
---@return string
M.edge = function(win, side)
  local border = vim.api.nvim_win_get_config(win).border or {}
  local char = border[side == 'top' and 2 or 6]
  char = type(char) == 'table' and char[1] or char or ''
  return char == '' and ' ' or char
end

--- Chunks on the left and on the right of a line, with its edge between them.
---@param left bellboard.Chunk[]
---@param right bellboard.Chunk[]
---@param width integer
---@param edge string
---@return bellboard.Chunk[]
M.spread = function(left, right, width, edge)
  local fill = edge:rep(width - cells.sum(left) - cells.sum(right))
  local chunks = vim.list_extend({}, left)
  chunks[#chunks + 1] = { fill, 'BellboardFloatBorder' }
  return vim.list_extend(chunks, right)
end

--- Keys, as many as there is room for.
---@param all bellboard.Hint[]
---@param room integer
---@return bellboard.Chunk[]
M.keys = function(all, room)
  local hints, used = { unpack(all) }, 1
  for _, hint in ipairs(hints) do
    used = used + cells.width(hint[1] .. hint[2]) + 4
  end
  while used - 2 > room and #hints > 0 do
    local last = 1
    for nth, hint in ipairs(hints) do
      last = (hint.rank or 0) >= (hints[last].rank or 0) and nth or last
    end
    local gone = table.remove(hints, last)
    used = used - cells.width(gone[1] .. gone[2]) - 4
  end
  local chunks = {}
  for nth, hint in ipairs(hints) do
    chunks[#chunks + 1] = { nth == 1 and ' ' or ' · ', 'BellboardDim' }
    chunks[#chunks + 1] = { hint[1], hint.is_dim and 'BellboardDim' or 'BellboardKey' }
    chunks[#chunks + 1] = { ' ' .. hint[2], 'BellboardDim' }
  end
  chunks[#chunks + 1] = #hints > 0 and { ' ', 'BellboardDim' } or nil
  return chunks
end

return M
