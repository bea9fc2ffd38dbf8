-- The lines of the board.
local age = require('bellboard.age')
local canvas = require('bellboard.canvas')
local cells = require('bellboard.text')
local config = require('bellboard.config')
local groups = require('bellboard.board.groups')
local host = require('bellboard.process.talk')
local line_of = require('bellboard.line')
local program = require('bellboard.process.program')
local sessions = require('bellboard.sessions')
local statusline = require('bellboard.statusline')
local style = require('bellboard.highlight')

local M = {}

local FIRST_RUN = '/rplugin/python3/bellboard/screen/first_run.txt'

---@class bellboard.Line
---@field chunks bellboard.Chunk[]
---@field text string
---@field id? string the session that this line belongs to
---@field head? boolean whether it is the session's first line
---@field section? bellboard.Section the one that it is in
---@field at? integer the session's place in its section; nil: the line is a heading

---@param chunks bellboard.Chunk[]
---@param id? string
---@param head? boolean
---@return bellboard.Line
local function line(chunks, id, head)
  return { chunks = chunks, text = canvas.text(chunks), id = id, head = head }
end

-- The lines below an unfolded session.

---@param task bellboard.Task
---@return string
local function age_of(task)
  return task.since and ', ' .. age.of(task.since) or ''
end

--- The name of another session, if it is known.
---@param id string
---@return string
local function name_of(id)
  local session = sessions.get(id)
  if not session then
    return id
  end
  local words = session.words
  local name = vim.trim(('%s %s'):format(words.project, words.branch))
  return ('%s, %s'):format(words.title ~= '' and words.title or name, words.word)
end

---@alias bellboard.AddDetail fun(name: string, text: any)

--- Its subagents, its team, its lead and its background tasks.
---@param session bellboard.Session
---@param add bellboard.AddDetail
local function crew(session, add)
  for _, agent in ipairs(session.agents or {}) do
    local text = ('%s %s'):format(agent.type or '', agent.description or '')
    add('agent', text .. (agent.blocked and ', blocked' or '') .. age_of(agent))
  end
  for _, id in ipairs(session.team or {}) do
    add('teammate', name_of(id))
  end
  if session.parent then
    add('lead', name_of(session.parent))
  end
  for _, task in ipairs(session.background or {}) do
    add(task.type or 'shell', (task.description or task.id) .. age_of(task))
  end
end

--- Its state beyond the status.
---@param session bellboard.Session
---@param add bellboard.AddDetail
local function state(session, add)
  if session.tasks then
    add('tasks', ('%d of %d done'):format(session.tasks.done, session.tasks.total))
  end
  if #(session.markers or {}) > 0 then
    add('markers', table.concat(session.markers, ', '))
  end
  if session.quiet_since then
    add('quiet', 'for ' .. age.of(session.quiet_since))
  end
  if session.tool_since then
    add('tool', ('%s for %s'):format(session.tool or '', age.of(session.tool_since)))
  end
  local left = age.left(session.snoozed_until)
  if left ~= '' then
    add('snoozed', 'for ' .. left)
  end
  add('model', session.words.model)
end

--- Its last messages, the newest prompt last.
---@param session bellboard.Session
---@param add bellboard.AddDetail
local function said(session, add)
  local prompts = session.prompts or { session.last_prompt }
  for _, prompt in ipairs(prompts) do
    add('prompt', prompt)
  end
  add('message', session.last_message)
end

--- Where it runs.
---@param session bellboard.Session
---@param add bellboard.AddDetail
local function whereabouts(session, add)
  if session.machine then
    local pid = session.far_pid and 'process ' .. session.far_pid or ''
    add('machine', ('%s %s %s'):format(session.machine, session.terminal or '', pid))
  end
  add('link', vim.trim(('%s  %s'):format(age.outdated(session), session.link_why or '')))
  add('cwd', session.cwd)
  local pull_request = { session.words.pull_request, session.pull_request_state }
  add('pr', table.concat(pull_request, ' ') .. ' ' .. (session.pull_request_url or ''))
  add('ports', table.concat(session.ports or {}, ', '))
  local process = { session.pid or '', session.tty or '', session.terminal_program or '' }
  add('process', table.concat(process, ' '))
  add('ssh', session.ssh)
  add('session', session.session_id)
  if #(session.previous or {}) > 0 then
    add('before', table.concat(session.previous, ', '))
  end
end

---@param session bellboard.Session
---@return bellboard.Chunk[][]
local function details(session)
  local lines = {}
  local function add(name, text)
    text = cells.safe(text)
    if text ~= '' then
      local label = ('     %s '):format(cells.fit(cells.safe(name), 9))
      lines[#lines + 1] = { { label, 'BellboardDim' }, { text } }
    end
  end
  for _, part in ipairs({ crew, state, said, whereabouts }) do
    part(session, add)
  end
  return lines
end

---@type string[]|nil
local first_text

--- The text with these words filled in, without lines in which a word is empty.
---@param named table<string, string>
---@return string[]
local function filled(named)
  first_text = first_text or vim.fn.readfile(program.root() .. FIRST_RUN)
  local lines = {}
  for _, step in ipairs(first_text) do
    local complete = true
    step = step:gsub('{(%w+)}', function(name)
      complete = complete and named[name] ~= ''
      return named[name]
    end)
    lines[#lines + 1] = complete and step or nil
  end
  return lines
end

--- The reason why there can be no session, or how to start one.
---@return string[]
local function first_run()
  local why, step = host.trouble()
  if why then
    return { (' Not running: %s.'):format(cells.safe(why)), '', ' 1  ' .. step }
  end
  local command, claude = ':ClaudeSessions', config.claude()[1]
  local is_there = vim.fn.executable(claude) == 1
  return filled({
    missing = is_there and '' or cells.safe(claude),
    new = command .. ' new' .. (is_there and '' or ' --agent NAME'),
    health = command .. ' health',
    install = command .. ' install',
    demo = command .. ' demo',
  })
end

---@class bellboard.Kept the lines of a session
---@field lines bellboard.Line[]
---@field key string what they depend on
---@field open boolean

--- Lines that the board shows now. A changed session is a new table. This is no weak table: lines
--- lead back to their session, by its section, and LuaJIT would keep both for ever.
---@type table<bellboard.Session, bellboard.Kept>
local kept = {}

--- The lines of a session; the previous ones if nothing in them has changed.
---@param known bellboard.Kept|nil
---@param session bellboard.Session
---@param layout bellboard.Layout
---@param choice bellboard.BoardChoice
---@return bellboard.Line[]
local function lines_of(known, session, layout, choice)
  local id = session.session_id
  local open, marked = choice.unfolded[id] or false, choice.marked[id] or false
  local key = line_of.key(session, layout) .. (marked and 'marked' or '')
  if known and known.key == key and not (open or known.open) then
    kept[session] = known
    return known.lines
  end
  local lines = { line(line_of.chunks(session, layout, marked and '>' or nil), id, true) }
  local members = session.words.members
  if open then
    for _, chunks in ipairs(details(session)) do
      lines[#lines + 1] = line(chunks, id)
    end
  elseif members ~= '' then
    lines[2] = line({ { '   ▸ ' .. members, 'BellboardDim' } }, id)
  end
  kept[session] = { lines = lines, key = key, open = open }
  return lines
end

--- The lines while no session is known: how to start.
---@return bellboard.Line[]
local function start()
  return vim.tbl_map(function(text)
    return line({ { text, 'BellboardDetail' } })
  end, first_run())
end

---@param count integer
---@param noun string
---@return string
local function amount(count, noun)
  return ('%d %s'):format(count, count == 1 and noun or noun .. 's')
end

--- The user's choices that differ from the default.
---@param choice bellboard.BoardChoice
---@return string[]
local function chosen(choice)
  local options, words = config.get().board, {}
  if choice.filter ~= '' then
    words[#words + 1] = 'filter: ' .. cells.safe(choice.filter)
  end
  if choice.here then
    words[#words + 1] = 'only ' .. cells.safe(vim.fn.fnamemodify(choice.here, ':~'))
  end
  if choice.group ~= options.group then
    words[#words + 1] = choice.group == 'none' and 'flat' or 'by ' .. choice.group
  end
  if choice.sort ~= options.sort then
    words[#words + 1] = 'sorted by ' .. choice.sort
  end
  if next(choice.marked) then
    words[#words + 1] = ('%d marked'):format(vim.tbl_count(choice.marked))
  end
  return words
end

---@param all bellboard.Session[]
---@param listed bellboard.Session[]
---@param width integer
---@param choice bellboard.BoardChoice
---@return bellboard.Line
local function heading(all, listed, width, choice)
  local count, where = amount(#all, 'session'), groups.repositories(listed)
  if #listed < #all then
    count = ('%d of %s'):format(#listed, count)
  end
  if #where == 1 then
    count = ('%s in %s'):format(count, cells.safe(where[1]))
  end
  local right = sessions.stale() and 'outdated  g? help ' or 'g? help '
  local is_counted = #listed == #all and statusline.is_used() -- on the same screen
  local counts = width >= 60 and not is_counted and style.tally(listed) or {}
  local room = width - 2 - #right - cells.sum(counts)
  local texts = { count, unpack(chosen(choice)) }
  local left = ' ' .. table.concat(texts, ' · ')
  local of = #where > 1 and (' %d repositories ·'):format(#where) .. left or left
  left = cells.width(of) <= room and of or left
  local chunks = { { cells.fit(left, math.max(room, 10)), 'BellboardDim' } }
  vim.list_extend(chunks, counts)
  chunks[#chunks + 1] = { '  ' .. right, 'BellboardDim' }
  return line(chunks)
end

---@param section bellboard.Section
---@param folded boolean
---@param width integer
---@return bellboard.Line
local function title(section, folded, width)
  local name, summary = cells.safe(section.title), {}
  if folded then
    local inside = amount(#section.sessions, 'session')
    summary = { { ('  ▸ %s  '):format(inside), 'BellboardDim' } }
    vim.list_extend(summary, style.tally(section.sessions))
  end
  local room = width - 2 - cells.sum(summary)
  local group = section.key == 'needs' and 'BellboardBlocked' or 'BellboardRepository'
  name = cells.cut(name ~= '' and name or 'elsewhere', math.max(room, 8))
  local made = line({ { ' ' .. name, group }, unpack(summary) })
  made.section = section
  return made
end

--- A line for each unreachable machine, with the reason and the number of sessions without a row.
---@param listed bellboard.Session[]
---@param width integer
---@return bellboard.Line[]
local function outages(listed, width)
  local down, names, folded = {}, {}, {}
  for _, sessions_of in ipairs({ listed, sessions.folded() }) do
    for _, session in ipairs(sessions_of) do
      local machine = session.machine
      if session.link_since and machine and not down[machine] then
        down[machine] = session
        names[#names + 1] = machine
      end
      if session.folded and machine then
        folded[machine] = (folded[machine] or 0) + 1
      end
    end
  end
  table.sort(names)
  return vim.tbl_map(function(name)
    local why, count = cells.safe(down[name].link_why or ''), folded[name]
    local since = age.of(down[name].link_since)
    local text = count
        and (' %s: %s, unreachable for %s'):format(
          cells.safe(name),
          amount(count, 'session'),
          since
        )
      or (' %s cannot be reached (%s)'):format(cells.safe(name), since)
    text = text .. (why ~= '' and ': ' .. why or '')
    return line({ { cells.cut(text, width - 1), 'BellboardDim' } })
  end, names)
end

---@class bellboard.Composed
---@field lines bellboard.Line[]
---@field sections bellboard.Section[]

--- The board is closed.
M.forget = function()
  kept = {}
end

--- All lines of the board.
---@param width integer
---@param choice bellboard.BoardChoice
---@param held? bellboard.Held
---@return bellboard.Composed
M.compose = function(width, choice, held)
  local all, before = sessions.list(), kept
  kept = {}
  if #all + #sessions.folded() == 0 then
    return { lines = start(), sections = {} }
  end
  local listed = groups.listed(all, choice)
  local found = groups.of(listed, choice, held)
  local lines = { heading(all, listed, width, choice) }
  vim.list_extend(lines, outages(listed, width))
  lines[#lines + 1] = line({ { '' } })
  if #listed == 0 and #all > 0 then
    lines[#lines + 1] = line({ { ' No session matches.', 'BellboardDetail' } })
  end
  local open = vim.tbl_filter(function(section)
    return not choice.folded[section.key]
  end, found)
  local layout = line_of.layout(open, width - 1, { stretch = true })
  for _, section in ipairs(found) do
    local folded = choice.folded[section.key] or false
    if section.title then
      lines[#lines + 1] = title(section, folded, width)
    end
    for at, session in ipairs(folded and {} or section.sessions) do
      for _, each in ipairs(lines_of(before[session], session, layout, choice)) do
        each.section, each.at = section, at
        lines[#lines + 1] = each
      end
    end
  end
  return { lines = lines, sections = found }
end

return M
