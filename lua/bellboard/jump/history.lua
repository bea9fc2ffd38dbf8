-- What windows showed before jumps put terminals into them, to bring it back.
local M = {}

local api = vim.api

---@class bellboard.Place
---@field win integer
---@field buf integer
---@field view? vim.fn.winsaveview.ret none of a terminal that scrolls
---@field alternate integer the alternate file, or -1

---@type table<integer, { place: bellboard.Place, by: integer }> window → what it showed, and shows
local replaced = {}

--- What the current window shows.
---@return bellboard.Place
M.here = function()
  local is_last = api.nvim_get_mode().mode == 't' or vim.fn.line('.') == vim.fn.line('$')
  local scrolls = vim.bo.buftype == 'terminal' and is_last
  return {
    win = api.nvim_get_current_win(),
    buf = api.nvim_get_current_buf(),
    view = not scrolls and vim.fn.winsaveview() or nil,
    alternate = vim.fn.bufnr('#'),
  }
end

--- The first of several jumps starts.
M.start = function()
  replaced = {}
end

--- A jump has put another buffer there.
---@param place bellboard.Place
---@param by integer
M.replace = function(place, by)
  local known = replaced[place.win]
  replaced[place.win] =
    { place = known and known.by == place.buf and known.place or place, by = by }
end

--- Restore the cursor and the alternate file of a window that shows its buffer again.
---@param place bellboard.Place
M.restore = function(place)
  api.nvim_win_call(place.win, function()
    if place.view then
      vim.fn.winrestview(place.view)
    end
    if api.nvim_buf_is_valid(place.alternate) then
      vim.fn.setreg('#', place.alternate)
    end
  end)
end

--- Show in each window what it showed before, unless the user has shown something else there since.
---@param keeps fun(win: integer): boolean whether a window must go on showing its buffer
M.bring_back = function(keeps)
  for win, one in pairs(replaced) do
    local place = one.place
    local is_there = api.nvim_win_is_valid(win) and api.nvim_win_get_buf(win) == one.by
    if is_there and api.nvim_buf_is_valid(place.buf) and not keeps(win) then
      if pcall(api.nvim_win_set_buf, win, place.buf) then
        M.restore(place)
      end
    end
  end
  replaced = {}
end

return M
