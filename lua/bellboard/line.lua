-- The columns of a session's line on the board, and their widths.
local age = require('bellboard.age')
local cells = require('bellboard.text')
local place = require('bellboard.place')
local sessions = require('bellboard.sessions')
local style = require('bellboard.highlight')

local M = {}

--- Narrower windows have no column for titles, or for places.
local TITLES, PLACES = 90, 70
local WHERE = 20 -- most cells of a column of places, and of the width a fifth
local MUCH = 8 -- blank cells in a column that are for a text that would be cut
local MOVED = 12 -- a line whose texts start elsewhere is as bad as so many cells that are cut
local WORD = 9 -- minimum width of what a session does, in one word, beside a column of titles

---@class bellboard.Columns widths in cells; 0: no such column
---@field width integer of the window
---@field name integer
---@field title integer
---@field place integer
---@field places table<bellboard.Session, string>
---@field names table<bellboard.Session, string> what distinguishes it from others of its repository
---@field titles table<bellboard.Session, string> for the column of titles, unless it is the name
---@field key string the same for the same widths

---@class bellboard.Texts
---@field repository string after its machine, if that is another one
---@field project string the short name of the repository, after its machine
---@field machine string `dev:` of a session on another machine
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
      doing = words.text ~= '' and doing .. ' ' .. words.text or words.word,
    }
    known = { wide = wide, texts = texts, widths = vim.tbl_map(cells.width, texts) }
    kept[session] = known
  end
  return known
end

--- Count the sessions in each repository, and those with the same text in it.
---@param some bellboard.Section[]
---@param text fun(session: bellboard.Session): string
---@return fun(session: bellboard.Session): integer alike
---@return fun(session: bellboard.Session): integer all
local function counted(some, text)
  local counts, all, key = {}, {}, {}
  for _, section in ipairs(some) do
    for _, session in ipairs(section.sessions) do
      local repository = session.words.machine .. '\0' .. session.words.repository
      local own = repository .. '\0' .. text(session)
      all[repository], counts[own] = (all[repository] or 0) + 1, (counts[own] or 0) + 1
      key[session] = { repository, own }
    end
  end
  return function(session)
    return counts[key[session][2]]
  end, function(session)
    return all[key[session][1]]
  end
end

--- The start of the id of a session, or its process if it has none.
---@param session bellboard.Session
---@return string
local function brief(session)
  local id = cells.safe(session.session_id:match('[^/]*$'))
  return id:match('^process%-(%d+)%-') or id:sub(1, 4)
end

--- What distinguishes each session from others of its repository that are listed: its branch, or
--- its title if others have the same branch; its agent or the start of its id if nothing else does.
---@param some bellboard.Section[]
---@param wide boolean whether there is a column for titles
---@param places? table<bellboard.Session, string> beside them, as is the agent if there are several
---@return table<bellboard.Session, string> names
---@return table<bellboard.Session, string> titles
local function names_of(some, wide, places)
  local names, titles = {}, {}
  local alike, all = counted(some, function(session)
    return session.words.branch
  end)
  for _, section in ipairs(some) do
    for _, session in ipairs(section.sessions) do
      local words, name = session.words, session.words.branch
      -- Without titles, the name that the user gave stands for the branch.
      local is_titled = not wide and (session.name or alike(session) > 1)
      local is_needless = wide and places and alike(session) == all(session) and all(session) > 1
      local title = wide and words.title or ''
      if words.title ~= '' and (is_titled or is_needless) then
        name, title = words.title, ''
      end
      names[session], titles[session] = name, title
    end
  end
  local function text(session)
    local at = places and places[session] or ''
    return table.concat({ names[session], titles[session], at }, '\0')
  end
  alike = counted(some, text)
  local akin = counted(some, function(session)
    return text(session) .. '\0' .. session.words.agent
  end)
  local own = {}
  for session in pairs(names) do
    local agent = not places and akin(session) < alike(session) and session.words.agent or ''
    own[session] = vim.trim(agent .. ' ' .. (akin(session) > 1 and brief(session) or ''))
  end
  for session, called in pairs(own) do
    names[session] = vim.trim(called .. ' ' .. names[session])
  end
  return names, titles
end

--- The same for a list without agents, and with a column of titles or without.
---@param all bellboard.Session[]
---@param wide? boolean
---@return table<bellboard.Session, string>
M.names = function(all, wide)
  local list = { key = '', mixed = true, rank = 0, sessions = all }
  return (names_of({ list }, wide == true))
end

--- The width of a column that cuts least, as far as its lines do not help themselves (`share`), and
--- below which most texts start below each other; of several, the widest.
---@param texts integer[] widths of what is in the column
---@param rests integer[] widths of what follows it
---@param room integer for both
---@param part number of the room, at most
---@param weight integer how much worse it is to cut the text than what follows it
---@return integer
local function best(texts, rests, room, part, weight)
  local most = math.min(vim.iter(texts):fold(0, math.max), math.max(math.floor(room * part), 0))
  local width, least = most, math.huge
  for tried = most, math.min(most, 8), -1 do
    local cost = 0
    for nth = 1, #texts do
      local blank = tried - texts[nth]
      local over = tried + rests[nth] - room
      if blank < 0 then
        cost = cost + MOVED
        local cut = -blank < over - blank and -blank or over - blank
        cost = cut > 0 and cost + weight * cut or cost
      end
      if over > 0 and blank < MUCH then
        cost = cost + over
      elseif over > 0 then
        cost = cost + MOVED + (over > blank and over - blank or 0)
      end
      if cost >= least then
        break
      end
    end
    if cost < least then
      width, least = tried, cost
    end
  end
  return width
end

--- The width of the name of a session, whole.
---@param session bellboard.Session
---@param columns bellboard.Columns
---@param mixed boolean
---@return integer
local function name_width(session, columns, mixed)
  local widths = measured(session, columns.width >= TITLES).widths
  local before = mixed and widths.repository + 1 or widths.machine
  return before + cells.width(columns.names[session])
end

--- The widths for some sections.
---@param some bellboard.Section[]
---@param width integer
---@return bellboard.Columns
M.measure = function(some, width)
  local wide = width >= TITLES
  ---@type bellboard.Columns
  local columns = { width = width, name = 0, title = 0, place = 0, places = {} }
  local where = 0
  for _, section in ipairs(width >= PLACES and some or {}) do
    for _, session in ipairs(section.sessions) do
      columns.places[session] = place.of(session)
      where = math.max(where, cells.width(columns.places[session]))
    end
  end
  columns.names, columns.titles = names_of(some, wide, columns.places)
  columns.place = math.min(where, WHERE, math.floor(width / 5))
  local names, titles, doings, rests = {}, {}, {}, {}
  for _, section in ipairs(some) do
    for _, session in ipairs(section.sessions) do
      local widths = measured(session, wide).widths
      names[#names + 1] = name_width(session, columns, section.mixed)
      titles[#titles + 1] = cells.width(columns.titles[session])
      doings[#doings + 1] = widths.doing
      rests[#rests + 1] = math.min(titles[#titles], 20) + widths.doing
    end
  end
  local room = width - columns.place - 15 -- icon, age, and the spaces between columns
  columns.name = best(names, rests, room, wide and 0.35 or 0.55, 6)
  room = room - columns.name
  columns.title = best(titles, doings, room, 0.6, 3)
  columns.key = ('%d %d %d %d'):format(width, columns.name, columns.title, columns.place)
  return columns
end

--- The name of a session, in its column.
---@param texts bellboard.Texts
---@param called string what distinguishes it
---@param room integer
---@param mixed boolean with its repository
---@return bellboard.Chunk[]
local function name(texts, called, room, mixed)
  local repository = texts.machine
  if mixed and texts.repository ~= '' then
    local least = math.min(8 + cells.width(texts.machine), cells.width(texts.repository))
    local most = math.max(least, room - cells.width(called) - 1)
    local fits = cells.width(texts.repository) <= most
    repository = cells.cut(fits and texts.repository or texts.project, most) .. ' '
  end
  local rest = cells.fit(called, math.max(0, room - cells.width(repository)))
  return {
    { repository, 'BellboardRepository' },
    { room > 0 and rest .. '  ' or '', 'BellboardProject' },
  }
end

local TEXTS = { 'title', 'doing', 'name' }

--- Give what would stay blank in a line to a text that would be cut: much blank space in a column,
--- although what follows it may then start further left, and what is right of the texts. Titles
--- first: a name that takes their place moves nothing.
---@param room table<string, integer> cells of each text; changed
---@param needs table<string, integer> widths of the texts
local function share(room, needs)
  for _, from in ipairs({ 'title', 'doing', 'name' }) do
    local spare = room[from] - needs[from]
    for _, to in ipairs(spare >= (from == 'doing' and 1 or MUCH) and TEXTS or {}) do
      local more = room[to] > 0 and math.min(spare, needs[to] - room[to]) or 0
      if more > 0 then
        room[to], room[from], spare = room[to] + more, room[from] - more, spare - more
      end
    end
  end
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
  local at = ' ' .. cells.fit(age.of(session.since), 4, true)
  if columns.place > 0 then
    at = at .. '  ' .. cells.fit(columns.places[session], columns.place)
  end
  local widths = measured(session, width >= TITLES).widths
  local room = { name = columns.name, title = columns.title }
  local gaps = (room.name > 0 and 2 or 0) + (room.title > 0 and 2 or 0)
  local left = width - 1 - cells.width(at) - cells.sum(head) - room.name - room.title - gaps
  local tail = notes(session, math.max(math.floor(left / 2), left - widths.doing))
  room.doing = math.max(left - cells.sum(tail), 8)
  share(room, {
    name = name_width(session, columns, mixed),
    title = cells.width(columns.titles[session]),
    doing = widths.doing,
  })
  vim.list_extend(head, name(texts, columns.names[session], room.name, mixed))
  local title = cells.fit(columns.titles[session], room.title)
  if columns.title > 0 and room.title > 0 then
    title = title .. '  '
  elseif columns.title > 0 then
    room.doing = room.doing + 2 -- all of the column was blank
  end
  head[#head + 1] = { title, 'BellboardDim' }
  head[#head + 1] = { cells.fit(texts.doing, room.doing), 'BellboardDetail' }
  vim.list_extend(head, tail)
  head[#head + 1] = { at, 'BellboardDim' }
  return session.link_since and style.faded(head) or head
end

return M
