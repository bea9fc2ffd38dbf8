-- The rows of a picker, and what a search finds.
local age = require('bellboard.age')
local canvas = require('bellboard.canvas')
local cells = require('bellboard.text')
local columns = require('bellboard.line')
local place = require('bellboard.place')
local sessions = require('bellboard.sessions')
local style = require('bellboard.highlight')
local tmux = require('bellboard.jump.tmux')

local M = {}

local api = vim.api

local namespace = api.nvim_create_namespace('bellboard')

---@class bellboard.PickLayout widths of the columns
---@field name integer
---@field place integer
---@field asks integer
---@field title integer
---@field spare integer what no column takes
---@field names table<bellboard.Session, string> what distinguishes each

---@class bellboard.PickTexts
---@field name string project and branch
---@field title string
---@field asks string what it asks or does

---@type table<bellboard.Session, bellboard.PickTexts> a changed session is a new table
local kept = setmetatable({}, { __mode = 'k' })

---@param session bellboard.Session
---@return bellboard.PickTexts
local function texts_of(session)
  if not kept[session] then
    local words = session.words
    kept[session] = {
      name = vim.trim(words.project .. ' ' .. words.branch),
      title = words.title,
      asks = words.text ~= '' and ('%s: %s'):format(words.word, words.text) or words.word,
    }
  end
  return kept[session]
end

local FIXED = 2 + 5 + 2 -- icon, age and the blanks after it
local PLACE = 20 -- maximum width of where it runs
local LEAST = 12 -- for the question; if there is less, the place is dropped

--- What it asks or does, after what may be old or quiet about it.
---@param session bellboard.Session
---@return string
local function asks_of(session)
  local old = age.outdated(session)
  local still = old ~= '' and old or age.quiet(session)
  local asks = texts_of(session).asks
  return still ~= '' and still .. '  ' .. asks or asks
end

--- The name of a session: its project, and what distinguishes it, or its branch if it has changed
--- since.
---@param session bellboard.Session
---@param names table<bellboard.Session, string>
---@return string
local function named(session, names)
  return vim.trim(session.words.project .. ' ' .. (names[session] or session.words.branch))
end

--- Columns no wider than their contents. Age and place come first, so that they are not cut off at
--- the right; the question gets the remaining width, and the title the rest.
---@param all bellboard.Session[]
---@param width integer
---@param wide boolean with a column of titles, if there is room
---@return bellboard.PickLayout
local function laid(all, width, wide)
  local names = columns.names(all, wide)
  local most = { name = 0, place = 0, asks = 0, title = 0 }
  for _, session in ipairs(all) do
    local texts = texts_of(session)
    for field, before in pairs(most) do
      local text = field == 'place' and place.of(session)
        or field == 'asks' and asks_of(session)
        or field == 'name' and named(session, names)
        or texts[field]
      most[field] = math.max(before, cells.width(text))
    end
  end
  local part = wide and 0.25 or 0.4
  local name = math.min(most.name, 28, math.max(12, math.floor(width * part)))
  local at, room = math.min(most.place, PLACE), width - FIXED - name - 2
  if at > 0 and room - at - 2 >= LEAST then
    room = room - at - 2
  else
    at, room = 0, math.max(8, room)
  end
  local asks = math.min(most.asks, room)
  local title = math.min(most.title, room - asks - 2)
  title = title < math.min(most.title, 8) and 0 or title
  return {
    names = names,
    name = name,
    place = at,
    asks = asks,
    title = title,
    spare = math.max(0, room - asks - (title > 0 and title + 2 or 0)),
  }
end

--- The same; without titles, the name of a session is what distinguishes it.
---@param all bellboard.Session[]
---@param width integer
---@return bellboard.PickLayout
M.layout = function(all, width)
  local layout = laid(all, width, true)
  return layout.title > 0 and layout or laid(all, width, false)
end

--- A line of the picker, in highlighted chunks. A name or a title that would be cut gets what its
--- line leaves blank: where it runs, if that is not known, or right of the question.
---@param session bellboard.Session
---@param layout bellboard.PickLayout
---@return bellboard.Chunk[]
M.columns = function(session, layout)
  local texts, name = texts_of(session), named(session, layout.names)
  local old, asks = age.outdated(session), asks_of(session)
  local there = layout.place > 0 and place.of(session) or ''
  local at = layout.place > 0 and layout.place + 2 or 0
  local room = layout.asks + layout.spare
  local spare = math.max(0, room - cells.width(asks))
  local name_room = layout.name
  local over = math.max(0, cells.width(name) - name_room)
  local from_place = there == '' and math.min(over, at) or 0
  local from_asks = math.min(over - from_place, spare)
  name_room, at = name_room + from_place + from_asks, at - from_place
  spare, room = spare - from_asks, room - from_asks
  local title_room = layout.title
  if title_room > 0 then
    local more = math.min(spare, math.max(0, cells.width(texts.title) - title_room))
    title_room, room = title_room + more, room - more
  end
  local asks_room = math.min(room, layout.asks)
  local chunks = {
    { cells.fit(style.icon(session), 2), style.group(session) },
    { cells.fit(age.of(session.since), 4, true) .. '  ', 'BellboardDim' },
    { cells.fit(name, name_room) .. '  ', 'BellboardProject' },
    { at > 0 and cells.fit(cells.cut(there, layout.place), at) or '', 'BellboardDim' },
    {
      title_room > 0 and cells.fit(asks, asks_room) or cells.cut(asks, room),
      'BellboardDetail',
    },
    { title_room > 0 and '  ' .. cells.cut(texts.title, title_room) or '', 'BellboardDim' },
  }
  return old ~= '' and style.faded(chunks) or chunks
end

--- Put lines and their colours into a buffer.
---@param buf integer
---@param lines bellboard.Chunk[][]
M.fill = function(buf, lines)
  api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  local texts = vim.tbl_map(canvas.text, lines)
  api.nvim_buf_set_lines(buf, 0, -1, false, texts)
  for row, chunks in ipairs(lines) do
    canvas.colour(buf, row, texts[row], chunks)
  end
end

--- The text that a search matches, uncut: also the status and the kind of its question.
---@param session bellboard.Session
---@return string
M.words = function(session)
  local texts, words = texts_of(session), session.words
  return table.concat({
    texts.name,
    texts.title,
    texts.asks,
    place.of(session),
    session.status,
    session.kind or '',
    words.repository,
    words.agent,
    session.machine or '',
    words.label,
    age.outdated(session),
    age.quiet(session),
    table.concat(session.markers or {}, ' '),
  }, ' ')
end

--- The sessions to choose from. Also updates the names of their panes for the next time.
---@return bellboard.Session[]|nil nil if there are none: then the board shows what to do
M.sessions = function()
  local all = sessions.list()
  if #all == 0 then
    require('bellboard.board').open() -- it shows what to do next
    return nil
  end
  tmux.learn(all, require('bellboard.redraw').all, true)
  return vim.list_extend({}, all)
end

return M
