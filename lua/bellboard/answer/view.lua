-- The windows of a request: what is asked, which scrolls, and below it what can be answered. They
-- are a float in two parts, or two splits.
local canvas = require('bellboard.canvas')
local foot = require('bellboard.answer.foot')
local layout = require('bellboard.answer.layout')
local syntax = require('bellboard.answer.syntax')
local text = require('bellboard.answer.text')
local window = require('bellboard.window')

local M = {}

local api = vim.api

--- Behind the floats of other plugins, which have 50 unless they choose.
local BEHIND = 40

---@class bellboard.Sheet
---@field body integer window
---@field foot integer window
---@field bufs integer[] what both show
---@field rows bellboard.Row[]
---@field title bellboard.Chunk[]
---@field is_seen boolean whether the last row was on the screen
---@field more integer rows below the screen
---@field is_behind? boolean a picker of another plugin is shown
---@field changed fun() called when they are to be drawn again
---@field restore fun(resumes: boolean)

---@class bellboard.Sheet.Content
---@field title bellboard.Chunk[]
---@field rows bellboard.Row[]
---@field foot bellboard.Row[]
---@field again? boolean the same request, so the cursor stays

---@type bellboard.Sheet|nil
local sheet

---@return boolean
M.is_open = function()
  return sheet ~= nil and api.nvim_win_is_valid(sheet.body) and api.nvim_win_is_valid(sheet.foot)
end

---@param win integer
---@return boolean
M.is_of = function(win)
  return sheet ~= nil and (win == sheet.body or win == sheet.foot)
end

---@return integer buf
M.buffer = function()
  return api.nvim_win_get_buf(assert(sheet).body)
end

--- Show in the border, or the bar, what the window is about and how much is below.
local function label()
  local more = sheet.more > 0
    and ('%d more line%s'):format(sheet.more, sheet.more > 1 and 's' or '')
  local key = more and foot.key_of('page')
  more = more and (' %s%s '):format(more, key and ': ' .. key or '') or ''
  if layout.is_split() then
    local title = table.concat(vim.tbl_map(function(chunk)
      return ('%%#%s#%s%%*'):format(chunk[2] or 'WinBar', (chunk[1]:gsub('%%', '%%%%')))
    end, sheet.title))
    vim.wo[sheet.body].winbar = title .. '%=%#BellboardHidden#' .. more
    return
  end
  local footer = more ~= '' and { { more, 'BellboardHidden' } } or ''
  local opts = { title = sheet.title, footer = footer, footer_pos = more ~= '' and 'right' or nil }
  api.nvim_win_set_config(sheet.body, opts)
end

--- What is below the request.
---@return integer buf
M.foot = function()
  return api.nvim_win_get_buf(assert(sheet).foot)
end

--- Note which rows are on the screen.
---@return boolean changed
local function look()
  local last = #sheet.rows
  local bottom = vim.fn.line('w$', sheet.body)
  local more, was = math.max(last - bottom, 0), sheet.is_seen
  sheet.is_seen = was or more == 0
  local changed = more ~= sheet.more
  sheet.more = more
  if changed then
    label()
  end
  return changed or was ~= sheet.is_seen
end

--- Whether the last row was on the screen.
---@return boolean
M.is_seen = function()
  look()
  return sheet.is_seen
end

---@param win integer
local function dress(win)
  window.bare(win, { foldcolumn = '1', scrolloff = 0, winfixheight = true })
  if not layout.is_split() then
    vim.wo[win].winhighlight = table.concat({
      'NormalFloat:BellboardFloat',
      'FloatBorder:BellboardFloatBorder',
      'FoldColumn:BellboardFloat',
      'CursorLineFold:BellboardFloat',
    }, ',')
  end
end

---@return integer
local function empty()
  local buf = canvas.buffer({})
  vim.bo[buf].undolevels = -1
  return buf
end

--- Close both, with what `:split` or CTRL-W T has made of them: its keys would answer what is shown
--- next. Go back to where the user was.
M.close = function()
  local closed = sheet
  sheet = nil
  if not closed then
    return
  end
  api.nvim_create_augroup('bellboard.request', {})
  local is_here = vim.list_contains(closed.bufs, api.nvim_get_current_buf())
  for _, buf in ipairs(closed.bufs) do
    for _, win in ipairs(vim.fn.win_findbuf(buf)) do
      window.close(win)
    end
  end
  if is_here then
    closed.restore(true)
  end
end

local function come_back()
  if M.is_open() and sheet.is_behind then
    sheet.is_behind = false
    sheet.changed()
  end
end

--- Open both, without text.
---@param on { close: fun(), changed: fun() } called on events of the windows
M.open = function(on)
  layout.settle(nil)
  local made = {
    rows = {},
    title = {},
    is_seen = false,
    more = 0,
    changed = on.changed,
    restore = window.origin(layout.is_split()),
  }
  made.body = window.open(empty(), true, (layout.of(nil, 1, 1)))
  layout.settle(made.body)
  local _, below = layout.of(made.body, 1, 1)
  made.foot = window.open(empty(), false, below)
  layout.settle(made.foot)
  made.bufs = { api.nvim_win_get_buf(made.foot), api.nvim_win_get_buf(made.body) }
  sheet = made
  canvas.name(M.buffer(), 'bellboard://request')
  canvas.name(M.foot(), 'bellboard://keys')
  dress(sheet.body)
  dress(sheet.foot)
  local group = api.nvim_create_augroup('bellboard.request', {})
  api.nvim_create_autocmd('WinClosed', {
    group = group,
    callback = function(event)
      if M.is_of(tonumber(event.match) or -1) then
        vim.schedule(on.close)
      end
    end,
  })
  api.nvim_create_autocmd({ 'WinScrolled', 'CursorMoved' }, {
    group = group,
    callback = function()
      if M.is_open() and look() then
        on.changed()
      end
    end,
  })
  api.nvim_create_autocmd('WinEnter', {
    group = group,
    callback = function()
      if M.is_of(api.nvim_get_current_win()) then
        come_back()
      end
    end,
  })
  api.nvim_create_autocmd('VimResized', {
    group = group,
    callback = vim.schedule_wrap(function()
      on.changed()
    end),
  })
end

---@param win integer
---@param where vim.api.keyset.win_config
local function place(win, where)
  if layout.is_split() then
    api.nvim_win_set_height(win, where.height)
  else
    where.focusable = win == sheet.body
    where.zindex = sheet.is_behind and BEHIND or where.zindex
    api.nvim_win_set_config(win, where)
  end
end

--- Show a request, or how it has changed.
---@param content bellboard.Sheet.Content
M.draw = function(content)
  sheet.rows, sheet.title = content.rows, content.title
  local cursor = content.again and api.nvim_win_get_cursor(sheet.body) or { 1, 0 }
  text.write(M.buffer(), content.rows)
  text.write(M.foot(), content.foot)
  local body, below = layout.of(sheet.body, #content.rows, #content.foot)
  place(sheet.foot, below)
  place(sheet.body, body)
  pcall(api.nvim_win_set_cursor, sheet.body, cursor)
  if not content.again then
    sheet.is_seen = false
    syntax.paint(M.buffer(), content.rows)
    vim.wo[sheet.body].cursorline = vim.iter(content.rows):any(function(row)
      return row.spot ~= nil
    end)
    api.nvim_win_call(sheet.body, function()
      vim.fn.winrestview({ topline = 1 })
    end)
  end
  look()
  label()
end

--- What is under the cursor.
---@return bellboard.Spot|nil
M.spot = function()
  local row = sheet.rows[api.nvim_win_get_cursor(sheet.body)[1]]
  return row and row.spot
end

--- Put the cursor on the first row of a question, one of its options or a field; show all of it.
---@param spot bellboard.Spot
M.seek = function(spot)
  local first, last
  for nth, row in ipairs(sheet.rows) do
    local its = row.spot
    local is_its = its and its.question == spot.question and its.field == spot.field
    if is_its and (not spot.option or its.option == spot.option) then
      first, last = first or nth, nth
    end
  end
  for _, nth in ipairs(first and { last, first } or {}) do
    api.nvim_win_set_cursor(sheet.body, { nth, 0 })
    api.nvim_win_call(sheet.body, vim.fn.winsaveview) -- scrolls as far as needed
  end
end

--- Show the next page; the cursor stays on it.
M.page = function()
  api.nvim_win_call(sheet.body, function()
    local height = api.nvim_win_get_height(0)
    vim.cmd.normal({ math.max(height - 1, 1) .. vim.keycode('<C-d>'), bang = true })
    vim.wo.scroll = 0
  end)
end

--- Let a window of another plugin cover it, until it is entered again.
M.yield = function()
  sheet.is_behind = true
  sheet.changed()
end

--- Enter it again, after another window.
M.enter = function()
  if M.is_open() then
    come_back()
    window.enter(sheet.body)
  end
end

return M
