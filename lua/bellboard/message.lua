-- Messages to the user. What is said in one tick, or while a prompt was open, is one message: a
-- second one would make Neovim wait for ENTER.
local moment = require('bellboard.moment')

local M = {}

local GROUPS = { [vim.log.levels.WARN] = 'WarningMsg', [vim.log.levels.ERROR] = 'ErrorMsg' }

---@class bellboard.Message
---@field text string
---@field level integer
---@field short? string what is left of it beside others
---@field about? string only the last one about it is shown
---@field opts? table for vim.notify of a plugin, if it is shown alone

---@type bellboard.Message[] to be shown once no prompt is open
local pending = {}
--- How many were left out of `pending`, and how many it takes.
local dropped, MOST = 0, 200
--- Lines of one message that is shown elsewhere.
local LINES = 10

--- Whether a function is Neovim's own vim.notify: compiled into it, or from its own file.
---@param notify function
---@return boolean
local function is_own(notify)
  local source = debug.getinfo(notify, 'S').source
  return source == '?' or source:find('^@vim/_') ~= nil
end

--- Where messages go: to the command line, where one that does not fit waits for ENTER; there
--- through a function of the user, which passes them on; or elsewhere.
---@return 'echoed'|'passed on'|'elsewhere'
local function target()
  local notify = vim.notify
  -- A table that can be called, as of nvim-notify.
  if type(notify) ~= 'function' or #vim.api.nvim_list_uis() == 0 then
    return 'elsewhere'
  elseif is_own(notify) then
    return 'echoed'
  end
  for nth = 1, debug.getinfo(notify, 'u').nups do
    local name, value = debug.getupvalue(notify, nth)
    if name and type(value) == 'function' and value ~= notify and is_own(value) then
      return 'passed on'
    end
  end
  return 'elsewhere'
end

--- The text without its middle: the end says what to do.
---@param text string
---@return string
local function fitted(text)
  local long, kept = vim.fn.strcharlen(text), vim.fn.strcharlen(text)
  local cut = text
  while kept > 2 and vim.api.nvim_strwidth(cut) > vim.v.echospace do
    kept = kept - 1
    local head = math.floor(kept * 0.6)
    cut = vim.fn.strcharpart(text, 0, head) .. '…' .. vim.fn.strcharpart(text, long - kept + head)
  end
  return cut
end

--- Show a line on the command line, or its start and its end; `:messages` has all of it. It is
--- never an error to Neovim: two of these wait for ENTER.
---@param text string
---@param level integer
local function echo(text, level)
  -- With 'cmdheight' 0, Neovim shortens nothing.
  text = vim.o.cmdheight == 0 and fitted(text) or text
  local short = vim.o.shortmess
  vim.opt.shortmess:append('T')
  vim.cmd.echohl(GROUPS[level] or 'None')
  vim.cmd.echomsg(vim.fn.string(text))
  vim.cmd.echohl('None')
  vim.o.shortmess = short
end

--- What begins each of our messages.
local PREFIX = 'bellboard: '

--- Whether a message shows all of a text.
---@param text string
---@return boolean
M.fits = function(text)
  local is_line = not text:find('\n') and vim.api.nvim_strwidth(PREFIX .. text) <= vim.v.echospace
  return is_line or target() == 'elsewhere'
end

---@param text string
---@return string
local function on_one_line(text)
  return (text:gsub('%s*\n%s*', '; '))
end

--- Several texts as one line that fits: whole, then short, then the first ones of them.
---@param list bellboard.Message[]
---@param more integer how many others there are
---@return string line
---@return string|nil whole if the line leaves something out
local function summary(list, more)
  local whole, short = {}, {}
  for nth, one in ipairs(list) do
    local is_ours = nth > 1 and vim.startswith(one.text, PREFIX)
    whole[nth] = on_one_line(is_ours and one.text:sub(#PREFIX + 1) or one.text)
    short[nth] = one.short or whole[nth]
  end
  local all = table.concat(whole, '; ')
  local forms = { more == 0 and all or nil }
  for shown = #short, 1, -1 do
    local left = more + #short - shown
    local rest = left > 0 and ('; and %d more'):format(left) or ''
    forms[#forms + 1] = table.concat(short, '; ', 1, shown) .. rest
  end
  local line = vim.iter(forms):find(function(form)
    return vim.api.nvim_strwidth(form) <= vim.v.echospace
  end) or fitted(forms[#forms])
  return line, line ~= all and all or nil
end

--- Call vim.notify, which may be another plugin's and fail.
---@param text string
---@param level integer
---@param opts? table
local function notify(text, level, opts)
  if target() == 'passed on' and vim.o.cmdheight == 0 then
    level = math.min(level, vim.log.levels.WARN) -- an error of any length waits for ENTER
  end
  if not pcall(vim.notify, text, level, opts) then
    vim.api.nvim_echo({ { text, 'WarningMsg' } }, true, {})
  end
end

---@param one bellboard.Message
local function show(one)
  local where = target()
  if where == 'echoed' then
    return echo(on_one_line(one.text), one.level)
  end
  local text = where == 'passed on' and fitted(on_one_line(one.text)) or one.text
  notify(text, one.level, one.opts)
end

--- Show several as one.
---@param list bellboard.Message[] the gravest first
---@param more integer how many others there are
local function show_together(list, more)
  local where, level = target(), list[1].level
  if where == 'elsewhere' then
    local lines = {}
    for nth = 1, math.min(#list, LINES) do
      lines[nth] = list[nth].text
    end
    more = more + #list - #lines
    lines[#lines + 1] = more > 0 and ('and %d more'):format(more) or nil
    notify(table.concat(lines, '\n'), level, { title = 'bellboard', ft = 'text' })
    return
  end
  local line, all = summary(list, more)
  if where == 'passed on' then
    notify(line, level)
  elseif all and vim.o.cmdheight > 0 then
    echo(all, level) -- for `:messages`
    vim.cmd.redraw() -- or the second one would wait for ENTER
    vim.api.nvim_echo({ { line, GROUPS[level] } }, false, {})
  else
    echo(line, level)
  end
end

--- Show what is pending.
local function flush()
  local list, more, seen = {}, dropped, {}
  for nth = #pending, 1, -1 do
    local one = pending[nth]
    if not seen[one.about or one.text] then
      seen[one.about or one.text] = true
      table.insert(list, 1, one)
    end
  end
  pending, dropped = {}, 0
  local order = {}
  for nth, one in ipairs(list) do
    order[one] = nth
  end
  table.sort(list, function(a, b)
    return a.level > b.level or a.level == b.level and order[a] < order[b]
  end)
  if #list == 1 and more == 0 then
    show(list[1])
  elseif #list > 0 then
    show_together(list, more)
  end
end

--- Show a message, as one with all others of this tick.
---@param message bellboard.Message
M.tell = function(message)
  if #pending >= MOST then
    dropped = dropped + 1
    return
  end
  pending[#pending + 1] = message
  if #pending == 1 then
    vim.schedule(function()
      moment.when('tell', flush)
    end)
  end
end

---@param text string
M.info = function(text)
  M.tell({ text = PREFIX .. text, level = vim.log.levels.INFO })
end

---@param text string
M.warn = function(text)
  M.tell({ text = PREFIX .. text, level = vim.log.levels.WARN })
end

---@param text string
M.error = function(text)
  M.tell({ text = PREFIX .. text, level = vim.log.levels.ERROR })
end

return M
