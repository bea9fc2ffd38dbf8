-- The board's buffer and window: rows.lua has its lines, action/keys.lua its keys.
local config = require('bellboard.config')
local rows = require('bellboard.view.rows')
local sessions = require('bellboard.state.sessions')

local M = {}

local api = vim.api

---@diagnostic disable-next-line: deprecated
local diff = vim.text and vim.text.diff or vim.diff
local namespace = api.nvim_create_namespace('bellboard')
---@type integer|nil
local buf
---@type bellboard.Line[]
local drawn = {}
---@type bellboard.Folds
local folds = { unfolded = {}, folded = {} }

---@param row integer
local function colour(row)
  local from, length = 0, #drawn[row].text
  for _, chunk in ipairs(drawn[row].chunks) do
    local to = math.min(from + #chunk[1], length)
    if chunk[2] and to > from then
      api.nvim_buf_set_extmark(buf, namespace, row - 1, from, { end_col = to, hl_group = chunk[2] })
    end
    from = to
  end
end

---@class bellboard.Spot a place on the board that moves with what stands there
---@field id? string
---@field repository? string
---@field below integer lines below the first one of it
---@field row integer where that was

---@param row integer
---@return bellboard.Spot
local function spot_of(row)
  local under = drawn[row] or {}
  local below = 0
  while under.id and not drawn[row - below].head do
    below = below + 1
  end
  return { id = under.id, repository = under.repository, below = below, row = row }
end

---@param spot bellboard.Spot
---@return integer
local function row_of(spot)
  for row, each in ipairs(drawn) do
    if
      spot.id and each.head and each.id == spot.id
      or spot.repository and each.repository == spot.repository
    then
      local below = 0
      while below < spot.below and (drawn[row + below + 1] or {}).id == spot.id do
        below = below + 1
      end
      return row + below
    end
  end
  return math.max(1, math.min(spot.row, #drawn))
end

---@param before bellboard.Line
---@param after bellboard.Line
local function same(before, after)
  return before == after
    or before.text == after.text and vim.deep_equal(before.chunks, after.chunks)
end

---@param lines bellboard.Line[]
---@param first integer
---@param last integer
---@return string[]
local function texts_of(lines, first, last)
  local texts = {}
  for row = first, last do
    texts[#texts + 1] = lines[row].text
  end
  return texts
end

--- Where two lists of lines differ: first line and count in the one, first and count in the other.
---@param old string[]
---@param new string[]
---@return integer[][]
local function hunks_of(old, new)
  if #old < 2 or #new < 2 then
    return { { 1, #old, 1, #new } }
  end
  local before, after = table.concat(old, '\n') .. '\n', table.concat(new, '\n') .. '\n'
  local hunks = diff(before, after, { result_type = 'indices' })
  for _, hunk in ipairs(hunks) do -- of no lines, it names the line before
    hunk[1] = hunk[2] > 0 and hunk[1] or hunk[1] + 1
    hunk[3] = hunk[4] > 0 and hunk[3] or hunk[3] + 1
  end
  return hunks
end

--- Write what differs and nothing else.
---@param lines bellboard.Line[]
---@return boolean written
local function write(lines)
  local before = drawn
  local first, last_old, last_new = 1, #before, #lines
  while first <= last_old and first <= last_new and same(before[first], lines[first]) do
    first = first + 1
  end
  while last_old >= first and last_new >= first and same(before[last_old], lines[last_new]) do
    last_old, last_new = last_old - 1, last_new - 1
  end
  drawn = lines
  if first > last_old and first > last_new then
    return false
  end
  local above = first - 1
  local new = texts_of(lines, first, last_new)
  local hunks = hunks_of(texts_of(before, first, last_old), new)
  vim.bo[buf].modifiable = true
  for place = #hunks, 1, -1 do -- from below, so that the numbers above stay right
    local old_first, old_count, new_first, new_count = unpack(hunks[place])
    local from = above + old_first - 1
    api.nvim_buf_clear_namespace(buf, namespace, from, from + old_count)
    local texts = vim.list_slice(new, new_first, new_first + new_count - 1)
    api.nvim_buf_set_lines(buf, from, #before == 0 and -1 or from + old_count, false, texts)
  end
  vim.bo[buf].modifiable = false
  local row, old = first, first
  hunks[#hunks + 1] = { 0, 0, last_new - above + 1, 0 }
  for _, hunk in ipairs(hunks) do
    for _ = row, above + hunk[3] - 1 do
      if not same(before[old], lines[row]) then -- the same text in another colour
        api.nvim_buf_clear_namespace(buf, namespace, row - 1, row)
        colour(row)
      end
      row, old = row + 1, old + 1
    end
    for _ = 1, hunk[4] do
      colour(row)
      row = row + 1
    end
    old = old + hunk[2]
  end
  return true
end

--- Bring it up to date; every cursor stays with what it is on.
M.update = function()
  local windows = buf and api.nvim_buf_is_valid(buf) and vim.fn.win_findbuf(buf) or {}
  if #windows == 0 then
    return
  end
  local spots = {}
  for _, win in ipairs(windows) do
    spots[win] = spot_of(api.nvim_win_get_cursor(win)[1])
  end
  if not write(rows.compose(math.max(api.nvim_win_get_width(windows[1]), 40), folds)) then
    return
  end
  for win, spot in pairs(spots) do
    local row, cursor = row_of(spot), api.nvim_win_get_cursor(win)
    if row ~= cursor[1] then
      api.nvim_win_set_cursor(win, { row, cursor[2] })
    end
  end
end

--- What the cursor is on: a session, or the name of a repository.
---@return bellboard.Session|nil session
---@return string|nil repository
M.under_cursor = function()
  local under = drawn[api.nvim_win_get_cursor(0)[1]] or {}
  return under.id and sessions.get(under.id), under.repository
end

--- Open or shut what the cursor is on.
M.fold = function()
  local session, repository = M.under_cursor()
  if session then
    local id = session.session_id
    folds.unfolded[id] = not folds.unfolded[id] or nil
  elseif repository then
    folds.folded[repository] = not folds.folded[repository] or nil
  end
  M.update()
end

--- Open or shut everything.
---@param open boolean
M.fold_all = function(open)
  folds = { unfolded = {}, folded = {} }
  for _, session in ipairs(sessions.list()) do
    if open then
      folds.unfolded[session.session_id] = true
    else
      folds.folded[session.repository or session.project or ''] = true
    end
  end
  M.update()
end

--- Put the cursor on the next session that needs you, or the previous one, round and round.
---@param direction integer
M.seek = function(direction)
  local row, count = api.nvim_win_get_cursor(0)[1], #drawn
  for step = 1, count do
    local at = (row - 1 + direction * step) % count + 1
    local session = drawn[at].head and sessions.get(drawn[at].id)
    if session and session.needs_you then
      api.nvim_win_set_cursor(0, { at, 0 })
      return
    end
  end
end

--- Leave the board for the window that one came from, so that it stays where it is.
M.leave = function()
  local previous = vim.fn.win_getid(vim.fn.winnr('#'))
  if previous ~= 0 and api.nvim_win_get_buf(previous) ~= buf then
    api.nvim_set_current_win(previous)
  end
end

---@return integer
local function create()
  buf = api.nvim_create_buf(false, true)
  drawn = {}
  api.nvim_buf_set_name(buf, 'bellboard://board')
  vim.bo[buf].filetype = 'bellboard'
  vim.bo[buf].modifiable = false
  vim.bo[buf].undolevels = -1
  require('bellboard.action.keys').attach(buf)
  return buf
end

---@return vim.api.keyset.win_config
local function layout()
  local options = config.get().board
  local function size(whole)
    return math.floor(options.size <= 1 and whole * options.size or options.size)
  end
  if options.layout == 'float' then
    local width, height = math.floor(vim.o.columns * 0.9), math.floor(vim.o.lines * 0.8)
    return {
      relative = 'editor',
      width = width,
      height = height,
      row = math.floor((vim.o.lines - height) / 2) - 1,
      col = math.floor((vim.o.columns - width) / 2),
      border = 'rounded',
      title = ' Agent sessions ',
    }
  elseif options.layout == 'vsplit' then
    return { split = 'right', win = -1, width = math.max(size(vim.o.columns), 40) }
  end
  return { split = 'below', win = -1, height = math.max(size(vim.o.lines), 6) }
end

--- Open the board, or go to it.
M.open = function()
  if not (buf and api.nvim_buf_is_valid(buf)) then
    create()
  end
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    if api.nvim_win_get_tabpage(win) == api.nvim_get_current_tabpage() then
      api.nvim_set_current_win(win)
      return
    end
  end
  if config.get().board.layout == 'tab' then
    vim.cmd('tab split')
    api.nvim_win_set_buf(0, buf)
  else
    api.nvim_open_win(buf, true, layout())
  end
  for name, value in pairs({
    wrap = false,
    number = false,
    relativenumber = false,
    signcolumn = 'no',
    foldcolumn = '0',
    list = false,
    spell = false,
    cursorline = true,
    fillchars = 'eob: ',
    winfixbuf = true,
  }) do
    api.nvim_set_option_value(name, value, { scope = 'local', win = 0 })
  end
  M.update()
  local group = api.nvim_create_augroup('bellboard.board', {})
  api.nvim_create_autocmd('User', {
    group = group,
    pattern = 'BellboardUpdate',
    callback = M.update,
  })
  api.nvim_create_autocmd({ 'WinResized', 'VimResized' }, {
    group = group,
    callback = vim.schedule_wrap(M.update),
  })
  for row, each in ipairs(drawn) do
    if each.head then
      api.nvim_win_set_cursor(0, { row, 0 })
      break
    end
  end
end

return M
