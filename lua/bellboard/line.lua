-- The line of a session on the board, in pickers and in the float. A shell shows the same line:
-- `screen/line.py` makes and explains it, and `screen/line.txt` lists the columns that give way.
local age = require('bellboard.age')
local cells = require('bellboard.text')
local place = require('bellboard.place')
local program = require('bellboard.process.program')
local style = require('bellboard.highlight')

local M = {}

local FILE = '/rplugin/python3/bellboard/screen/line.txt'

local TRUNKS = { main = true, master = true } -- branches that say nothing of the only session there
local GAP = 2 -- cells between columns
local AGE = 3 -- minimum width of the ages, so that columns do not move
local PLACE = 20 -- maximum width of the places, or a fifth of the screen
local PROJECT = 8 -- cells of a project's name that its branch does not take
local MUCH = 8 -- blank cells that are enough to move a column for
local KEPT = 24 -- cells of its activity that a title does not take
local ALL = math.huge

--- Texts that would be cut, the columns that give them cells, and the cells that those keep.
---@type { [1]: string, [2]: string, [3]: number }[]
local SHARES = {
  { 'title', 'doing', ALL },
  { 'title', 'who', ALL },
  { 'title', 'doing', KEPT },
  { 'who', 'doing', ALL },
  { 'who', 'title', ALL },
  { 'who', 'doing', KEPT },
}

---@class bellboard.LineGroup sessions below a heading
---@field mixed boolean of several repositories: each line names its own
---@field sessions bellboard.Session[]

---@class bellboard.LineOptions
---@field stretch? boolean ages and places are at the right of the screen
---@field among? bellboard.Session[] to tell apart from; default: those that have a line
---@field word? boolean only the word for what a session does, and no place

---@class bellboard.LineTexts the texts of a session's line, and how many cells they need
---@field session bellboard.Session
---@field mixed boolean
---@field icon string
---@field name string what tells it apart in its repository
---@field title string
---@field doing string
---@field notes bellboard.Chunk[] the most important first
---@field age string
---@field place string
---@field needs { who: integer, title: integer, doing: integer }

---@class bellboard.Layout
---@field width integer
---@field rows table<bellboard.Session, bellboard.LineTexts>
---@field lists table<boolean, bellboard.LineTexts[]> rows by `mixed`
---@field room table<boolean, table<'who'|'title', integer>>
---@field doing integer
---@field icon integer
---@field age integer
---@field place integer
---@field short boolean projects instead of repositories
---@field narrow boolean no column of titles

---@type { [1]: string, [2]: string }[]|nil
local steps

--- The columns that give way, in order, and the cells that each keeps.
local function steps_of_file()
  if not steps then
    steps = {}
    for _, line in ipairs(vim.fn.readfile(program.root() .. FILE)) do
      local column, kept = line:match('^(%w+) (%w+)$')
      steps[#steps + 1] = column and { column, kept }
    end
  end
  return steps
end

---@param session bellboard.Session
---@param mixed boolean there are several kinds of agents
---@return bellboard.Chunk[]
local function notes_of(session, mixed)
  local words, notes = session.words, {}
  local function add(text, group)
    if text ~= '' then
      notes[#notes + 1] = { text, group or 'BellboardDim' }
    end
  end
  add(age.outdated(session))
  add(age.quiet(session))
  add(words.label ~= '' and ('[%s]'):format(words.label) or '', style.label_group(session))
  add(mixed and words.agent or '')
  add(words.progress)
  local snoozed = age.left(session.snoozed_until)
  add(snoozed ~= '' and 'snoozed ' .. snoozed or '')
  add(words.notes)
  add(words.pull_request)
  return notes
end

--- The width of notes and the gap before them.
---@param notes bellboard.Chunk[]
---@return integer
local function sum(notes)
  return #notes > 0 and GAP + cells.sum(notes) + #notes - 1 or 0
end

---@param session bellboard.Session
---@return string
local function repository_of(session)
  return session.words.machine .. '\0' .. session.words.repository
end

--- The start of the id of a session, or its process if it has none.
---@param session bellboard.Session
---@return string
local function brief(session)
  local id = cells.safe(session.session_id:match('[^/]*$'))
  return id:match('^process%-(%d+)%-') or id:sub(1, 4)
end

---@param counts table<string, integer>
---@param key string
local function count(counts, key)
  counts[key] = (counts[key] or 0) + 1
end

--- Names that tell sessions apart from others of their repository. A name is the branch, if those
--- of the repository differ; the agent or the start of the id is before it if the title is the
--- same, too. The branch of all names the only session without a title.
---@param all bellboard.Session[]
---@param narrow boolean no title is beside the name, so it replaces a branch that others have
---@param placed boolean the place is beside the name, and tells sessions apart as well
---@return table<bellboard.Session, string>
local function names_of(all, narrow, placed)
  local total, alike, differing, branch_of = {}, {}, {}, {}
  for _, session in ipairs(all) do
    local where, branch = repository_of(session), session.words.branch
    count(total, where)
    count(alike, where .. '\0' .. branch)
    differing[where] = differing[where] or branch_of[where] ~= nil and branch_of[where] ~= branch
    branch_of[where] = branch
  end
  local names, keys, times, kin = {}, {}, {}, {}
  for _, session in ipairs(all) do
    local where, words, name = repository_of(session), session.words, ''
    local branch, title = words.branch, words.title
    local tells = differing[where] or total[where] == 1 and not TRUNKS[branch]
    local stands = session.name or alike[where .. '\0' .. branch] > 1 or not tells
    if narrow and title ~= '' and stands then
      name = title
    elseif tells then
      name = branch
    end
    local at = placed and place.of(session) or ''
    local key = table.concat({ where, name, narrow and '' or title, at }, '\0')
    names[session], keys[session] = name, key
    count(times, key)
    count(kin, key .. '\0' .. words.agent)
  end
  for session, name in pairs(names) do
    local key, agent = keys[session], session.words.agent
    local same = kin[key .. '\0' .. agent]
    local sign = same < times[key] and agent or ''
    sign = same > 1 and vim.trim(sign .. ' ' .. brief(session)) or sign
    local called = vim.trim(sign .. ' ' .. name)
    local is_named = called ~= '' or session.words.title ~= ''
    names[session] = is_named and called or session.words.branch
  end
  return names
end

--- The repository of a session, as far as it fits, and the name there.
---@param row bellboard.LineTexts
---@param short boolean
---@param room number
---@return string where
---@return string name
local function who(row, short, room)
  local words = row.session.words
  local machine = words.machine ~= '' and words.machine .. ':' or ''
  if not row.mixed then
    return machine, row.name
  end
  local where = machine .. words.repository
  local beside = row.name ~= '' and cells.width(row.name) + 1 or 0
  if short or cells.width(where) + beside > room then
    where = words.project
  end
  local least = math.min(PROJECT + cells.width(machine), cells.width(where))
  where = cells.cut(where, math.max(least, room - beside))
  return beside > 0 and where .. ' ' or where, row.name
end

---@param rows bellboard.LineTexts[]
---@param column 'who'|'title'|'doing'
---@return integer
local function most(rows, column)
  local found = 0
  for _, row in ipairs(rows) do
    found = math.max(found, row.needs[column])
  end
  return found
end

--- A width that is enough for three of four, and for those that are little wider.
---@param rows bellboard.LineTexts[]
---@param column 'who'|'title'
---@return integer
local function usual(rows, column)
  local found = {}
  for _, row in ipairs(rows) do
    found[#found + 1] = row.needs[column]
  end
  table.sort(found)
  local limit, widest = (found[math.floor(#found * 3 / 4) + 1] or 0) + MUCH, 0
  for _, width in ipairs(found) do
    widest = width <= limit and width or widest
  end
  return widest
end

--- How many cells are left in the lines of one kind, or too many if that is negative.
---@param layout bellboard.Layout
---@param kind boolean
---@return integer
local function rest_of(layout, kind)
  local taken = layout.icon + 2 + layout.doing + GAP + layout.age
  for _, width in ipairs({ layout.room[kind].who, layout.room[kind].title, layout.place }) do
    taken = taken + (width > 0 and width + GAP or 0)
  end
  return layout.width - taken
end

---@param layout bellboard.Layout
---@return integer
local function rest(layout)
  local least = math.huge
  for kind in pairs(layout.lists) do
    least = math.min(least, rest_of(layout, kind))
  end
  return least
end

--- Name the sessions, and measure the names.
---@param layout bellboard.Layout
---@param among bellboard.Session[]
local function name(layout, among)
  local names = names_of(among, layout.narrow, layout.place > 0)
  for session, row in pairs(layout.rows) do
    row.name = names[session] or session.words.branch
    local where, called = who(row, layout.short, ALL)
    row.needs.who = cells.width(where) + cells.width(called)
  end
end

---@param layout bellboard.Layout
---@param among bellboard.Session[]
---@param column string
---@param kept string
local function give_way(layout, among, column, kept)
  if column == 'doing' then
    local width = layout.doing
    layout.doing = math.min(width, math.max(tonumber(kept), width + rest(layout)))
    return
  elseif tonumber(kept) ~= 0 and kept ~= 'short' then
    for kind, rows in pairs(layout.lists) do
      local width = layout.room[kind][column]
      local least = tonumber(kept) or usual(rows, column)
      layout.room[kind][column] =
        math.min(width, math.max(least, width + math.min(0, rest_of(layout, kind))))
    end
    return
  elseif column == 'who' then
    layout.short = true
  elseif column == 'place' then
    layout.place = 0
  else
    layout.narrow = true
  end
  name(layout, among)
  for kind, rows in pairs(layout.lists) do
    layout.room[kind].who = math.min(most(rows, 'who'), usual(rows, 'who'))
    layout.room[kind].title = layout.narrow and 0 or layout.room[kind].title
  end
end

--- Use the cells that are left for columns that gave way, and start activities below each other.
---@param layout bellboard.Layout
---@param stretch boolean|nil
local function spend(layout, stretch)
  local wanted = 0
  for _, rows in pairs(layout.lists) do
    wanted = math.max(wanted, most(rows, 'doing'))
  end
  layout.doing = layout.doing + math.max(0, math.min(rest(layout), wanted - layout.doing))
  for kind, rows in pairs(layout.lists) do
    local room = layout.room[kind]
    for _, column in ipairs({ 'title', 'who' }) do
      local more = math.min(rest_of(layout, kind), usual(rows, column) - room[column])
      room[column] = room[column] + (room[column] > 0 and math.max(0, more) or 0)
    end
  end
  local least = rest(layout)
  for kind in pairs(layout.lists) do
    local more, room = rest_of(layout, kind) - least, layout.room[kind]
    if room.title > 0 or room.who > 0 then
      local column = room.title > 0 and 'title' or 'who'
      room[column] = room[column] + more
    elseif more > GAP then
      room.title = more - GAP
    end
  end
  layout.doing = layout.doing + (stretch and math.max(0, least) or 0)
end

--- The columns for some sessions.
---@param groups bellboard.LineGroup[]
---@param width integer
---@param opts? bellboard.LineOptions
---@return bellboard.Layout
M.layout = function(groups, width, opts)
  opts = opts or {}
  ---@type bellboard.Layout
  local layout = {
    width = width,
    rows = {},
    lists = {},
    room = {},
    doing = 0,
    icon = 1,
    age = AGE,
    place = 0,
    short = false,
    narrow = false,
  }
  local shown, agents = {}, {}
  for _, group in ipairs(groups) do
    for _, session in ipairs(group.sessions) do
      shown[#shown + 1] = session
      agents[session.words.agent] = true
    end
  end
  local several = vim.tbl_count(agents) > 1
  for _, group in ipairs(groups) do
    local rows = layout.lists[group.mixed] or {}
    for _, session in ipairs(group.sessions) do
      local words = session.words
      local row = {
        session = session,
        mixed = group.mixed,
        icon = style.icon(session),
        name = '',
        title = words.title,
        doing = opts.word and words.word or words.doing,
        notes = notes_of(session, several),
        age = age.of(session.since),
        place = opts.word and '' or place.of(session),
      }
      local doing = cells.width(row.doing) + sum(row.notes)
      row.needs = { who = 0, title = cells.width(row.title), doing = doing }
      rows[#rows + 1], layout.rows[session], layout.lists[group.mixed] = row, row, rows
      layout.icon = math.max(layout.icon, cells.width(row.icon))
      layout.age = math.max(layout.age, #row.age)
      layout.place = math.max(layout.place, cells.width(row.place))
      layout.doing = math.max(layout.doing, doing)
    end
  end
  layout.place = math.min(layout.place, math.max(PLACE, math.floor(width / 5)))
  name(layout, opts.among or shown)
  for kind, rows in pairs(layout.lists) do
    layout.room[kind] = { who = most(rows, 'who'), title = most(rows, 'title') }
  end
  for _, step in ipairs(steps_of_file()) do
    if rest(layout) < 0 then
      give_way(layout, opts.among or shown, step[1], step[2])
    end
  end
  spend(layout, opts.stretch)
  return layout
end

---@param room table<string, integer>
---@param needs table<string, integer>
---@param to string
---@param from string
---@param kept number
local function move(room, needs, to, from, kept)
  local gap = room[to] > 0 and 0 or GAP -- of a column that other lines do not have
  local spare = room[from] - math.min(needs[from], kept) - gap
  local more = math.min(spare, needs[to] - room[to])
  if more > 0 then
    room[to], room[from] = room[to] + more, room[from] - more - gap
  end
end

--- Give cells that would stay blank in a line to a text that would be cut. Activity gives way to a
--- title, and moves to the left only for many blank cells.
---@param room table<string, integer>
---@param needs table<string, integer>
local function share(room, needs)
  for _, each in ipairs(SHARES) do
    move(room, needs, each[1], each[2], each[3])
  end
  local blank = math.max(0, room.who - needs.who) + math.max(0, room.title - needs.title)
  if blank >= MUCH then
    move(room, needs, 'doing', 'title', ALL)
    move(room, needs, 'doing', 'who', ALL)
  end
end

--- The notes that fit, after a gap.
---@param notes bellboard.Chunk[]
---@param room integer
---@return bellboard.Chunk[]
local function fitting(notes, room)
  local chunks, used = {}, 0
  for _, note in ipairs(notes) do
    local blank = used == 0 and GAP or 1
    if used + blank + cells.width(note[1]) <= room then
      used = used + blank + cells.width(note[1])
      chunks[#chunks + 1] = { (' '):rep(blank) .. note[1], note[2] }
    end
  end
  return chunks
end

--- The line of a session.
---@param session bellboard.Session
---@param layout bellboard.Layout
---@param mark? string its first character
---@return bellboard.Chunk[]
M.chunks = function(session, layout, mark)
  local row, columns = layout.rows[session], layout.room[layout.rows[session].mixed]
  local own = cells.width(row.doing)
  local title = layout.narrow and '' or row.title
  local needs = { who = row.needs.who, title = cells.width(title), doing = row.needs.doing }
  local room = { who = columns.who, title = columns.title, doing = layout.doing }
  share(room, needs)
  local tail = fitting(row.notes, math.max(math.floor(room.doing / 2), room.doing - own))
  needs.doing = own + cells.sum(tail)
  local where, called = who(row, layout.short, room.who)
  needs.who = cells.width(where) + cells.width(called)
  share(room, needs) -- a shorter name, and notes that do not fit, leave cells
  room.doing = room.doing - cells.sum(tail)
  for column, width in pairs(columns) do
    room.doing = room.doing + (width > 0 and room[column] == 0 and GAP or 0)
  end
  where, called = who(row, layout.short, room.who)
  local quiet = title ~= '' and 'BellboardDim' or 'BellboardProject'
  local gap = (' '):rep(GAP)
  local chunks = {
    { mark or ' ', mark and 'BellboardMarked' or nil },
    { cells.fit(row.icon, layout.icon + 1), style.group(session) },
    { where, 'BellboardRepository' },
    {
      cells.fit(called, math.max(0, room.who - cells.width(where))) .. (room.who > 0 and gap or ''),
      quiet,
    },
    { cells.fit(title, room.title) .. (room.title > 0 and gap or ''), 'BellboardProject' },
    { cells.fit(row.doing, room.doing), 'BellboardDetail' },
  }
  vim.list_extend(chunks, tail)
  chunks[#chunks + 1] = { gap .. cells.fit(row.age, layout.age, true), 'BellboardDim' }
  if layout.place > 0 then
    chunks[#chunks + 1] = { gap .. cells.fit(row.place, layout.place), 'BellboardDim' }
  end
  return session.link_since and style.faded(chunks) or chunks
end

--- A text that is the same for the same chunks of a session.
---@param session bellboard.Session
---@param layout bellboard.Layout
---@return string
M.key = function(session, layout)
  local row = layout.rows[session]
  local room = layout.room[row.mixed]
  local parts = {
    row.name,
    row.age,
    row.place,
    style.group(session),
    row.mixed and 'mixed' or '',
    layout.short and 'short' or '',
    layout.narrow and 'narrow' or '',
    ('%d %d %d'):format(room.who, room.title, layout.doing),
    ('%d %d %d'):format(layout.icon, layout.age, layout.place),
  }
  for _, note in ipairs(row.notes) do
    parts[#parts + 1] = note[1]
  end
  return table.concat(parts, '\0')
end

--- The cells that the lines take.
---@param layout bellboard.Layout
---@return integer
M.used = function(layout)
  return layout.width - rest(layout)
end

return M
