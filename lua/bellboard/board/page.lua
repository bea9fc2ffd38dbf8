-- What the board's buffer shows: rows.lua composes its lines, spots.lua keeps the cursors in place.
local canvas = require('bellboard.canvas')
local config = require('bellboard.config')
local rows = require('bellboard.board.lines')
local sessions = require('bellboard.sessions')
local spots = require('bellboard.board.cursor')

local M = {}

local api = vim.api

local LEAST = 40 -- columns; in a narrower window, lines are cut

---@type integer|nil
local buf
---@type bellboard.Line[]
local drawn = {}
---@type bellboard.Section[]
local listed = {}
local padded = 0
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
  return buf and api.nvim_buf_is_loaded(buf) and buf or nil -- :noautocmd hides its end from us
end

--- The windows that show the board.
---@return integer[]
M.windows = function()
  return buf and vim.fn.win_findbuf(buf) or {}
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
  local here, known = api.nvim_get_current_buf() == buf and api.nvim_get_current_win() or nil, {}
  for _, win in ipairs(all) do
    known[win] = spots.of(win, drawn, padded)
  end
  local still = here and free ~= true
  local held = still and spots.held(known[here]) or nil
  local window = vim.fn.getwininfo(here or all[1])[1]
  local width = math.max(window.width - window.textoff, LEAST)
  local composed = rows.compose(width, M.choice(), held)
  local lines = composed.lines
  local pad = still and spots.missing(known[here], lines) or 0
  rows.pad(lines, pad)
  canvas.write(buf, drawn, lines)
  drawn, listed, padded = lines, composed.sections, pad
  for win, spot in pairs(known) do
    spots.restore(win, spot, lines, still == true and win == here)
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
  local under = M.windows()[1] and drawn[api.nvim_win_get_cursor(0)[1]] or {}
  return under.id and sessions.get(under.id), not under.id and under.section or nil
end

--- The sessions in some rows; of a heading, all of its section.
---@param first integer
---@param last integer
---@return bellboard.Session[]
M.among = function(first, last)
  local found, seen = {}, {}
  for row = first, last do
    local under = drawn[row] or {}
    local members = under.id and { sessions.get(under.id) } or (under.section or {}).sessions or {}
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
  local row = api.nvim_win_get_cursor(0)[1]
  repeat
    row = row + 1
  until not drawn[row] or drawn[row].head
  if #list == 1 and drawn[row] then
    api.nvim_win_set_cursor(0, { row, 0 })
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
  local all, at = {}, 0
  local under = drawn[api.nvim_win_get_cursor(0)[1]] or {}
  for _, section in ipairs(listed) do
    if section == under.section and not under.at then
      at = #all + (direction < 0 and 1 or 0) -- on the heading
    end
    for nth, session in ipairs(section.sessions) do
      all[#all + 1] = { session = session, section = section }
      at = section == under.section and nth == under.at and #all or at
    end
  end
  for step = 1, #all do
    local found = all[(at - 1 + direction * step) % #all + 1]
    if found.session.needs_you then
      if M.choice().folded[found.section.key] then
        M.choice().folded[found.section.key] = nil
        M.update()
      end
      api.nvim_win_set_cursor(0, { spots.row_of(found.session.session_id, drawn) or 1, 0 })
      return true
    end
  end
  return false
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
  buf, drawn, padded = into, {}, 0
  api.nvim_create_autocmd('BufUnload', {
    buffer = into,
    callback = function()
      if buf == into then
        buf, drawn, listed, padded = nil, {}, {}, 0
        rows.forget()
      end
    end,
  })
end

return M
