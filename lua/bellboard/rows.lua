-- What the board says, line by line; panel.lua puts it into a buffer.
local bellboard = require('bellboard')
local config = require('bellboard.config')
local ui = require('bellboard.ui')

local M = {}

---@class bellboard.Line
---@field chunks bellboard.Chunk[]
---@field text string
---@field id? string session that this line belongs to
---@field head? boolean its first line

---@param chunks bellboard.Chunk[]
---@param id? string
---@param head? boolean
---@return bellboard.Line
local function line(chunks, id, head)
  local parts = {}
  for place, chunk in ipairs(chunks) do
    parts[place] = chunk[1]
  end
  local text = table.concat(parts):gsub('%s+$', '')
  return { chunks = chunks, text = text, id = id, head = head }
end

---@param session bellboard.Session
---@return string|nil
local function members(session)
  local parts = {}
  if session.status == 'background' and #(session.background or {}) == 1 then
    return nil -- its line says that already
  end
  for _, kind in ipairs({ { 'agents', 'agent' }, { 'background', 'background task' } }) do
    local count = #(session[kind[1]] or {})
    if count > 0 then
      parts[#parts + 1] = ('%d %s%s'):format(count, kind[2], count == 1 and '' or 's')
    end
  end
  return #parts > 0 and table.concat(parts, ', ') or nil
end

---@class bellboard.Columns
---@field width integer of the window
---@field branch integer
---@field title integer

---@class bellboard.Fixed what of a session does not change before the host sends it anew
---@field repository string
---@field branch integer cells
---@field title integer
---@field key? string of the lines kept
---@field lines? bellboard.Line[]

---@type table<bellboard.Session, bellboard.Fixed> a changed session is another table
local fixed = setmetatable({}, { __mode = 'k' })

---@param session bellboard.Session
---@return bellboard.Fixed
local function fixed_of(session)
  local known = fixed[session]
  if not known then
    known = {
      repository = ui.repository(session),
      branch = ui.width(ui.branch(session)),
      title = ui.width(ui.title(session)),
    }
    fixed[session] = known
  end
  return known
end

--- How wide the columns are that not every board needs.
---@param sessions bellboard.Session[]
---@param width integer
---@return bellboard.Columns
local function measure(sessions, width)
  local branch, title = 0, 0
  for _, session in ipairs(sessions) do
    local known = fixed_of(session)
    branch = math.max(branch, known.branch)
    title = math.max(title, known.title)
  end
  return {
    width = width,
    branch = math.min(branch, width >= 70 and 13 or 10),
    title = width >= 90 and math.min(title, math.floor(width / 4)) or 0,
  }
end

---@param session bellboard.Session
---@param columns bellboard.Columns
---@param where string
---@param since string
---@return bellboard.Chunk[]
local function head(session, columns, where, since)
  local word, text = ui.doing(session)
  local width, wide = columns.width, columns.width >= 90
  local branch = columns.branch > 0 and ui.fit(ui.branch(session), columns.branch) .. '  ' or ''
  local title = columns.title > 0 and ui.fit(ui.title(session), columns.title) .. '  ' or ''
  local tasks = session.tasks
  local progress = tasks and (' %d/%d'):format(tasks.done, tasks.total) or ''
  local label = session.label and (' [%s]'):format(ui.safe(session.label)) or ''
  local place = width >= 70 and '  ' .. ui.fit(where, 10) or ' '
  local age = ui.fit(since, 5, true)
  local taken = 3 + #age
  for _, part in ipairs({ branch, title, progress, label, place }) do
    taken = taken + ui.width(part)
  end
  local column = wide and 9 or 0
  local doing = text == '' and word or ui.fit(word, math.max(column, ui.width(word))) .. ' ' .. text
  local room = math.max(width - taken, 8)
  return {
    { (' %s '):format(ui.icon(session)), ui.group(session) },
    { branch, 'BellboardProject' },
    { title, 'BellboardDim' },
    { ui.fit(doing, room - 1) .. ' ', 'BellboardDetail' },
    { progress .. label, 'BellboardDim' },
    { age .. place, 'BellboardDim' },
  }
end

---@param session bellboard.Session
---@return bellboard.Chunk[][]
local function details(session)
  local lines = {}
  local function add(name, text)
    lines[#lines + 1] = { { ('     %-9s '):format(name), 'BellboardDim' }, { ui.safe(text) } }
  end
  for _, agent in ipairs(session.agents or {}) do
    local age = agent.since and '  ' .. ui.age(agent.since) or ''
    local doing = agent.blocked and ' is blocked' or ''
    add('agent', ('%s %s%s%s'):format(agent.type or '', agent.description or '', doing, age))
  end
  for _, task in ipairs(session.background or {}) do
    add(task.type or 'shell', task.description or task.id)
  end
  for _, key in ipairs({ 'last_prompt', 'last_message', 'cwd', 'model' }) do
    if session[key] then
      add(key:gsub('^last_', ''), session[key])
    end
  end
  return lines
end

---@param sessions bellboard.Session[]
---@return string[] repositories in order
---@return table<string, bellboard.Session[]>
local function by_repository(sessions)
  local names, groups = {}, {}
  for _, session in ipairs(sessions) do
    local name = fixed_of(session).repository
    if not groups[name] then
      groups[name] = {}
      names[#names + 1] = name
    end
    table.insert(groups[name], session)
  end
  return names, groups
end

---@return bellboard.Line[]
local function first_run()
  local command = ':' .. config.get().command
  local lines = {
    ' No sessions yet.',
    '',
    ' 1  Tell Claude Code about bellboard:  ' .. command .. ' hooks',
    ' 2  Start claude anywhere:             a :terminal, a tmux pane',
    ' 3  It appears here by itself.         Nothing? ' .. command .. ' health',
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

--- The lines of one session, made anew only if something in them has changed.
---@param session bellboard.Session
---@param columns bellboard.Columns
---@param open boolean|nil
---@return bellboard.Line[]
local function lines_of(session, columns, open)
  local id = session.session_id
  local where, since = ui.place(session), ui.age(session.since)
  local known = fixed_of(session)
  local widths = ('%d %d %d'):format(columns.width, columns.branch, columns.title)
  local key = table.concat({ where, since, widths, ui.group(session), open and 'open' or '' }, '|')
  if known.key == key and not open then
    return known.lines
  end
  local lines = { line(head(session, columns, where, since), id, true) }
  local summary = members(session)
  if open then
    for _, chunks in ipairs(details(session)) do
      lines[#lines + 1] = line(chunks, id)
    end
  elseif summary then
    lines[2] = line({ { '   ▸ ' .. summary, 'BellboardDim' } }, id)
  end
  known.key, known.lines = key, lines
  return lines
end

--- All lines of the board.
---@param width integer
---@param unfolded table<string, boolean> by session id
---@return bellboard.Line[]
M.compose = function(width, unfolded)
  local sessions = bellboard.sessions()
  if #sessions == 0 then
    return first_run()
  end
  local names, groups = by_repository(sessions)
  local left = (' %s · %s'):format(
    amount(#names, 'repository', 'repositories'),
    amount(#sessions, 'session', 'sessions')
  )
  local right = bellboard.stale() and 'host is away  g? help ' or 'g? help '
  local gap = math.max(width - ui.width(left) - #right, 2)
  ---@type bellboard.Line[]
  local lines = { line({ { left .. (' '):rep(gap) .. right, 'BellboardDim' } }), line({ { '' } }) }
  local columns = measure(sessions, width)
  for _, name in ipairs(names) do
    lines[#lines + 1] = line({ { ' ' .. name, 'BellboardRepository' } })
    for _, session in ipairs(groups[name]) do
      vim.list_extend(lines, lines_of(session, columns, unfolded[session.session_id]))
    end
  end
  return lines
end

return M
