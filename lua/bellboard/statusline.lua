-- The text of the statusline: computed on changes, looked up on redraws.
local buttons = require('bellboard.buttons')
local cells = require('bellboard.text')
local config = require('bellboard.config')
local format = require('bellboard.format')
local host = require('bellboard.process.talk')
local ink = require('bellboard.ink')
local records = require('bellboard.records')
local sessions = require('bellboard.sessions')
local style = require('bellboard.highlight')
local terminals = require('bellboard.terminals')

local M = {}

local api = vim.api

---@class bellboard.StatuslineOpts
---@field plain? boolean without colours and mouse
---@field sessions? boolean an item per session instead of counts
---@field on? string the group whose background to use; default: that of the statusline

---@class bellboard.StatuslineTexts
---@field items bellboard.Item[]
---@field styled table<string, string> by the group of the background
---@field plain string

---@alias bellboard.Layout 'counts'|'sessions'

local used = false -- something has asked for a text, such as a statusline

---@type table<bellboard.Layout, bellboard.StatuslineTexts|nil> the layouts in use
local texts = { counts = { items = {}, styled = {}, plain = '' } }

--- The number of blocked sessions and how long they have waited; for a single one, what it asks.
---@param room integer
---@return bellboard.Item[]
local function blocked_items(room)
  local options, blocked = config.get().statusline, {}
  local tally, oldest = {}, math.huge
  for _, session in ipairs(sessions.list()) do
    if session.status ~= 'blocked' then
      break
    end
    blocked[#blocked + 1] = session
    local icon = style.icon(session)
    tally[icon] = (tally[icon] or 0) + 1
    oldest = math.min(oldest, session.since)
  end
  local heads = {}
  for _, name in ipairs({ 'blocked', 'question' }) do
    local icon = style.icon_named(name)
    if tally[icon] then
      heads[#heads + 1] =
        options.format.count:gsub('{(%w+)}', { icon = icon, count = tostring(tally[icon]) })
      tally[icon] = nil
    end
  end
  local known = { count = table.concat(heads, ' '), waits = format.waits(oldest) }
  local one = #blocked == 1 and options.detail
  local said = one and format.of_session(blocked[1]) or function()
    return ''
  end
  local group, on = style.group_of('blocked'), buttons.number({ status = 'blocked' })
  return format.fill(one and options.format.one or options.format.many, function(field)
    return known[field] or said(field)
  end, room, group, on)
end

--- Items of counts, as the same few recur.
---@type table<string, bellboard.Item[]>
local counted = {}

---@param status bellboard.Status
---@param count integer
---@return bellboard.Item[]
local function count_items(status, count)
  local options, icon, group =
    config.get().statusline, style.icon_named(status), style.group_of(status)
  local key =
    table.concat({ options.format.count, options.width, icon, group, status, count }, '\0')
  if not counted[key] then
    local known = { icon = icon, count = tostring(count) }
    counted[key] = format.fill(options.format.count, function(field)
      return known[field] or ''
    end, options.width, group, buttons.number({ status = status }))
  end
  return counted[key]
end

--- How many of those at work are quiet.
---@return bellboard.Item[]
local function quiet_items()
  local quiet = #vim.tbl_filter(style.is_quiet, sessions.list())
  return quiet > 0 and { { (' (%d quiet)'):format(quiet), 'BellboardQuiet' } } or {}
end

---@type table<bellboard.Layout, fun(): bellboard.Item[]>
local layouts = {}

layouts.counts = function()
  local options, counts, rest = config.get().statusline, sessions.counts(), {}
  local blocked = (counts.blocked or 0) > 0
  for _, status in ipairs(sessions.statuses) do
    local count = counts[status] or 0
    -- Idle sessions only show while there is nothing else.
    local shown = status ~= 'idle' or (#rest == 0 and not blocked)
    if count > 0 and status ~= 'blocked' and shown then
      if #rest > 0 then
        rest[#rest + 1] = { ' ' }
      end
      vim.list_extend(rest, count_items(status, count))
      if status == 'working' then
        vim.list_extend(rest, quiet_items())
      end
    end
  end
  if not blocked then
    return rest
  end
  local gap = #rest > 0 and { { '  ' } } or {}
  local items = blocked_items(options.width - cells.sum(rest) - cells.sum(gap))
  return vim.list_extend(vim.list_extend(items, gap), rest)
end

layouts.sessions = function()
  buttons.prune(sessions.get)
  local options, items, room = config.get().statusline, {}, config.get().statusline.width
  local all, left = sessions.list(), #sessions.list()
  local counts = sessions.counts()
  if (counts.idle or 0) < left then
    left = left - (counts.idle or 0) -- they come last
  end
  for nth = 1, left do
    local session = all[nth]
    local on = buttons.number({ id = session.session_id })
    local gap = nth > 1 and { { '  ' } } or {}
    local more = nth < left and #tostring(left) + 3 or 0 -- room for the number of those left out
    local space = room - cells.sum(gap) - more
    local wanted, group = options.format.session, style.group(session)
    local most = nth == 1 and space or options.width -- the first may be cut
    local item = format.fill(wanted, format.of_session(session), most, group, on)
    if nth > 1 and cells.sum(item) > space then
      items[#items + 1] = { ('  …%d'):format(left - nth + 1) }
      break
    end
    vim.list_extend(vim.list_extend(items, gap), item)
    room = room - cells.sum(gap) - cells.sum(item)
  end
  return items
end

--- Items as 'statusline' text: `%` doubled, colours from `paint`, clickable.
---@param items bellboard.Item[]
---@param paint fun(group: string|nil): string
---@return string
M.render = function(items, paint)
  local click, parts, on = config.get().statusline.click, {}, nil
  for _, item in ipairs(items) do
    if click and item.on ~= on then
      parts[#parts + 1] = on and '%X' or ''
      parts[#parts + 1] = item.on and buttons.start(item.on) or ''
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

--- Plain text that is safe in 'statusline' even unescaped.
---@param text string
---@return string
local function defused(text)
  return (text:gsub('%%', '％'))
end

--- The groups of a bar, in which `%*` restores its own colours.
local BARS = { StatusLine = true, StatusLineNC = true }

---@param layout bellboard.Layout
---@param ground string
---@return string
local function styled_on(layout, ground)
  local known = texts[layout]
  if not known.styled[ground] then
    local plain = BARS[ground] and '%*' or ('%%#%s#'):format(ground)
    local text = M.render(known.items, function(group)
      if not group and not sessions.stale() then
        return plain
      end
      return ('%%#%s#'):format(ink.on(group or 'BellboardStale', ground))
    end)
    known.styled[ground] = text ~= '' and text .. plain or ''
  end
  return known.styled[ground]
end

--- What to do where programs report and nothing can read it.
---@return bellboard.Item[]
local function unread_items()
  local why, step = host.trouble()
  local count = why and records.count() or 0
  local text = ('bellboard: %d %s here; %s'):format(count, count == 1 and 'agent' or 'agents', step)
  return count > 0 and { { text } } or {}
end

---@param layout bellboard.Layout
---@return boolean changed
local function work_out(layout)
  local before = texts[layout]
  local items = layouts[layout]()
  if #items == 0 then
    items = unread_items()
  elseif sessions.stale() then -- not everybody sees colours
    items = vim.list_extend(vim.list_slice(items), { { ' outdated' } })
  end
  texts[layout] = { items = items, styled = {}, plain = defused(cells.joined(items)) }
  if before and before.styled.StatusLine == styled_on(layout, 'StatusLine') then
    texts[layout] = before
    return false
  end
  return true
end

--- Set b:bellboard_status in the terminal buffer of each session.
---@return boolean changed
local function label_terminals()
  local changed, wanted = false, config.get().statusline.format.terminal
  for tty, buf in pairs(terminals.list()) do
    if api.nvim_buf_is_valid(buf) then
      local session, text = sessions.of_tty(tty), ''
      if session then
        text = defused(cells.joined(format.fill(wanted, format.of_session(session), 60, '')))
      end
      if (vim.b[buf].bellboard_status or '') ~= text then
        vim.b[buf].bellboard_status = text
        changed = true
      end
    end
  end
  return changed
end

--- The value of g:bellboard_status_dict.
---@return table<string, any>
local function dict()
  local first = sessions.list()[1]
  local known = { text = texts.counts.plain, total = #sessions.list(), stale = sessions.stale() }
  if first and first.status == 'blocked' then
    known.project = defused(first.words.project)
    known.asks = defused(format.of_session(first)('asks'))
    known.kind, known.since = first.kind, first.since
  end
  for status, count in pairs(sessions.counts()) do
    known[status] = count
  end
  return known
end

--- Compute all texts again, and redraw if one has changed.
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
    vim.o.titlestring = vim.o.titlestring -- makes Neovim evaluate it again
  end
end

--- The items of a layout, for components with their own colours. A new table only after a change.
---@param layout bellboard.Layout
---@return bellboard.Item[]
M.items = function(layout)
  used = true
  if not texts[layout] then
    work_out(layout)
  end
  return texts[layout].items
end

--- The group of the bar that is drawn: in `%!`, Neovim names its window; in `%{}`, the focused one.
---@return string
local function bar()
  local here = api.nvim_get_current_win()
  local drawn, focused = vim.g.statusline_winid or here, tonumber(vim.g.actual_curwin) or here
  return (vim.o.laststatus == 3 or drawn == focused) and 'StatusLine' or 'StatusLineNC'
end

--- See |bellboard.statusline()|.
---@param opts? bellboard.StatuslineOpts
---@return string
M.text = function(opts)
  used = true
  opts = opts or {}
  local layout = opts.sessions and 'sessions' or 'counts'
  if not texts[layout] then
    work_out(layout)
  end
  return opts.plain and texts[layout].plain or styled_on(layout, opts.on or bar())
end

---@return boolean
M.is_used = function()
  return used
end

return M
