-- The columns of a session's line on the board, and their widths.
local age = require('bellboard.view.age')
local cells = require('bellboard.view.cells')
local place = require('bellboard.view.place')
local sessions = require('bellboard.state.sessions')
local style = require('bellboard.view.style')

local M = {}

--- Narrower windows have no column for titles, or for places.
local TITLES, PLACES = 90, 70
local WHERE = 20 -- most cells of a column of places, and of the width a fifth
local WORD = 9 -- minimum width of what a session does, in one word, beside a column of titles

---@class bellboard.Columns widths in cells; 0: no such column
---@field width integer of the window
---@field name integer
---@field title integer
---@field place integer
---@field places table<bellboard.Session, string>
---@field key string the same for the same widths

---@class bellboard.Texts
---@field repository string after its machine, if that is another one
---@field project string the short name of the repository, after its machine
---@field machine string `dev:` of a session on another machine
---@field branch string what distinguishes it from others of its repository
---@field title string
---@field doing string

---@class bellboard.Measured texts of a session, and their widths
---@field wide boolean
---@field texts bellboard.Texts
---@field widths table<string, integer>

---@type table<bellboard.Session, bellboard.Measured> a changed session is a new table
local kept = setmetatable({}, { __mode = 'k' })

---@param session bellboard.Session
---@param wide boolean whether there is a column for titles
---@return bellboard.Measured
local function measured(session, wide)
  local known = kept[session]
  if not known or known.wide ~= wide then
    local words = session.words
    local doing = wide and cells.fit(words.word, math.max(WORD, cells.width(words.word)))
      or words.word
    local machine = words.machine ~= '' and words.machine .. ':' or ''
    local texts = {
      repository = wide and machine .. words.repository or words.project,
      project = words.project,
      machine = machine,
      -- Without titles, the name that the user gave stands for the branch.
      branch = not wide and session.name and words.title or words.branch,
      title = wide and words.title or '',
      doing = words.text ~= '' and doing .. ' ' .. words.text or words.word,
    }
    known = { wide = wide, texts = texts, widths = vim.tbl_map(cells.width, texts) }
    kept[session] = known
  end
  return known
end

--- The widths for some sections. If they do not fit, the title is cut first, then what a session
--- does, then the name: its repository first, its branch last.
---@param some bellboard.Section[]
---@param width integer
---@return bellboard.Columns
M.measure = function(some, width)
  local most, where, places = { name = 0, title = 0, doing = 0 }, 0, {}
  local machine = 0
  for _, section in ipairs(some) do
    for _, session in ipairs(section.sessions) do
      local widths = measured(session, width >= TITLES).widths
      local name = widths.branch + (section.mixed and widths.repository + 1 or widths.machine)
      most.name, machine = math.max(most.name, name), math.max(machine, widths.machine)
      most.title = math.max(most.title, widths.title)
      most.doing = math.max(most.doing, widths.doing)
      if width >= PLACES then
        places[session] = place.of(session)
        where = math.max(where, cells.width(places[session]))
      end
    end
  end
  where = math.min(where, WHERE, math.floor(width / 5))
  local room = width - where - 15 -- icon, age, and the spaces between columns
  local over = most.name + most.title + most.doing - room
  local function shrink(name, least)
    local less = math.max(0, math.min(over, most[name] - least))
    most[name], over = most[name] - less, over - less
  end
  shrink('title', math.max(12, math.floor(room / 5)))
  shrink('doing', math.floor(room * 0.45))
  shrink('title', 12)
  shrink('name', 12 + machine)
  return {
    width = width,
    name = most.name,
    title = most.title,
    place = where,
    places = places,
    key = ('%d %d %d %d'):format(width, most.name, most.title, where),
  }
end

--- The name of a session, in its column.
---@param texts bellboard.Texts
---@param room integer
---@param mixed boolean with its repository
---@return bellboard.Chunk[]
local function name(texts, room, mixed)
  local repository = texts.machine
  if mixed and texts.repository ~= '' then
    local least = math.min(8 + cells.width(texts.machine), cells.width(texts.repository))
    local most = math.max(least, room - cells.width(texts.branch) - 1)
    local fits = cells.width(texts.repository) <= most
    repository = cells.cut(fits and texts.repository or texts.project, most) .. ' '
  end
  local branch = cells.fit(texts.branch, math.max(0, room - cells.width(repository)))
  return {
    { repository, 'BellboardRepository' },
    { room > 0 and branch .. '  ' or '', 'BellboardProject' },
  }
end

--- What else the line shows, in the order of importance, until a part of the width is used.
---@param session bellboard.Session
---@param room integer
---@return bellboard.Chunk[]
local function notes(session, room)
  local words, chunks = session.words, {}
  local function add(text, group)
    local fits = text ~= '' and cells.width(text) + 1 <= room
    if fits then
      chunks[#chunks + 1] = { ' ' .. text, group }
      room = room - cells.width(text) - 1
    end
  end
  add(age.outdated(session), 'BellboardDim')
  add(age.quiet(session), 'BellboardDim')
  add(words.label ~= '' and ('[%s]'):format(words.label) or '', style.label_group(session))
  add(sessions.mixed() and words.agent or '', 'BellboardDim')
  add(words.progress, 'BellboardDim')
  local snoozed = age.left(session.snoozed_until)
  add(snoozed ~= '' and 'snoozed ' .. snoozed or '', 'BellboardDim')
  add(words.notes, 'BellboardDim')
  add(words.pull_request, 'BellboardDim')
  return chunks
end

--- The first line of a session.
---@param session bellboard.Session
---@param columns bellboard.Columns
---@param mixed boolean it is listed among those of other repositories
---@param marked boolean
---@return bellboard.Chunk[]
M.chunks = function(session, columns, mixed, marked)
  local width = columns.width
  local texts = measured(session, width >= TITLES).texts
  local icon = style.icon(session)
  local head = {
    { marked and '>' or ' ', marked and 'BellboardMarked' or nil },
    { icon .. (' '):rep(math.max(1, 2 - cells.width(icon))), style.group(session) },
  }
  vim.list_extend(head, name(texts, columns.name, mixed))
  local title = columns.title > 0 and cells.fit(texts.title, columns.title) .. '  ' or ''
  head[#head + 1] = { title, 'BellboardDim' }
  local at = ' ' .. cells.fit(age.of(session.since), 4, true)
  if columns.place > 0 then
    at = at .. '  ' .. cells.fit(columns.places[session], columns.place)
  end
  local room = width - 1 - cells.width(at) - cells.sum(head)
  local doing = measured(session, width >= TITLES).widths.doing
  local tail = notes(session, math.max(math.floor(room / 2), room - doing))
  room = math.max(room - cells.sum(tail), 8)
  head[#head + 1] = { cells.fit(texts.doing, room), 'BellboardDetail' }
  vim.list_extend(head, tail)
  head[#head + 1] = { at, 'BellboardDim' }
  return session.link_since and style.faded(head) or head
end

return M
