-- The lines of the float for the blocked sessions: two lines each, or one line for all.
local age = require('bellboard.age')
local cells = require('bellboard.text')
local columns = require('bellboard.line')
local config = require('bellboard.config')
local sessions = require('bellboard.sessions')
local style = require('bellboard.highlight')

local M = {}

--- The minimum width of the full float; on a narrower screen it is not shown.
M.LEAST_COLUMNS, M.LEAST_LINES = 30, 8

--- The cells of a title for which it becomes wider.
local TITLE = 20

---@class bellboard.Form a way to show them
---@field lines bellboard.Chunk[][]
---@field ids (string|nil)[] the session of each line, if it belongs to one
---@field width integer without the border
---@field title? bellboard.Chunk[] of the border, if it has one
---@field footer? bellboard.Chunk[]

--- What distinguishes each from the others of its repository, whatever these do.
---@param calling bellboard.Session[]
---@return table<bellboard.Session, string>
local function names_of(calling)
  local is_near = {}
  for _, session in ipairs(calling) do
    is_near[session.words.repository] = true
  end
  return columns.names(vim.tbl_filter(function(session)
    return is_near[session.words.repository] == true
  end, sessions.list()))
end

--- The width that the lines need.
---@param calling bellboard.Session[]
---@param names table<bellboard.Session, string>
---@return integer
local function wish(calling, names)
  local widest = M.LEAST_COLUMNS
  for _, session in ipairs(calling) do
    local words, own = session.words, names[session] or session.words.branch
    local wide = math.min(cells.width(own), math.max(cells.width(words.branch), TITLE))
    local head = cells.width(words.project) + wide + cells.width(words.word)
    head = head + (words.label ~= '' and math.min(14, cells.width(words.label) + 2) or 0)
    widest = math.max(widest, head + 17, cells.width(words.text) + 4)
  end
  return widest
end

--- A session's name and age, and what it asks.
---@param session bellboard.Session
---@param own string what distinguishes it
---@param width integer
---@param newest boolean
---@return bellboard.Chunk[][]
local function lines_of(session, own, width, newest)
  local words = session.words
  local right = ('  %s %s '):format(
    cells.cut(words.word, 12),
    cells.fit(age.of(session.since), 4, true)
  )
  local icon = ('%s%s '):format(newest and '>' or ' ', style.icon(session))
  local name = cells.cut(words.project, width - cells.width(right) - 4)
  local room = width - cells.width(icon) - cells.width(name) - cells.width(right)
  local label = room > 12 and words.label or ''
  label = cells.cut(label ~= '' and '  ' .. label or '', 14)
  room = room - cells.width(label)
  own = room > 6 and '  ' .. own or ''
  local old = age.outdated(session)
  local asks = old ~= '' and words.text ~= '' and ('%s: %s'):format(old, words.text)
    or old .. words.text
  local lines = {
    {
      { icon, style.group(session) },
      { name, 'BellboardProject' },
      { label, style.label_group(session) },
      { cells.fit(own, room), 'BellboardDim' },
      { right, 'BellboardDim' },
    },
    asks ~= '' and { { '   ' .. cells.cut(asks, width - 4), 'BellboardDetail' } } or nil,
  }
  return old ~= '' and vim.tbl_map(style.faded, lines) or lines
end

--- The sessions that there is room for, including the newest.
---@param calling bellboard.Session[]
---@param newest bellboard.Session
---@return bellboard.Session[]
local function chosen(calling, newest)
  local most = math.min(config.get().float.max_sessions, math.floor((vim.o.lines - 5) / 2))
  local some = vim.list_slice(calling, 1, most)
  if #some > 0 and not vim.tbl_contains(some, newest) then
    some[#some] = newest
  end
  return some
end

--- The full form, with a border.
---@param calling bellboard.Session[]
---@param newest bellboard.Session the one that was blocked last
---@return bellboard.Form
M.in_full = function(calling, newest)
  local options, names = config.get(), names_of(calling)
  local width = math.min(wish(calling, names), options.float.width, vim.o.columns - 4)
  local lines, ids, some = {}, {}, chosen(calling, newest)
  for _, session in ipairs(some) do
    local marked = #calling > 1 and session == newest
    local own = names[session] or session.words.branch
    for _, chunks in ipairs(lines_of(session, own, width, marked)) do
      lines[#lines + 1], ids[#lines + 1] = chunks, session.session_id
    end
  end
  if #some < #calling then
    lines[#lines + 1] = { { ('   and %d more'):format(#calling - #some), 'BellboardDim' } }
  end
  local title = (' %d need%s you '):format(#calling, #calling == 1 and 's' or '')
  local keys = ' :ClaudeSessions next · snooze '
  keys = cells.width(keys) <= width and keys or ' :ClaudeSessions next '
  return {
    lines = lines,
    ids = ids,
    width = width,
    title = { { title, 'BellboardFloatTitle' } },
    footer = { { keys, 'BellboardDim' } },
  }
end

--- One line: the counts and the first session, `!4 ?1 · api: rm -rf build 5m`.
---@param calling bellboard.Session[]
---@return bellboard.Form
M.in_short = function(calling)
  local first, chunks = calling[1], { { ' ' }, unpack(style.tally(calling)) }
  local taken, words, waits = cells.sum(chunks), first.words, (' %s '):format(age.of(first.since))
  local most = math.min(config.get().float.width, vim.o.columns - 2) - taken - 2
  local name = cells.cut(words.project, math.min(16, most - cells.width(waits)))
  local room = most - cells.width(name) - cells.width(waits)
  local asks = cells.cut(': ' .. (words.text ~= '' and words.text or words.word), room)
  asks = room > 8 and asks or ''
  vim.list_extend(chunks, {
    { '· ', 'BellboardDim' },
    { name, 'BellboardProject' },
    { asks, 'BellboardDetail' },
    { waits, 'BellboardDim' },
  })
  local width = taken + 2 + cells.width(name) + cells.width(asks) + cells.width(waits)
  local ids = { #calling == 1 and first.session_id or nil }
  return { lines = { chunks }, ids = ids, width = width }
end

return M
