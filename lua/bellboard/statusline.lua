-- The statusline's text: worked out when something changes, looked up when something is drawn.
local bellboard = require('bellboard')
local config = require('bellboard.config')
local jump = require('bellboard.jump')
local ui = require('bellboard.ui')

local M = {}

local api = vim.api

---@class bellboard.StatuslineOpts
---@field plain? boolean without colours and mouse
---@field sessions? boolean an item for each session instead of counts

---@class bellboard.Item: bellboard.Chunk a piece of text; without a group in the bar's own colour
---@field on? integer what a click on it goes to

---@class bellboard.Texts
---@field items bellboard.Item[]
---@field styled string
---@field plain string

---@alias bellboard.Layout 'counts'|'sessions'

---@type table<bellboard.Layout, bellboard.Texts|nil> those that somebody asked for
local texts = { counts = { items = {}, styled = '', plain = '' } }

--- What a click goes to, by the number that the item carries. Numbers are never used again: the
--- item may have been drawn before the change that the click comes after.
---@type table<integer, { id?: string, status?: bellboard.Status }>
local targets = {}
---@type table<string, integer>
local number_of = {}
local numbers = 0

---@param key string
---@param target { id?: string, status?: bellboard.Status }
---@return integer
local function number(key, target)
  if not number_of[key] then
    numbers = numbers + 1
    number_of[key], targets[numbers] = numbers, target
  end
  return number_of[key]
end

--- How long it has been waiting for you; the first minute need not be counted.
---@param since number
---@return string
local function waits(since)
  local age = ui.age(since)
  return age:match('[mhd]$') and age or ''
end

--- What a format can say of a session.
---@type table<string, fun(session: bellboard.Session): string>
local fields = {
  icon = ui.icon,
  place = ui.place,
  status = function(session)
    return session.status
  end,
  detail = function(session)
    return session.words.text
  end,
  asks = function(session)
    local words = session.words
    return words.text ~= '' and words.text or words.word
  end,
  waits = function(session)
    return session.status == 'blocked' and waits(session.since) or ''
  end,
  age = function(session)
    return ui.age(session.since)
  end,
}

--- The fields of which a part is still worth reading, and how little of it.
local LEAST = { asks = 6, detail = 6, title = 6, branch = 3 }
local NAME = 16 -- cells of a project's name

---@param items bellboard.Item[]
---@return integer
local function cells(items)
  local sum = 0
  for _, item in ipairs(items) do
    sum = sum + ui.width(item[1])
  end
  return sum
end

--- What a format says. A field that is empty, or for which there is no room, takes the text before
--- it along; the long ones share what the others leave.
---@param format string
---@param value fun(field: string): string
---@param room integer
---@param group string of icon and count
---@param on? integer
---@return bellboard.Item[]
local function filled(format, value, room, group, on)
  local parts, taken, long, name = {}, 0, 0, nil
  for before, field in format:gmatch('([^{]*){(%w+)}') do
    local part = { before = before, field = field, text = value(field), long = LEAST[field] }
    parts[#parts + 1] = part
    if part.long then
      long = long + 1
    elseif field == 'project' then
      name = part
    elseif part.text ~= '' then
      taken = taken + ui.width(before) + ui.width(part.text)
    end
  end
  if name then
    name.text = ui.cut(name.text, math.min(NAME, room - taken - ui.width(name.before)))
    taken = taken + ui.width(name.before) + ui.width(name.text)
  end
  local rest, items = room - taken, {}
  for _, part in ipairs(parts) do
    local text = part.text
    if part.long then
      local share = math.floor(rest / long) - ui.width(part.before)
      local fits = share >= math.min(part.long, ui.width(text))
      text = fits and ui.cut(text, share) or ''
      rest = rest - (text ~= '' and ui.width(part.before) + ui.width(text) or 0)
      long = long - 1
    end
    if text ~= '' then
      local urgent = part.field == 'icon' or part.field == 'count'
      if part.before ~= '' then
        items[#items + 1] = { part.before, nil, on = on }
      end
      items[#items + 1] = { text, urgent and group or nil, on = on }
    end
  end
  local after = format:match('[^}]*$')
  if after ~= '' and #items > 0 then
    items[#items + 1] = { after, nil, on = on }
  end
  return items
end

---@param session bellboard.Session
---@return fun(field: string): string
local function of_session(session)
  return function(field)
    return fields[field] and fields[field](session) or session.words[field] or ''
  end
end

--- Those who are blocked, most urgent of all: how many, for how long, and if it is one, on what.
---@param room integer
---@return bellboard.Item[]
local function blocked_items(room)
  local options, blocked = config.get().statusline, {}
  local tally, oldest = {}, math.huge
  for _, session in ipairs(bellboard.sessions()) do
    if session.status ~= 'blocked' then
      break
    end
    blocked[#blocked + 1] = session
    local icon = ui.icon(session)
    tally[icon] = (tally[icon] or 0) + 1
    oldest = math.min(oldest, session.since)
  end
  local heads = {}
  for _, name in ipairs({ 'blocked', 'question' }) do
    local icon = ui.icon_named(name)
    if tally[icon] then
      heads[#heads + 1] =
        options.format.count:gsub('{(%w+)}', { icon = icon, count = tostring(tally[icon]) })
      tally[icon] = nil
    end
  end
  local known = { count = table.concat(heads, ' '), waits = waits(oldest) }
  local one = #blocked == 1 and options.detail
  local said = one and of_session(blocked[1]) or function()
    return ''
  end
  local group, on = ui.group_of('blocked'), number('blocked', { status = 'blocked' })
  return filled(one and options.format.one or options.format.many, function(field)
    return known[field] or said(field)
  end, room, group, on)
end

--- The same few counts come again and again; their items are made once.
---@type table<string, bellboard.Item[]>
local counted = {}

---@param status bellboard.Status
---@param count integer
---@return bellboard.Item[]
local function count_items(status, count)
  local options, icon, group = config.get().statusline, ui.icon_named(status), ui.group_of(status)
  local key =
    table.concat({ options.format.count, options.width, icon, group, status, count }, '\0')
  if not counted[key] then
    local known = { icon = icon, count = tostring(count) }
    counted[key] = filled(options.format.count, function(field)
      return known[field] or ''
    end, options.width, group, number(status, { status = status }))
  end
  return counted[key]
end

---@type table<bellboard.Layout, fun(): bellboard.Item[]>
local layouts = {}

layouts.counts = function()
  local options, counts, rest = config.get().statusline, bellboard.counts(), {}
  local blocked = (counts.blocked or 0) > 0
  for _, status in ipairs(bellboard.statuses) do
    local count = counts[status] or 0
    -- Idle sessions are nothing for you: they show only while there is nothing else.
    local shown = status ~= 'idle' or (#rest == 0 and not blocked)
    if count > 0 and status ~= 'blocked' and shown then
      if #rest > 0 then
        rest[#rest + 1] = { ' ' }
      end
      vim.list_extend(rest, count_items(status, count))
    end
  end
  if not blocked then
    return rest
  end
  local gap = #rest > 0 and { { '  ' } } or {}
  local items = blocked_items(options.width - cells(rest) - cells(gap))
  return vim.list_extend(vim.list_extend(items, gap), rest)
end

layouts.sessions = function()
  for key, on in pairs(number_of) do
    if targets[on].id and not bellboard.session(targets[on].id) then
      number_of[key], targets[on] = nil, nil
    end
  end
  local options, items, room = config.get().statusline, {}, config.get().statusline.width
  local sessions, left = bellboard.sessions(), #bellboard.sessions()
  local counts = bellboard.counts()
  if (counts.idle or 0) < left then
    left = left - (counts.idle or 0) -- they are the last ones
  end
  for place = 1, left do
    local session = sessions[place]
    local on = number('session ' .. session.session_id, { id = session.session_id })
    local gap = place > 1 and { { '  ' } } or {}
    local more = place < left and #tostring(left) + 3 or 0 -- the word on those left out
    local space = room - cells(gap) - more
    local format, group = options.format.session, ui.group(session)
    local most = place == 1 and space or options.width -- a name cut to nothing is none
    local item = filled(format, of_session(session), most, group, on)
    if place > 1 and cells(item) > space then
      items[#items + 1] = { ('  …%d'):format(left - place + 1) }
      break
    end
    vim.list_extend(vim.list_extend(items, gap), item)
    room = room - cells(gap) - cells(item)
  end
  return items
end

--- Items as a statusline wants them: `%` doubled, colours from `paint`, and what reacts to clicks.
---@param items bellboard.Item[]
---@param paint fun(group: string|nil): string
---@return string
M.render = function(items, paint)
  local click, parts, on = config.get().statusline.click, {}, nil
  for _, item in ipairs(items) do
    if click and item.on ~= on then
      parts[#parts + 1] = on and '%X' or ''
      parts[#parts + 1] = item.on
          and ("%%%d@v:lua.require'bellboard.statusline'.click@"):format(item.on)
        or ''
      on = item.on
    end
    parts[#parts + 1] = paint(item[2])
    parts[#parts + 1] = (item[1]:gsub('%%', '%%%%'))
  end
  if #items > 0 then
    parts[#parts + 1] = on and '%X' or ''
  end
  return table.concat(parts)
end

--- Plain text that stays text even if it is put into a statusline as it is.
---@param text string
---@return string
local function defused(text)
  return (text:gsub('%%', '％'))
end

---@param group string|nil
---@return string
local function in_own_colours(group)
  if group == nil then
    return bellboard.stale() and '%#BellboardStale#' or '%*'
  end
  return ('%%#%s#'):format(group)
end

---@param layout bellboard.Layout
---@return boolean changed
local function work_out(layout)
  local items, parts = layouts[layout](), {}
  for place, item in ipairs(items) do
    parts[place] = item[1]
  end
  local styled = M.render(items, in_own_colours)
  styled = styled ~= '' and styled .. '%*' or ''
  if texts[layout] and texts[layout].styled == styled then
    return false
  end
  texts[layout] = { items = items, styled = styled, plain = defused(table.concat(parts)) }
  return true
end

--- Every terminal buffer of a session says so in b:bellboard_status.
---@return boolean changed
local function label_terminals()
  local changed, format = false, config.get().statusline.format.terminal
  for tty, buf in pairs(jump.terminals()) do
    if api.nvim_buf_is_valid(buf) then
      local session, text = bellboard.session_of_tty(tty), ''
      if session then
        for _, item in ipairs(filled(format, of_session(session), 60, '')) do
          text = text .. item[1]
        end
        text = defused(text)
      end
      if (vim.b[buf].bellboard_status or '') ~= text then
        vim.b[buf].bellboard_status = text
        changed = true
      end
    end
  end
  return changed
end

--- What a statusline that formats by itself wants to know.
---@return table<string, any>
local function dict()
  local first = bellboard.sessions()[1]
  local known = { text = texts.counts.plain, total = #bellboard.sessions() }
  known.stale = bellboard.stale()
  if first and first.status == 'blocked' then
    known.project, known.asks = defused(first.words.project), defused(fields.asks(first))
    known.kind, known.since = first.kind, first.since
  end
  for status, count in pairs(bellboard.counts()) do
    known[status] = count
  end
  return known
end

--- Work out anew everything that may be asked for, and draw it if something in it has changed.
M.update = function()
  local changed = label_terminals()
  for layout in pairs(texts) do
    changed = work_out(layout) or changed
  end
  api.nvim_set_var('bellboard_status', texts.counts.plain)
  api.nvim_set_var('bellboard_status_dict', dict())
  if not changed then
    return
  end
  vim.cmd.redrawstatus({ bang = true })
  if vim.o.tabline ~= '' then
    vim.cmd.redrawtabline()
  end
  if vim.o.title and vim.o.titlestring:find('bellboard', 1, true) then
    vim.o.titlestring = vim.o.titlestring -- nothing else makes Neovim look at it again
  end
end

--- What a layout says, for those who paint it themselves. Another table only after a change.
---@param layout? bellboard.Layout
---@return bellboard.Item[]
M.items = function(layout)
  layout = layout or 'counts'
  if not texts[layout] then
    work_out(layout)
  end
  return texts[layout].items
end

--- See |bellboard.statusline()|.
---@param opts? bellboard.StatuslineOpts
---@return string
M.text = function(opts)
  if not opts then
    return texts.counts.styled
  end
  local layout = opts.sessions and 'sessions' or 'counts'
  if not texts[layout] then
    work_out(layout)
  end
  return opts.plain and texts[layout].plain or texts[layout].styled
end

--- A click on an item: left goes to that session, or to the next one of that status; right opens
--- the picker, middle the board.
---@param on integer
---@param button string
M.click = function(on, _, button)
  local target = targets[on]
  vim.schedule(function()
    if button ~= 'l' or not target then
      bellboard.run(button == 'm' and 'board' or 'pick')
    elseif target.id then
      bellboard.jump(target.id)
    else
      jump.step(1, target.status)
    end
  end)
end

return M
