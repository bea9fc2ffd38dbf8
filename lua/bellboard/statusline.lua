-- The text of the statusline: computed on changes, looked up on redraws.
local age = require('bellboard.age')
local cells = require('bellboard.text')
local config = require('bellboard.config')
local edit = require('bellboard.session_edit')
local host = require('bellboard.process.talk')
local message = require('bellboard.message')
local records = require('bellboard.report.records')
local remembered = require('bellboard.remembered')
local sessions = require('bellboard.sessions')
local style = require('bellboard.highlight')
local terminals = require('bellboard.terminals')

local M = {}

local api = vim.api

---@class bellboard.StatuslineOpts
---@field plain? boolean without colors and mouse
---@field on? string the group that the text around it has; default: that of the bar

---@class bellboard.Item a button of the statusline
---@field text string
---@field status? bellboard.Status a click goes to the next session with it
---@field urgent? integer length of the start of the text that is highlighted

---@type bellboard.Item[]
local items = {}
---@type string
local plain = ''
---@type table<string, table<integer|false, string>> text for 'statusline', by what follows the
---highlighted part, and by the cells that there are, if not all
local rendered = {}
local clickable = true
local used = false -- whether a statusline or the like has asked for a text

local NAME = 16 -- maximum width of a project's name
local LEAST = 6 -- minimum width of a question that is cut
--- Cells of a window that are for the name of its file, and for the rest of Neovim's statusline.
local FILE, RULER = 20, 20
local TERMINAL = 60 -- maximum width of b:bellboard_status

--- The time that a session has waited, from the first minute on.
---@param since number
---@return string
local function waits(since)
  local waited = age.of(since)
  return waited:match('[mhd]$') and ' ' .. waited or ''
end

--- Counts by icon, and how long the oldest session has been blocked; of a single session also its
--- project and question.
---@param blocked bellboard.Session[]
---@param room integer
---@return bellboard.Item
local function blocked_item(blocked, room)
  local oldest, count = math.huge, {}
  for _, session in ipairs(blocked) do
    oldest = math.min(oldest, session.since)
  end
  for _, chunk in ipairs(style.tally(blocked)) do
    count[#count + 1] = vim.trim(chunk[1])
  end
  local text, waited = table.concat(count, ' '), waits(oldest)
  local urgent = #text
  if #blocked == 1 and config.get().statusline.detail then
    local words = blocked[1].words
    room = room - cells.width(text) - cells.width(waited)
    local name = cells.cut(words.project, math.min(NAME, room - 1))
    text = name ~= '' and text .. ' ' .. name or text
    room = room - cells.width(name) - 3
    local asks = words.text ~= '' and words.text or words.word
    if asks ~= '' and room >= math.min(LEAST, cells.width(asks)) then
      text = text .. ': ' .. cells.cut(asks, room)
    end
  end
  return { text = text .. waited, status = 'blocked', urgent = urgent }
end

--- One item for each status, the most urgent first; what is parked needs nobody, and comes last.
---@param room integer cells
---@return bellboard.Item[]
local function counts(room)
  local all = sessions.list()
  local listed = vim.tbl_filter(function(session)
    return not edit.is_parked(session)
  end, all)
  local by_status, parked = {}, #all - #listed
  for _, session in ipairs(listed) do
    by_status[session.status] = by_status[session.status] or {}
    table.insert(by_status[session.status], session)
  end
  local found, taken = {}, 0
  for _, status in ipairs(sessions.statuses) do
    -- Idle sessions only show while there is nothing else.
    local shown = status ~= 'idle' or (#found == 0 and not by_status.blocked)
    if by_status[status] and status ~= 'blocked' and shown then
      local text = style.icon_named(status) .. #by_status[status]
      local quiet = status == 'working' and #vim.tbl_filter(style.is_quiet, listed) or 0
      text = quiet > 0 and ('%s (%d quiet)'):format(text, quiet) or text
      found[#found + 1] = { text = #found > 0 and ' ' .. text or text, status = status }
      taken = taken + cells.width(found[#found].text)
    end
  end
  if parked > 0 then
    local text = ('%s(%d parked)'):format(#found > 0 and ' ' or '', parked)
    found[#found + 1], taken = { text = text }, taken + cells.width(text)
  end
  local least = by_status.blocked and 0 or 1
  while room < config.get().statusline.width and taken > room and #found > least do
    taken = taken - cells.width(table.remove(found).text) -- in a narrow window, the least urgent
  end
  if by_status.blocked then
    if taken > 0 then
      table.insert(found, 1, { text = '  ' })
      taken = taken + 2
    end
    table.insert(found, 1, blocked_item(by_status.blocked, room - taken))
  end
  return found
end

--- The advice if programs report and nothing can read them.
---@return bellboard.Item[]
local function unread()
  local why, step = host.trouble()
  local count = why and records.count() or 0
  local text = ('bellboard: %d %s here; %s'):format(count, count == 1 and 'agent' or 'agents', step)
  return count > 0 and { { text = text } } or {}
end

---@type string|nil why the function of the user failed
local failure

--- The text of the user's function; nil without one, or if it fails.
---@return bellboard.Item[]|nil
local function formatted()
  local format = config.get().statusline.format
  if not format then
    return nil
  end
  local ok, text = pcall(format, sessions.list())
  local why = not ok and tostring(text) or type(text) ~= 'string' and 'it returned no string' or nil
  if why and why ~= failure then
    message.error('statusline.format failed: ' .. why)
  end
  failure = why
  return not why and { { text = cells.safe(text) } } or nil
end

--- The items for so many cells.
---@param room integer
---@return bellboard.Item[]
local function items_for(room)
  local found = formatted() or counts(room)
  if #found == 0 then
    return unread()
  elseif sessions.stale() then
    found[#found + 1] = { text = ' outdated' }
  end
  return found
end

--- The cells for the text in the statusline of the window that is drawn; false: all.
---@param others integer cells for what else it shows
---@return integer|false
local function room_beside(others)
  local wanted = config.get().statusline.width + others
  local columns = api.nvim_win_get_width(0)
  if columns < wanted and vim.o.laststatus == 3 then
    columns = vim.o.columns
  end
  return columns < wanted and math.max(columns - others, 0)
end

--- Plain text that is safe in 'statusline' even unescaped.
---@param text string
---@return string
local function defused(text)
  return (text:gsub('%%', '％'))
end

--- Text for 'statusline': `%` doubled, clickable.
---@param urgent string what switches to the highlighted part
---@param after string what switches back
---@param room? integer|false cells; default: all that the text may take
---@return string
M.render = function(urgent, after, room)
  used, room = true, room or false
  rendered[after] = rendered[after] or {}
  if not rendered[after][room] then
    local parts = {}
    for _, item in ipairs(room and items_for(room) or items) do
      local head, rest = item.text:sub(1, item.urgent or 0), item.text:sub((item.urgent or 0) + 1)
      local on = clickable and item.status
      local nth = on and vim.fn.index(sessions.statuses, on) + 1
      parts[#parts + 1] = on and ("%%%d@v:lua.require'bellboard'._click@"):format(nth) or ''
      parts[#parts + 1] = head ~= '' and urgent .. head:gsub('%%', '%%%%') .. after or ''
      parts[#parts + 1] = rest:gsub('%%', '%%%%') .. (on and '%X' or '')
    end
    rendered[after][room] = table.concat(parts)
  end
  return rendered[after][room]
end

--- See |bellboard.statusline()|.
---@param opts? bellboard.StatuslineOpts
---@return string
M.text = function(opts)
  used = true
  if opts and opts.plain then
    return plain
  end
  local on = opts and opts.on -- another bar, such as the tabline, or a part of one
  local room = not on and room_beside(FILE)
  return M.render('%#BellboardBlocked#', on and ('%%#%s#'):format(on) or '%*', room)
end

--- Set b:bellboard_status in the terminal buffer of each session.
---@return boolean changed
local function label_terminals()
  local changed = false
  for tty, buf in pairs(terminals.list()) do
    if api.nvim_buf_is_valid(buf) then
      local session, text = sessions.of_tty(tty), ''
      if session then
        local words = session.words
        local parts = { style.icon(session), words.word, words.text, age.quiet(session) }
        text = table.concat(
          vim.tbl_filter(function(part)
            return part ~= ''
          end, parts),
          ' '
        )
        text = defused(cells.cut(text, TERMINAL))
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
  local values = { text = plain, total = #sessions.list(), stale = sessions.stale() }
  if first and first.status == 'blocked' then
    local words = first.words
    values.project = defused(words.project)
    values.asks = defused(words.text ~= '' and words.text or words.word)
    values.kind, values.since = first.kind, first.since
  end
  for status, count in pairs(sessions.counts()) do
    values[status] = count
  end
  return values
end

--- Compute all texts again, and redraw if one has changed.
M.update = function()
  local changed = label_terminals()
  local click, found = config.get().statusline.click, items_for(config.get().statusline.width)
  if click ~= clickable or not vim.deep_equal(found, items) then
    items, clickable, rendered, changed = found, click, {}, true
    local texts = {}
    for nth, item in ipairs(found) do
      texts[nth] = item.text
    end
    plain = defused(table.concat(texts))
  end
  api.nvim_set_var('bellboard_status', plain)
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

--- Whether a statusline or the like shows the counts.
---@return boolean
M.is_used = function()
  return used
end

local ITEM = "%{%v:lua.require'bellboard.statusline'.item()%}"
--- Neovim's own statusline while 'statusline' is empty, its default before 0.12, with the item.
local EMPTY = '%<%f %h%w%m%r %='
  .. ITEM
  .. "%{% &showcmdloc == 'statusline' ? '%-10.S ' : '' %}"
  .. "%{% exists('b:keymap_name') ? '<'..b:keymap_name..'> ' : '' %}"
  .. "%{% &ruler ? ( &rulerformat == '' ? '%-14.(%l,%c%V%) %P' : &rulerformat ) : '' %}"
--- Remembered: the user read how to add the item.
local ADVICE = 'statusline-told'
--- Milliseconds for a statusline to use the text, before the message.
local PATIENCE = 2000

--- The counts in Neovim's own statusline, with space up to the next item.
---@return string
M.item = function()
  local text = M.render('%#BellboardBlocked#', '%*', room_beside(FILE + RULER))
  return text == '' and '' or text .. '  '
end

--- Put the item into Neovim's own statusline.
---@return boolean done false: the user has another one
local function put()
  if api.nvim_get_option_info2('statusline', { scope = 'global' }).was_set then
    return vim.go.statusline:find('bellboard', 1, true) ~= nil
  end
  local default = vim.go.statusline
  vim.go.statusline = default == '' and EMPTY
    or (default:gsub('%%=', '%%=' .. ITEM:gsub('%%', '%%%%'), 1))
  return true
end

--- Say how to add the item, unless a statusline has used the text by then.
---@return boolean|nil done
local function advise()
  if #sessions.list() == 0 then
    return
  end
  vim.defer_fn(function()
    if not used and remembered.note(ADVICE) then
      message.info('for your statusline, see :help bellboard-statusline')
    end
  end, PATIENCE)
  return true
end

--- Show the counts to users without a statusline of their own; all others get one message that says
--- how to add them.
M.attach = function()
  if config.get().statusline.auto and not put() and not remembered.is(ADVICE) then
    sessions.on_change('statusline.advice', advise)
  end
end

sessions.on_change('statusline', M.update)

return M
