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

--- Texts that would be cut, the columns that give them cells, and the cells that those keep. A name
--- gives none: titles begin below each other.
---@type { [1]: string, [2]: string, [3]: number }[]
local SHARES = {
  { 'title', 'doing', ALL },
  { 'title', 'doing', KEPT },
  { 'who', 'title', ALL },
  { 'who', 'doing', ALL },
  { 'who', 'doing', KEPT },
}

---@class bellboard.LineGroup sessions below a heading
---@field mixed boolean of several repositories: each line names its own
---@field sessions bellboard.Session[]

---@class bellboard.LineOptions
---@field stretch? boolean ages and places are at the right of the screen
---@field among? bellboard.Session[] to tell apart from; default: those that have a line
---@field word? boolean only the word for what a session does, and no place

---@class bellboard.LineFacts parts of a session's line that change only with the session
---@field machine string `dev:` of a session on another machine
---@field repository string after its machine
---@field widths table<string, integer> cells of these, and of words
---@field where string key of the repository
---@field keys table<string, string> of the texts that tell it apart: branch, title, both, plain

---@class bellboard.LineList sessions whose lines begin alike
---@field mixed boolean each line names its repository
---@field sessions bellboard.Session[]
---@field who integer[] cells that they need
---@field title integer[]
---@field room table<'who'|'title', integer>
---@field key? string of its lines

---@class bellboard.Layout
---@field width integer
---@field lists bellboard.LineList[] of each repository with a heading, and of all other lines
---@field list table<bellboard.Session, bellboard.LineList>
---@field names table<bellboard.Session, string>
---@field signed table<bellboard.Session, boolean> its name has its agent
---@field usual table<'who'|'title', integer> cells that most lines need at most
---@field several boolean lines name their agents, as there are several kinds
---@field word boolean only the word for what a session does
---@field needed integer cells that the longest activity and its notes need
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

---@type table<bellboard.Session, bellboard.LineFacts> a changed session is a new table
local facts_by_session = setmetatable({}, { __mode = 'k' })

---@param session bellboard.Session
---@return bellboard.LineFacts
local function facts_of(session)
  local facts = facts_by_session[session]
  if not facts then
    local words = session.words
    local machine = words.machine ~= '' and words.machine .. ':' or ''
    local where = words.machine .. '\0' .. words.repository
    facts = {
      machine = machine,
      repository = machine .. words.repository,
      where = where,
      keys = {
        branch = where .. '\0' .. words.branch,
        title = where .. '\0' .. words.title,
        both = where .. '\0' .. words.branch .. '\0' .. words.title,
        plain = where .. '\0\0' .. words.title,
      },
    }
    facts.widths = {
      machine = cells.width(machine),
      repository = cells.width(facts.repository),
      project = cells.width(words.project),
      branch = cells.width(words.branch),
      title = cells.width(words.title),
      doing = cells.width(words.doing),
      word = cells.width(words.word),
    }
    facts_by_session[session] = facts
  end
  return facts
end

---@param session bellboard.Session
---@param is_named boolean with its agent
---@return bellboard.Chunk[]
local function notes_of(session, is_named)
  local words, notes = session.words, {}
  local snoozed = age.left(session.snoozed_until)
  local label = words.label ~= '' and ('[%s]'):format(words.label) or ''
  for _, note in ipairs({
    { age.outdated(session) },
    { age.quiet(session) },
    { label, label ~= '' and style.label_group(session) or nil },
    { words.progress },
    { snoozed ~= '' and 'snoozed ' .. snoozed or '' },
    { words.notes },
    { words.pull_request },
    { is_named and words.agent or '' },
  }) do
    if note[1] ~= '' then
      notes[#notes + 1] = { note[1], note[2] or 'BellboardDim' }
    end
  end
  return notes
end

--- Whether a session has notes: most have none.
---@param session bellboard.Session
---@param is_named boolean
---@return boolean
local function has_notes(session, is_named)
  local words = session.words
  return is_named and words.agent ~= ''
    or session.link_since ~= nil
    or session.quiet_since ~= nil
    or session.snoozed_until ~= nil
    or words.label ~= ''
    or words.progress ~= ''
    or words.notes ~= ''
    or words.pull_request ~= ''
end

--- The width of notes and the gap before them.
---@param notes bellboard.Chunk[]
---@return integer
local function sum(notes)
  return #notes > 0 and GAP + cells.sum(notes) + #notes - 1 or 0
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
--- same, too.
---@param all bellboard.Session[]
---@param narrow boolean no title is beside the name, so it is in the name
---@param placed boolean the place is beside the name, and tells sessions apart as well
---@return table<bellboard.Session, string> names
---@return table<bellboard.Session, boolean> signed those that have the agent
local function names_of(all, narrow, placed)
  local total, alike, differing, branch_of = {}, {}, {}, {}
  for _, session in ipairs(all) do
    local facts, branch = facts_of(session), session.words.branch
    local where = facts.where
    count(total, where)
    count(alike, facts.keys.branch)
    differing[where] = differing[where] or branch_of[where] ~= nil and branch_of[where] ~= branch
    branch_of[where] = branch
  end
  local names, signed, keys, times, places, kin = {}, {}, {}, {}, {}, {}
  for _, session in ipairs(all) do
    local facts, words = facts_of(session), session.words
    local tells = differing[facts.where]
      or total[facts.where] == 1 and not TRUNKS[words.branch]
      or false
    local is_titled = narrow
      and words.title ~= ''
      and (session.name or alike[facts.keys.branch] > 1 or not tells)
    local key = facts.keys.plain
    if narrow then
      key = is_titled and facts.keys.title or tells and facts.keys.branch or facts.where
    elseif tells then
      key = facts.keys.both
    end
    local branch = narrow and vim.trim(words.branch .. ' ' .. words.title) or words.branch
    names[session] = is_titled and words.title or tells and branch or ''
    keys[session] = key
    count(times, key)
  end
  local same = {}
  for _, session in ipairs(all) do
    if times[keys[session]] > 1 then
      local key = keys[session] .. '\0' .. (placed and place.of(session) or '')
      same[#same + 1], keys[session] = session, key
      count(places, key)
      count(kin, key .. '\0' .. session.words.agent)
    end
  end
  for _, session in ipairs(same) do
    local key, agent = keys[session], session.words.agent
    local twins = kin[key .. '\0' .. agent]
    local sign = twins < places[key] and agent or ''
    signed[session] = sign ~= ''
    sign = twins > 1 and vim.trim(sign .. ' ' .. brief(session)) or sign
    names[session] = vim.trim(sign .. ' ' .. names[session])
  end
  for _, session in ipairs(all) do
    if narrow and names[session] == '' and session.words.title == '' then
      names[session] = session.words.branch
    end
  end
  return names, signed
end

--- The title of a session; the branch of all is that of a session without any other name.
---@param session bellboard.Session
---@param layout bellboard.Layout
---@return string title
---@return integer width
local function title_of(session, layout)
  local words, widths = session.words, facts_of(session).widths
  if layout.narrow then
    return '', 0
  elseif words.title == '' and layout.names[session] == '' then
    return words.branch, widths.branch
  end
  return words.title, widths.title
end

--- The repository of a session, as far as it fits, and the name there.
---@param session bellboard.Session
---@param layout bellboard.Layout
---@param room number
---@return string where
---@return string name
local function who(session, layout, room)
  local facts, called = facts_of(session), layout.names[session]
  if not layout.list[session].mixed then
    return called ~= '' and facts.machine or session.words.machine, called
  end
  local where, width = facts.repository, facts.widths.repository
  local beside = called ~= '' and cells.width(called) + 1 or 0
  if layout.short or width + beside > room then
    where, width = session.words.project, facts.widths.project
  end
  local least = math.min(PROJECT + facts.widths.machine, width)
  where = cells.cut(where, math.min(room, math.max(least, room - beside)))
  called = cells.cut(called, room - cells.width(where) - 1)
  return called ~= '' and where .. ' ' or where, called
end

--- The cells that the repository of a session and its name need.
---@param session bellboard.Session
---@param layout bellboard.Layout
---@return integer
local function who_width(session, layout)
  local widths, called = facts_of(session).widths, layout.names[session]
  local width = called == session.words.branch and widths.branch or cells.width(called)
  if not layout.list[session].mixed then
    return math.max(0, widths.machine + width - (width > 0 and 0 or 1))
  end
  return (layout.short and widths.project or widths.repository) + (width > 0 and width + 1 or 0)
end

---@param widths integer[]
---@return integer
local function widest(widths)
  local top = 0
  for _, width in ipairs(widths) do
    top = width > top and width or top
  end
  return top
end

--- The width that is enough for three of four lines, and for those that are little wider.
---@param lists bellboard.LineList[]
---@param column 'who'|'title'
---@return integer
local function usual_of(lists, column)
  local counts, total, top, seen, width = {}, 0, 0, 0, -1
  for _, list in ipairs(lists) do
    for _, each in ipairs(list[column]) do
      counts[each], total = (counts[each] or 0) + 1, total + 1
      top = each > top and each or top
    end
  end
  while total > 0 and seen < math.floor(total * 3 / 4) + 1 do
    width = width + 1
    seen = seen + (counts[width] or 0)
  end
  local usual = math.min(top, width + MUCH)
  while usual > 0 and not counts[usual] do
    usual = usual - 1
  end
  return math.max(usual, 0)
end

--- How many cells are left in the lines of a list, or too many if that is negative.
---@param layout bellboard.Layout
---@param list bellboard.LineList
---@return integer
local function rest_of(layout, list)
  local taken = layout.icon + 2 + layout.doing + GAP + layout.age
  for _, width in ipairs({ list.room.who, list.room.title, layout.place }) do
    taken = taken + (width > 0 and width + GAP or 0)
  end
  return layout.width - taken
end

---@param layout bellboard.Layout
---@return integer
local function rest(layout)
  local least = math.huge
  for _, list in ipairs(layout.lists) do
    least = math.min(least, rest_of(layout, list))
  end
  return least
end

--- Name the sessions, and measure the names, and what the sessions do, with notes.
---@param layout bellboard.Layout
---@param among bellboard.Session[]
local function name(layout, among)
  layout.names, layout.signed = names_of(among, layout.narrow, layout.place > 0)
  local needed = 0
  for _, list in ipairs(layout.lists) do
    for nth, session in ipairs(list.sessions) do
      layout.names[session] = layout.names[session] or session.words.branch
      list.who[nth] = who_width(session, layout)
      list.title[nth] = select(2, title_of(session, layout))
      local widths = facts_of(session).widths
      local doing = layout.word and widths.word or widths.doing
      local is_named = layout.several and not layout.signed[session]
      if has_notes(session, is_named) then
        doing = doing + sum(notes_of(session, is_named))
      end
      needed = doing > needed and doing or needed
    end
  end
  layout.needed = needed
  layout.usual = { who = usual_of(layout.lists, 'who'), title = usual_of(layout.lists, 'title') }
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
    for _, list in ipairs(layout.lists) do
      local width, over = list.room[column], math.min(0, rest_of(layout, list))
      local least = tonumber(kept) or layout.usual[column]
      list.room[column] = math.min(width, math.max(least, width + over))
    end
    return
  elseif column == 'who' then
    layout.short = true
  elseif column == 'agent' then
    layout.several = false
  elseif column == 'place' then
    layout.place = 0
  else
    layout.narrow = true
  end
  name(layout, among)
  layout.doing = math.min(layout.doing, layout.needed)
  for _, list in ipairs(column ~= 'agent' and layout.lists or {}) do
    list.room.who = math.min(widest(list.who), layout.usual.who)
    list.room.title = layout.narrow and 0 or list.room.title
  end
end

--- Use the cells that are left for columns that gave way, and start activities below each other.
---@param layout bellboard.Layout
---@param stretch boolean|nil
local function spend(layout, stretch)
  local more = math.min(rest(layout), layout.needed - layout.doing)
  layout.doing = layout.doing + math.max(0, more)
  for _, list in ipairs(layout.lists) do
    local room = list.room
    for _, column in ipairs(rest_of(layout, list) > 0 and { 'title', 'who' } or {}) do
      local usual = math.min(widest(list[column]), layout.usual[column])
      more = math.min(rest_of(layout, list), usual - room[column])
      room[column] = room[column] + (room[column] > 0 and math.max(0, more) or 0)
    end
  end
  local least = rest(layout)
  for _, list in ipairs(layout.lists) do
    local room = list.room
    more = rest_of(layout, list) - least
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
  local shown, agents = {}, {}
  for _, group in ipairs(groups) do
    for _, session in ipairs(group.sessions) do
      shown[#shown + 1] = session
      agents[session.words.agent] = true
    end
  end
  ---@type bellboard.Layout
  local layout = {
    width = width,
    lists = {},
    list = {},
    names = {},
    signed = {},
    usual = {},
    several = vim.tbl_count(agents) > 1,
    word = opts.word == true,
    needed = 0,
    doing = 0,
    icon = 1,
    age = AGE,
    place = 0,
    short = false,
    narrow = false,
  }
  local mixed
  for _, group in ipairs(groups) do
    local list = group.mixed and mixed
      or { mixed = group.mixed, sessions = {}, who = {}, title = {}, room = {} }
    mixed = group.mixed and list or mixed
    if #list.sessions == 0 and #group.sessions > 0 then
      table.insert(layout.lists, list)
    end
    for _, session in ipairs(group.sessions) do
      table.insert(list.sessions, session)
      layout.list[session] = list
      layout.icon = math.max(layout.icon, cells.width(style.icon(session)))
      layout.age = math.max(layout.age, #age.of(session.since))
      local at = layout.word and '' or place.of(session)
      layout.place = math.max(layout.place, cells.width(at))
    end
  end
  layout.place = math.min(layout.place, math.max(PLACE, math.floor(width / 5)))
  name(layout, opts.among or shown)
  layout.doing = layout.needed
  for _, list in ipairs(layout.lists) do
    list.room = { who = widest(list.who), title = widest(list.title) }
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
  local gap = room[to] > 0 and 0 or GAP -- the gap of a column that other lines do not have
  local spare = room[from] - math.min(needs[from], kept) - gap
  local more = math.min(spare, needs[to] - room[to])
  if more > 0 then
    room[to], room[from] = room[to] + more, room[from] - more - gap
  end
end

--- Give cells that would stay blank in a line to a text that would be cut. Activity gives way to a
--- title, and moves to the left only for many blank cells of it: titles begin below each other.
---@param room table<string, integer>
---@param needs table<string, integer>
local function share(room, needs)
  for _, each in ipairs(SHARES) do
    move(room, needs, each[1], each[2], each[3])
  end
  if room.title - needs.title >= 2 * GAP then
    move(room, needs, 'doing', 'title', ALL)
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
  local columns, words, widths = layout.list[session].room, session.words, facts_of(session).widths
  local notes = notes_of(session, layout.several and not layout.signed[session])
  local title, title_width = title_of(session, layout)
  local doing = layout.word and words.word or words.doing
  local own = layout.word and widths.word or widths.doing
  local needs = {
    who = who_width(session, layout),
    title = title_width,
    doing = own + sum(notes),
  }
  local room = { who = columns.who, title = columns.title, doing = layout.doing }
  share(room, needs)
  local tail = fitting(notes, math.max(math.floor(room.doing / 2), room.doing - own))
  needs.doing = own + cells.sum(tail)
  local where, called = who(session, layout, room.who)
  needs.who = cells.width(where) + cells.width(called)
  share(room, needs) -- a shorter name, and notes that do not fit, leave cells
  room.doing = room.doing - cells.sum(tail)
  for column, width in pairs(columns) do
    room.doing = room.doing + (width > 0 and room[column] == 0 and GAP or 0)
  end
  where, called = who(session, layout, room.who)
  called = cells.fit(called, math.max(0, room.who - cells.width(where)))
  local gap, blank = (' '):rep(GAP), (' '):rep(room.who > 0 and GAP or 0)
  local chunks = {
    { mark or ' ', mark and 'BellboardMarked' or nil },
    { cells.fit(style.icon(session), layout.icon + 1), style.group(session) },
    { where, 'BellboardRepository' },
    { called .. blank, title ~= '' and 'BellboardDim' or 'BellboardProject' },
    { cells.fit(title, room.title) .. (room.title > 0 and gap or ''), 'BellboardProject' },
    { cells.fit(doing, room.doing), 'BellboardDetail' },
  }
  vim.list_extend(chunks, tail)
  local old = cells.fit(age.of(session.since), layout.age, true)
  chunks[#chunks + 1] = { gap .. old, 'BellboardDim' }
  if layout.place > 0 then
    chunks[#chunks + 1] = { gap .. cells.fit(place.of(session), layout.place), 'BellboardDim' }
  end
  return session.link_since and style.faded(chunks) or chunks
end

--- A key that is the same for the same chunks of a session.
---@param session bellboard.Session
---@param layout bellboard.Layout
---@return string
M.key = function(session, layout)
  local list = layout.list[session]
  list.key = list.key
    or ('%s %d %d %d %d %d %d %s %s %s'):format(
      list.mixed,
      list.room.who,
      list.room.title,
      layout.doing,
      layout.icon,
      layout.age,
      layout.place,
      layout.short,
      layout.narrow,
      layout.several
    )
  return table.concat({
    list.key,
    layout.names[session],
    age.of(session.since),
    place.of(session),
    style.group(session),
    age.outdated(session),
    age.quiet(session),
    age.left(session.snoozed_until),
  }, '\0')
end

--- The cells that the lines take.
---@param layout bellboard.Layout
---@return integer
M.used = function(layout)
  return layout.width - rest(layout)
end

return M
