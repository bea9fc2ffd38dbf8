-- The buffer of the board. A cursor stays on its session while lines change.
local canvas = require('bellboard.canvas')
local config = require('bellboard.config')
local rows = require('bellboard.board.lines')
local sessions = require('bellboard.sessions')

local M = {}

local api = vim.api

local LEAST = 40 -- columns; in a narrower window, lines are cut

---@class bellboard.Position of a cursor, by what is there
---@field row integer
---@field top integer first row that the window shows
---@field id? string session
---@field below integer rows below the session's first
---@field key? string section
---@field at? integer place in the section; nil: on its heading

---@type integer|nil
local buf
---@type bellboard.Line[]
local drawn = {}
---@type bellboard.Section[]
local listed = {}
---@type bellboard.BoardChoice|nil kept while this Neovim runs
local choice
---@type { group: string, sort: string }|nil the options when they were last taken over
local taken

---@return bellboard.BoardChoice
M.choice = function()
  local options = config.get().board
  choice = choice or { filter = '', folded = {}, unfolded = {}, marked = {} }
  if not taken or taken.group ~= options.group or taken.sort ~= options.sort then
    choice.group, choice.sort = options.group, options.sort
    taken = { group = options.group, sort = options.sort }
  end
  return choice
end

---@return integer|nil
M.buffer = function()
  return buf and api.nvim_buf_is_loaded(buf) and buf or nil -- `:noautocmd bwipe` sends no event
end

--- The windows that show the board.
---@return integer[]
M.windows = function()
  return buf and vim.fn.win_findbuf(buf) or {}
end

--- The line under a window's cursor.
---@param win integer
---@return bellboard.Line|table
local function under(win)
  return drawn[api.nvim_win_get_cursor(win)[1]] or {}
end

---@param win integer
---@return bellboard.Position
local function position(win)
  local row, below, line = api.nvim_win_get_cursor(win)[1], 0, under(win)
  while line.id and not drawn[row - below].head do
    below = below + 1
  end
  return {
    row = row,
    top = vim.fn.line('w0', win),
    id = line.id,
    below = below,
    key = line.section and line.section.key,
    at = line.at,
  }
end

--- The first row of a session.
---@param id string
---@return integer|nil
local function row_of(id)
  for row, line in ipairs(drawn) do
    if line.head and line.id == id then
      return row
    end
  end
end

--- The row for a cursor: that of its session or heading, else the same row as before.
---@param spot bellboard.Position
---@return integer
local function find(spot)
  local row = spot.id and row_of(spot.id)
  if row then
    local below = 0
    while below < spot.below and (drawn[row + below + 1] or {}).id == spot.id do
      below = below + 1
    end
    return row + below
  end
  for nth, line in ipairs(spot.key and not spot.id and drawn or {}) do
    if line.section and line.section.key == spot.key and not line.id then
      return nth
    end
  end
  return math.max(1, math.min(spot.row, #drawn))
end

--- Put a window's cursor back: in the current window on the same line of the screen, if there are
--- enough rows above it; in others the window stays where it is, and the cursor follows as far as
--- the window shows.
---@param win integer
---@param spot bellboard.Position
---@param current boolean
local function restore(win, spot, current)
  local row = find(spot)
  local top = current and math.max(1, row - (spot.row - spot.top)) or math.min(spot.top, #drawn)
  if not current and (row < top or row >= top + api.nvim_win_get_height(win)) then
    row = math.max(1, math.min(spot.row, #drawn))
  end
  local cursor = api.nvim_win_get_cursor(win)
  if row ~= cursor[1] or top ~= vim.fn.line('w0', win) then
    api.nvim_win_call(win, function()
      vim.fn.winrestview({ lnum = row, col = cursor[2], topline = top })
    end)
  end
end

---@param before bellboard.Line|nil
---@param after bellboard.Line|nil
local function same(before, after)
  return before == after
    or before ~= nil
      and after ~= nil
      and before.text == after.text
      and vim.deep_equal(before.chunks, after.chunks)
end

--- Write the lines between the first and the last that differ.
---@param lines bellboard.Line[]
local function write(lines)
  local first, last, old = 1, #lines, #drawn
  while first <= last and same(drawn[first], lines[first]) do
    first = first + 1
  end
  while last >= first and old >= first and same(drawn[old], lines[last]) do
    last, old = last - 1, old - 1
  end
  if last >= first or old >= first then
    old = #drawn == 0 and 1 or old -- a new buffer has a line
    canvas.put(buf, first, old, vim.list_slice(lines, first, last))
  end
  drawn = lines
end

--- Remove marks of sessions that are not listed: keys would act on them unseen.
local function unmark_unlisted()
  local still = {}
  for _, session in ipairs(next(M.choice().marked) and M.marked() or {}) do
    still[session.session_id] = true
  end
  M.choice().marked = still
end

--- Update the board. The row under the cursor stays where it is while the cursor is in the board.
---@param free? boolean the row may move: the user chose another order
M.update = function(free)
  local all = M.windows()
  if #all == 0 then
    return
  end
  local here = api.nvim_get_current_buf() == buf and api.nvim_get_current_win() or nil
  local spots = {}
  for _, win in ipairs(all) do
    spots[win] = position(win)
  end
  local stays = here and free ~= true
  local window = vim.fn.getwininfo(here or all[1])[1]
  local width = math.max(window.width - window.textoff, LEAST)
  local composed = rows.compose(width, M.choice(), stays and spots[here].id and spots[here] or nil)
  write(composed.lines)
  listed = composed.sections
  for win, spot in pairs(spots) do
    restore(win, spot, stays == true and win == here)
  end
  unmark_unlisted()
end

--- Change what the board shows, or how.
---@param change table<string, any> fields of bellboard.BoardChoice; vim.NIL: none
M.choose = function(change)
  for field, value in pairs(change) do
    M.choice()[field] = value ~= vim.NIL and value or nil
  end
  M.update(true)
end

--- The session under the cursor, or the section whose heading it is on.
---@return bellboard.Session|nil session
---@return bellboard.Section|nil section
M.under_cursor = function()
  local line = M.windows()[1] and under(0) or {}
  return line.id and sessions.get(line.id), not line.id and line.section or nil
end

--- The sessions in some rows; of a heading, all of its section.
---@param first integer
---@param last integer
---@return bellboard.Session[]
M.among = function(first, last)
  local found, seen = {}, {}
  for row = first, last do
    local line = drawn[row] or {}
    local members = line.id and { sessions.get(line.id) } or (line.section or {}).sessions or {}
    for _, session in ipairs(members) do
      if not seen[session.session_id] then
        seen[session.session_id] = true
        found[#found + 1] = session
      end
    end
  end
  return found
end

--- The marked sessions, as listed.
---@return bellboard.Session[]
M.marked = function()
  local found = {}
  for _, section in ipairs(listed) do
    for _, session in ipairs(section.sessions) do
      if M.choice().marked[session.session_id] then
        found[#found + 1] = session
      end
    end
  end
  return found
end

--- Move the cursor to the line of the next or previous session.
---@param direction integer
M.step = function(direction)
  local row = api.nvim_win_get_cursor(0)[1]
  repeat
    row = row + direction
  until not drawn[row] or drawn[row].head
  if drawn[row] then
    api.nvim_win_set_cursor(0, { row, 0 })
  end
end

--- Mark sessions, or unmark them if all are marked; a single one moves the cursor on.
---@param list bellboard.Session[]
M.mark = function(list)
  local marked, on = M.choice().marked, false
  for _, session in ipairs(list) do
    on = on or not marked[session.session_id]
  end
  for _, session in ipairs(list) do
    marked[session.session_id] = on or nil
  end
  M.update()
  if #list == 1 then
    M.step(1)
  end
end

--- Fold or unfold the session or section under the cursor.
---@return boolean done
M.fold = function()
  local session, section = M.under_cursor()
  local folds, key
  if session then
    folds, key = M.choice().unfolded, session.session_id
  elseif section then
    folds, key = M.choice().folded, section.key
  else
    return false
  end
  folds[key] = not folds[key] or nil
  M.update()
  return true
end

--- Fold or unfold everything.
---@param open boolean
M.fold_all = function(open)
  local folded, unfolded = {}, {}
  for _, section in ipairs(listed) do
    folded[section.key] = not open and section.title ~= nil or nil
    for _, session in ipairs(open and section.sessions or {}) do
      unfolded[session.session_id] = true
    end
  end
  M.choose({ folded = folded, unfolded = unfolded })
end

--- Move the cursor to the next or previous session that needs you, unfolding its section. Wraps
--- around.
---@param direction integer
---@return boolean found
M.seek = function(direction)
  local all, at, line = {}, 0, under(0)
  for _, section in ipairs(listed) do
    if section == line.section and not line.at then
      at = #all + (direction < 0 and 1 or 0) -- on the heading
    end
    for nth, session in ipairs(section.sessions) do
      all[#all + 1] = { session = session, section = section }
      at = section == line.section and nth == line.at and #all or at
    end
  end
  for step = 1, #all do
    local found = all[(at - 1 + direction * step) % #all + 1]
    if found.session.needs_you then
      if M.choice().folded[found.section.key] then
        M.choice().folded[found.section.key] = nil
        M.update()
      end
      api.nvim_win_set_cursor(0, { row_of(found.session.session_id) or 1, 0 })
      return true
    end
  end
  return false
end

--- Move the cursor from a session that was answered to the next one that needs you.
---@param id string
M.go_on = function(id)
  for _, win in ipairs(M.windows()) do
    api.nvim_win_call(win, function()
      if under(0).id == id then
        M.seek(1)
      end
    end)
  end
end

--- Put the cursor on the first session.
M.first = function()
  for row, line in ipairs(drawn) do
    if line.head then
      return api.nvim_win_set_cursor(0, { row, 0 })
    end
  end
end

--- Draw into this buffer from now on.
---@param into integer empty
M.attach = function(into)
  buf, drawn = into, {}
  api.nvim_create_autocmd('BufUnload', {
    buffer = into,
    callback = function()
      if buf == into then
        buf, drawn, listed = nil, {}, {}
        rows.forget()
      end
    end,
  })
end

return M
