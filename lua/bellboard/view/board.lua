-- The board's buffer and window: rows.lua has its lines, action/keys.lua its keys.
local config = require('bellboard.config')
local rows = require('bellboard.view.rows')
local sessions = require('bellboard.state.sessions')

local M = {}

local api = vim.api

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

---@class bellboard.Spot a position on the board, by what is there
---@field id? string
---@field repository? string
---@field below integer lines below its first line
---@field row integer

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

--- Replace the rows `first` to `last` of the buffer with `drawn[first]` to `drawn[last_new]`.
---@param first integer
---@param last integer
---@param last_new integer
local function put(first, last, last_new)
  local texts = {}
  for row = first, last_new do
    texts[#texts + 1] = drawn[row].text
  end
  api.nvim_buf_clear_namespace(buf, namespace, first - 1, last)
  api.nvim_buf_set_lines(buf, first - 1, last, false, texts)
  for row = first, last_new do
    colour(row)
  end
end

--- Write the lines that differ; if their number has changed, also those in between.
---@param lines bellboard.Line[]
---@return boolean written
local function write(lines)
  local before, first, last, last_new = drawn, 1, #drawn, #lines
  while first <= last and first <= last_new and same(before[first], lines[first]) do
    first = first + 1
  end
  while last >= first and last_new >= first and same(before[last], lines[last_new]) do
    last, last_new = last - 1, last_new - 1
  end
  drawn = lines
  if first > last and first > last_new then
    return false
  end
  vim.bo[buf].modifiable = true
  if last ~= last_new then
    put(first, #before == 0 and -1 or last, last_new) -- a new buffer has a line of its own
  else
    for row = first, last do
      if not same(before[row], lines[row]) then
        put(row, row, row)
      end
    end
  end
  vim.bo[buf].modifiable = false
  return true
end

--- Update the board. Each cursor stays on its session.
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

--- The session or repository under the cursor.
---@return bellboard.Session|nil session
---@return string|nil repository
M.under_cursor = function()
  local under = drawn[api.nvim_win_get_cursor(0)[1]] or {}
  return under.id and sessions.get(under.id), under.repository
end

--- Fold or unfold the session or repository under the cursor.
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

--- Fold or unfold everything.
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

--- Move the cursor to the next or previous session that needs you. Wraps around.
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

--- Go back to the previous window, so that a jump does not replace the board.
M.leave = function()
  local previous = vim.fn.win_getid(vim.fn.winnr('#'))
  if previous ~= 0 and api.nvim_win_get_buf(previous) ~= buf then
    api.nvim_set_current_win(previous)
  end
end

--- Close the board's window; the last window shows another buffer instead.
M.close = function()
  local win = api.nvim_get_current_win()
  if pcall(api.nvim_win_close, win, false) then
    return
  end
  vim.wo[win].winfixbuf = false
  if not pcall(vim.cmd.buffer, '#') then
    vim.cmd.enew()
  end
end

---@return integer
local function create()
  buf = api.nvim_create_buf(false, true)
  drawn = {}
  api.nvim_buf_set_name(buf, 'bellboard://board')
  vim.bo[buf].modifiable = false
  vim.bo[buf].undolevels = -1
  require('bellboard.action.keys').attach(buf)
  vim.bo[buf].filetype = 'bellboard' -- last: a user's FileType autocommand may map keys of its own
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

--- Open the board, or go to its window.
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
