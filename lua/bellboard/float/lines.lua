-- The lines of the float for the blocked sessions: two lines each, or one line for all.
local age = require('bellboard.age')
local cells = require('bellboard.text')
local config = require('bellboard.config')
local line = require('bellboard.line')
local sessions = require('bellboard.sessions')
local style = require('bellboard.highlight')
local unsaved = require('bellboard.unsaved')

local M = {}

--- The minimum width of the full float; on a narrower screen it is not shown.
M.LEAST_COLUMNS, M.LEAST_LINES = 30, 8

--- Keys that the border names, as far as they fit.
local FOOTERS = {
  ' :ClaudeSessions answer · next · snooze · dismiss ',
  ' :ClaudeSessions answer · next · dismiss ',
  ' :ClaudeSessions answer · next ',
  ' :ClaudeSessions answer ',
}
--- While nothing is blocked, and files with unsaved changes are listed.
local UNSAVED = { ' :ClaudeSessions diff · dismiss ', ' :ClaudeSessions diff ' }

---@class bellboard.Form a way to show them
---@field lines bellboard.Chunk[][]
---@field ids (string|nil)[] the session of each line, if it belongs to one
---@field changes? table<integer, bellboard.Unsaved> line → the file that it is about
---@field width integer without the border
---@field title? bellboard.Chunk[] of the border, if it has one
---@field footer? bellboard.Chunk[]

--- The sessions of the repositories in which a session is blocked: its name has to tell it apart
--- from them, whatever they do.
---@param calling bellboard.Session[]
---@return bellboard.Session[]
local function neighbors(calling)
  local is_near = {}
  for _, session in ipairs(calling) do
    is_near[session.words.repository] = true
  end
  return vim.tbl_filter(function(session)
    return is_near[session.words.repository] == true
  end, sessions.list())
end

--- The question of a session, below its line.
---@param session bellboard.Session
---@return string
local function asks(session)
  local old, text = age.outdated(session), session.words.text
  return old ~= '' and text ~= '' and ('%s: %s'):format(old, text) or old .. text
end

--- The columns, at most this wide; no wider than the lines need.
---@param calling bellboard.Session[]
---@param changes bellboard.Unsaved[]
---@param most integer
---@return bellboard.Layout
local function laid(calling, changes, most)
  local groups, among = { { mixed = true, sessions = calling } }, neighbors(calling)
  local function fitting(width, stretch)
    return line.layout(groups, width - 1, { among = among, word = true, stretch = stretch })
  end
  local width = math.max(cells.width(FOOTERS[2]), line.used(fitting(most)) + 1)
  for _, session in ipairs(calling) do
    width = math.max(width, cells.width(asks(session)) + 4)
  end
  for _, change in ipairs(changes) do
    width = math.max(width, cells.width(unsaved.words(change, most)) + 2)
  end
  return fitting(math.min(most, width), true)
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
---@param newest bellboard.Session|nil the one that was blocked last
---@param changes bellboard.Unsaved[]
---@return bellboard.Form
M.in_full = function(calling, newest, changes)
  local layout = laid(calling, changes, math.min(config.get().float.width, vim.o.columns - 4))
  local width = layout.width + 1
  local lines, ids, some, about = {}, {}, chosen(calling, newest), {}
  local function add(chunks, session)
    lines[#lines + 1], ids[#lines + 1] = chunks, session.session_id
  end
  for _, session in ipairs(some) do
    local mark = #calling > 1 and session == newest and '>' or nil
    add(line.chunks(session, layout, mark), session)
    local text, group = asks(session), session.link_since and 'BellboardDim' or 'BellboardDetail'
    if text ~= '' then
      add({ { '   ' .. cells.cut(text, width - 4), group } }, session)
    end
  end
  if #some < #calling then
    lines[#lines + 1] = { { ('   and %d more'):format(#calling - #some), 'BellboardDim' } }
  end
  for nth, change in ipairs(changes) do
    if nth <= config.get().float.max_sessions then
      lines[#lines + 1] = { { ' ' .. unsaved.words(change, width - 2), 'BellboardStatus' } }
      about[#lines] = change
    end
  end
  local title = (' %d need%s you '):format(#calling, #calling == 1 and 's' or '')
  title = #calling > 0 and title or ' unsaved changes '
  local keys = vim.iter(#calling > 0 and FOOTERS or UNSAVED):find(function(footer)
    return cells.width(footer) <= width
  end) or ''
  return {
    lines = lines,
    ids = ids,
    changes = about,
    width = width,
    title = { { title, 'BellboardFloatTitle' } },
    footer = { { keys, 'BellboardDim' } },
  }
end

--- One line about a file with unsaved changes.
---@param change bellboard.Unsaved
---@return bellboard.Form
M.of_change = function(change)
  local text = unsaved.words(change, math.min(config.get().float.width, vim.o.columns - 4))
  local lines = { { { (' %s '):format(text), 'BellboardStatus' } } }
  return { lines = lines, ids = {}, changes = { change }, width = cells.width(text) + 2 }
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
  local asked = cells.cut(': ' .. (words.text ~= '' and words.text or words.word), room)
  asked = room > 8 and asked or ''
  vim.list_extend(chunks, {
    { '· ', 'BellboardDim' },
    { name, 'BellboardProject' },
    { asked, 'BellboardDetail' },
    { waits, 'BellboardDim' },
  })
  local width = taken + 2 + cells.width(name) + cells.width(asked) + cells.width(waits)
  local ids = { #calling == 1 and first.session_id or nil }
  return { lines = { chunks }, ids = ids, width = width }
end

return M
