-- The lines of the board.
local age = require('bellboard.view.age')
local cells = require('bellboard.view.cells')
local config = require('bellboard.config')
local place = require('bellboard.view.place')
local sessions = require('bellboard.state.sessions')
local style = require('bellboard.view.style')

local M = {}

---@class bellboard.Line
---@field chunks bellboard.Chunk[]
---@field text string
---@field id? string the session that this line belongs to
---@field head? boolean whether it is the session's first line
---@field repository? string the repository that this line is the heading of

---@param chunks bellboard.Chunk[]
---@param id? string
---@param head? boolean
---@return bellboard.Line
local function line(chunks, id, head)
  local parts = {}
  for nth, chunk in ipairs(chunks) do
    parts[nth] = chunk[1]
  end
  local text = table.concat(parts):gsub('%s+$', '')
  return { chunks = chunks, text = text, id = id, head = head }
end

---@class bellboard.Columns
---@field width integer of the window
---@field branch integer
---@field title integer

---@class bellboard.Fixed what stays the same until the session is published again
---@field branch integer width in cells
---@field title integer
---@field key? string what the cached lines depend on
---@field lines? bellboard.Line[]

---@type table<bellboard.Session, bellboard.Fixed> a changed session is a new table
local fixed = setmetatable({}, { __mode = 'k' })

---@param session bellboard.Session
---@return bellboard.Fixed
local function fixed_of(session)
  local known = fixed[session]
  if not known then
    known = {
      branch = cells.width(session.words.branch),
      title = cells.width(session.words.title),
    }
    fixed[session] = known
  end
  return known
end

--- The widths of the optional columns.
---@param all bellboard.Session[]
---@param width integer
---@return bellboard.Columns
local function measure(all, width)
  local branch, title = 0, 0
  local wide = width >= 90
  for _, session in ipairs(all) do
    local known = fixed_of(session)
    -- Without a column for titles, the name that the user gave stands in the branch's.
    branch = math.max(branch, not wide and session.name and known.title or known.branch)
    title = math.max(title, known.title)
  end
  return {
    width = width,
    branch = math.min(branch, width >= 70 and 13 or 10),
    title = wide and math.min(title, math.floor(width / 4)) or 0,
  }
end

---@param session bellboard.Session
---@param columns bellboard.Columns
---@param where string
---@param since string
---@return bellboard.Chunk[]
local function head(session, columns, where, since)
  local words = session.words
  local width, wide = columns.width, columns.width >= 90
  local known_by = not wide and session.name and words.title or words.branch
  local branch = columns.branch > 0 and cells.fit(known_by, columns.branch) .. '  ' or ''
  local title = columns.title > 0 and cells.fit(words.title, columns.title) .. '  ' or ''
  local progress = words.progress ~= '' and ' ' .. words.progress or ''
  local label = words.label ~= '' and (' [%s]'):format(words.label) or ''
  local at = cells.fit(since, 5, true) .. (width >= 70 and '  ' .. cells.fit(where, 10) or ' ')
  local taken = 3
  for _, part in ipairs({ branch, title, progress, label, at }) do
    taken = taken + cells.width(part)
  end
  local column = wide and 9 or 0
  local doing = words.word
  if words.text ~= '' then
    doing = cells.fit(doing, math.max(column, cells.width(doing))) .. ' ' .. words.text
  end
  local room = math.max(width - taken, 8)
  return {
    { (' %s '):format(style.icon(session)), style.group(session) },
    { branch, 'BellboardProject' },
    { title, 'BellboardDim' },
    { cells.fit(doing, room - 1) .. ' ', 'BellboardDetail' },
    { progress .. label, 'BellboardDim' },
    { at, 'BellboardDim' },
  }
end

---@param task bellboard.Task
---@return string
local function age_of(task)
  return task.since and '  ' .. age.of(task.since) or ''
end

--- A session's subagents, background tasks, and what else is known of it.
---@param session bellboard.Session
---@return bellboard.Chunk[][]
local function details(session)
  local lines = {}
  local function add(name, text, group)
    lines[#lines + 1] =
      { { ('     %-9s '):format(name), 'BellboardDim' }, { cells.safe(text), group } }
  end
  for _, agent in ipairs(session.agents or {}) do
    local text = ('%s %s'):format(agent.type or '', agent.description or '')
    add('agent', text .. (agent.blocked and ', blocked' or '') .. age_of(agent))
  end
  for _, task in ipairs(session.background or {}) do
    add(
      cells.cut(cells.safe(task.type or 'shell'), 9),
      (task.description or task.id) .. age_of(task)
    )
  end
  if session.tasks then
    add('tasks', ('%d of %d done'):format(session.tasks.done, session.tasks.total))
  end
  for _, key in ipairs({ 'last_prompt', 'last_message', 'cwd', 'model' }) do
    if session[key] then
      add(key:gsub('^last_', ''), session[key])
    end
  end
  if #(session.markers or {}) > 0 then
    add('markers', table.concat(session.markers, ', '))
  end
  if session.pid then
    add('process', session.pid .. (session.tty and '  ' .. session.tty or ''))
  end
  return lines
end

---@class bellboard.Group
---@field name string
---@field sessions bellboard.Session[]
---@field rank integer

--- Sessions by repository, in the order of rank; unranked repositories last.
---@param all bellboard.Session[]
---@return bellboard.Group[]
local function by_repository(all)
  local groups, by_name = {}, {}
  for _, session in ipairs(all) do
    local name = session.repository or session.project or ''
    local group = by_name[name]
    if not group then
      local rank = sessions.place(name) or 1e9 + #groups
      group = { name = name, sessions = {}, rank = rank }
      by_name[name] = group
      groups[#groups + 1] = group
    end
    group.sessions[#group.sessions + 1] = session
  end
  table.sort(groups, function(a, b)
    return a.rank < b.rank
  end)
  return groups
end

--- The number of sessions with each icon: `!1 ?1 *2`.
---@param some bellboard.Session[]
---@return bellboard.Chunk[]
local function tally(some)
  local chunks, by_icon = {}, {}
  for _, session in ipairs(some) do
    local icon = style.icon(session)
    if not by_icon[icon] then
      by_icon[icon] = { icon, style.group(session), 0 }
      chunks[#chunks + 1] = by_icon[icon]
    end
    by_icon[icon][3] = by_icon[icon][3] + 1
  end
  return vim.tbl_map(function(chunk)
    return { ('%s%d '):format(chunk[1], chunk[3]), chunk[2] }
  end, chunks)
end

---@return bellboard.Line[]
local function first_run()
  local command = ':' .. config.command()
  local lines = {
    ' No sessions yet.',
    '',
    ' 1  Install the hooks:          ' .. command .. ' install',
    ' 2  Start claude anywhere, or:  ' .. command .. ' new',
    ' 3  It appears here. If not:    ' .. command .. ' health',
  }
  return vim.tbl_map(function(text)
    return line({ { text, 'BellboardDetail' } })
  end, lines)
end

---@param count integer
---@param noun string
---@param nouns string
local function amount(count, noun, nouns)
  return ('%d %s'):format(count, count == 1 and noun or nouns)
end

--- The lines of a session, from the cache if nothing in them has changed.
---@param session bellboard.Session
---@param columns bellboard.Columns
---@param open boolean|nil
---@return bellboard.Line[]
local function lines_of(session, columns, open)
  local id = session.session_id
  local where, since = place.of(session), age.of(session.since)
  local known = fixed_of(session)
  local widths = ('%d %d %d'):format(columns.width, columns.branch, columns.title)
  local key =
    table.concat({ where, since, widths, style.group(session), open and 'open' or '' }, '|')
  if known.key == key and not open then
    return known.lines
  end
  local lines = { line(head(session, columns, where, since), id, true) }
  local members = session.words.members
  if open then
    for _, chunks in ipairs(details(session)) do
      lines[#lines + 1] = line(chunks, id)
    end
  elseif members ~= '' then
    lines[2] = line({ { '   ▸ ' .. members, 'BellboardDim' } }, id)
  end
  known.key, known.lines = key, lines
  return lines
end

---@param all bellboard.Session[]
---@param groups bellboard.Group[]
---@param width integer
---@return bellboard.Line
local function heading(all, groups, width)
  local left = (' %s · %s'):format(
    amount(#groups, 'repository', 'repositories'),
    amount(#all, 'session', 'sessions')
  )
  local right = sessions.stale() and 'outdated  g? help ' or 'g? help '
  local counts = width >= 70 and tally(all) or {}
  local gap = width - cells.width(left) - #right
  for _, chunk in ipairs(counts) do
    gap = gap - cells.width(chunk[1])
  end
  local chunks = { { left .. (' '):rep(math.max(gap - 2, 2)), 'BellboardDim' } }
  vim.list_extend(chunks, counts)
  chunks[#chunks + 1] = { '  ' .. right, 'BellboardDim' }
  return line(chunks)
end

---@class bellboard.Folds
---@field unfolded table<string, boolean> sessions, by id
---@field folded table<string, boolean> repositories, by name

--- All lines of the board.
---@param width integer
---@param folds bellboard.Folds
---@return bellboard.Line[]
M.compose = function(width, folds)
  local all = sessions.list()
  if #all == 0 then
    return first_run()
  end
  local groups = by_repository(all)
  local lines = { heading(all, groups, width), line({ { '' } }) }
  local columns = measure(all, width)
  for _, group in ipairs(groups) do
    local name = cells.safe(group.name)
    local chunks = { { ' ' .. (name ~= '' and name or 'elsewhere'), 'BellboardRepository' } }
    local folded = folds.folded[group.name]
    if folded then
      local inside = amount(#group.sessions, 'session', 'sessions')
      chunks[2] = { ('  ▸ %s  '):format(inside), 'BellboardDim' }
      vim.list_extend(chunks, tally(group.sessions))
    end
    local title = line(chunks)
    title.repository = group.name
    lines[#lines + 1] = title
    for _, session in ipairs(folded and {} or group.sessions) do
      for _, each in ipairs(lines_of(session, columns, folds.unfolded[session.session_id])) do
        lines[#lines + 1] = each
      end
    end
  end
  return lines
end

return M
