-- The float that lists the blocked sessions.
local age = require('bellboard.view.age')
local cells = require('bellboard.view.cells')
local config = require('bellboard.config')
local sessions = require('bellboard.state.sessions')
local style = require('bellboard.view.style')

local M = {}

local api = vim.api

--- On a smaller screen, the float is not shown.
local LEAST_COLUMNS, LEAST_LINES = 30, 8

local namespace = api.nvim_create_namespace('bellboard')
---@type integer|nil
local win
---@type integer|nil
local buf
---@type { width: integer, height: integer, title: string }|nil
local shape
---@type string[]
local shown = {}

--- The width that the lines need.
---@param calling bellboard.Session[]
---@return integer
local function wish(calling)
  local widest = LEAST_COLUMNS
  for _, session in ipairs(calling) do
    local words = session.words
    local head = cells.width(words.project) + cells.width(words.branch) + cells.width(words.word)
    head = head + (words.label ~= '' and math.min(14, cells.width(words.label) + 2) or 0)
    widest = math.max(widest, head + 17, cells.width(words.text) + 4)
  end
  return widest
end

--- Two lines per session: its name and age, and what it asks.
---@param calling bellboard.Session[]
---@param width integer
---@return bellboard.Chunk[][]
local function lines_of(calling, width)
  local lines = {}
  local most = math.min(config.get().float.sessions, math.floor((vim.o.lines - 5) / 2))
  for place, session in ipairs(calling) do
    if place > most then
      lines[#lines + 1] = { { ('   and %d more'):format(#calling - most), 'BellboardDim' } }
      break
    end
    local words = session.words
    local right = ('  %s %s '):format(
      cells.cut(words.word, 12),
      cells.fit(age.of(session.since), 4, true)
    )
    local icon = (' %s '):format(style.icon(session))
    local name = cells.cut(words.project, width - cells.width(right) - 4)
    local room = width - cells.width(icon) - cells.width(name) - cells.width(right)
    local label = room > 12 and words.label or ''
    label = cells.cut(label ~= '' and '  ' .. label or '', 14)
    room = room - cells.width(label)
    local branch = room > 6 and '  ' .. words.branch or ''
    lines[#lines + 1] = {
      { icon, style.group(session) },
      { name, 'BellboardProject' },
      { label, style.label_group(session) },
      { cells.fit(branch, room), 'BellboardDim' },
      { right, 'BellboardDim' },
    }
    if words.text ~= '' then
      lines[#lines + 1] = { { '   ' .. cells.cut(words.text, width - 4), 'BellboardDetail' } }
    end
  end
  return lines
end

---@param lines bellboard.Chunk[][]
local function draw(lines)
  local texts = {}
  for row, chunks in ipairs(lines) do
    local text = ''
    for _, chunk in ipairs(chunks) do
      text = text .. chunk[1]
    end
    texts[row] = text
  end
  if vim.deep_equal(texts, shown) then
    return
  end
  shown = texts
  api.nvim_buf_set_lines(buf, 0, -1, false, texts)
  api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  for row, chunks in ipairs(lines) do
    local from = 0
    for _, chunk in ipairs(chunks) do
      local to = from + #chunk[1]
      local opts = { end_col = to, hl_group = chunk[2] }
      api.nvim_buf_set_extmark(buf, namespace, row - 1, from, opts)
      from = to
    end
  end
end

--- A corner where the float does not cover the cursor, north-east first.
---@param width integer including the border
---@param height integer
---@return { anchor: string, row: integer, col: integer }|nil
local function place(width, height)
  local columns, bottom = vim.o.columns, vim.o.lines - vim.o.cmdheight
  bottom = bottom - (vim.o.laststatus > 0 and 1 or 0)
  local tabline = vim.o.showtabline
  local top = (tabline == 2 or tabline == 1 and #api.nvim_list_tabpages() > 1) and 1 or 0
  local position = api.nvim_win_get_cursor(0)
  local cursor = vim.fn.screenpos(0, position[1], position[2] + 1)
  local row, col = cursor.row - 1, cursor.col - 1
  for _, corner in ipairs({ { 'N', 'E' }, { 'S', 'E' }, { 'S', 'W' }, { 'N', 'W' } }) do
    local first = corner[1] == 'N' and top or bottom - height
    local left = corner[2] == 'E' and columns - width or 0
    local rows = row >= first and row < first + height
    local cols = col >= left and col < left + width
    if not (rows and cols) and first >= top then
      return {
        anchor = corner[1] .. corner[2],
        row = corner[1] == 'N' and top or bottom,
        col = corner[2] == 'E' and columns or 0,
      }
    end
  end
end

local function close()
  if win and api.nvim_win_is_valid(win) then
    api.nvim_win_close(win, true)
  end
  win, shape, shown = nil, nil, {}
  api.nvim_create_augroup('bellboard.float.open', {}) -- stop following the cursor
end

---@return string|nil border unless 'winborder' is set
local function border()
  if vim.fn.exists('+winborder') == 1 and vim.o.winborder ~= '' then
    return nil
  end
  return 'rounded'
end

local function settle()
  if not (shape and win and api.nvim_win_is_valid(win)) then
    return
  end
  local spot = place(shape.width + 2, shape.height + 2)
  if not spot then
    return close()
  end
  local now = api.nvim_win_get_config(win)
  if now.anchor ~= spot.anchor or now.row ~= spot.row or now.col ~= spot.col then
    api.nvim_win_set_config(win, vim.tbl_extend('force', spot, { relative = 'editor' }))
  end
end

local function follow()
  local group = api.nvim_create_augroup('bellboard.float.open', {})
  local moves = { 'CursorMoved', 'CursorMovedI', 'WinEnter', 'WinScrolled', 'TermEnter' }
  api.nvim_create_autocmd(moves, { group = group, callback = settle })
end

--- Show the blocked sessions; close the float if there are none.
M.update = function()
  local options = config.get().float
  local calling = options.enabled and sessions.calling() or {}
  if #calling == 0 or vim.o.columns < LEAST_COLUMNS or vim.o.lines < LEAST_LINES then
    return close()
  end
  local width = math.min(wish(calling), options.width, vim.o.columns - 4)
  local lines = lines_of(calling, width)
  local title = (' %d need%s you '):format(#calling, #calling == 1 and 's' or '')
  local spot = place(width + 2, #lines + 2)
  if not spot then
    return close()
  end
  if not (buf and api.nvim_buf_is_valid(buf)) then
    buf = api.nvim_create_buf(false, true)
    vim.bo[buf].bufhidden = 'hide'
    shown = {}
  end
  draw(lines)
  local wanted = { width = width, height = #lines, title = title }
  local here = win and api.nvim_win_is_valid(win) and api.nvim_win_get_tabpage(win)
  if here == api.nvim_get_current_tabpage() and vim.deep_equal(wanted, shape) then
    return settle()
  end
  local keys = (' :%s next · snooze '):format(config.command())
  keys = cells.width(keys) <= width and keys or (' :%s next '):format(config.command())
  local edge = border()
  local framed = edge or vim.o.winborder ~= 'none'
  local layout = vim.tbl_extend('error', spot, {
    relative = 'editor',
    width = width,
    height = #lines,
    style = 'minimal',
    focusable = false,
    zindex = options.zindex,
    border = edge,
    title = framed and { { title, 'BellboardBlocked' } } or nil,
    footer = framed and { { keys, 'BellboardDim' } } or nil,
    footer_pos = framed and 'right' or nil,
  })
  shape = wanted
  if here == api.nvim_get_current_tabpage() then
    api.nvim_win_set_config(win, layout)
  else
    if here then
      api.nvim_win_close(win, true)
    end
    win = api.nvim_open_win(buf, false, vim.tbl_extend('error', layout, { noautocmd = true }))
    vim.wo[win].winhighlight =
      'NormalFloat:BellboardFloat,FloatBorder:BellboardFloatBorder,FloatTitle:BellboardFloatTitle'
    vim.wo[win].wrap = false
    follow()
  end
end

--- Update on changes of sessions, screen size and tab page.
M.attach = function()
  local group = api.nvim_create_augroup('bellboard.float', {})
  api.nvim_create_autocmd('User', {
    group = group,
    pattern = 'BellboardUpdate',
    callback = M.update,
  })
  api.nvim_create_autocmd({ 'VimResized', 'TabEnter' }, {
    group = group,
    callback = function()
      vim.schedule(M.update)
    end,
  })
end

return M
