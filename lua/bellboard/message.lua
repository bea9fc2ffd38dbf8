-- Messages to the user. All messages of one tick, or of the time of a prompt, become one: a second
-- message would make Neovim wait for ENTER.
local moment = require('bellboard.moment')

local M = {}

local GROUPS = { [vim.log.levels.WARN] = 'WarningMsg', [vim.log.levels.ERROR] = 'ErrorMsg' }
--- The start of each message.
local PREFIX = 'bellboard: '
--- Messages that are kept while a prompt is open, and lines of a message in a plugin.
local MOST, LINES = 200, 10

---@class bellboard.Message
---@field text string
---@field level integer
---@field about? string only the last one about it is shown
---@field opts? table for vim.notify of a plugin, if it is shown alone

---@type bellboard.Message[] to be shown once no prompt is open
local pending = {}

--- Whether a function is Neovim's own vim.notify: compiled into it, or from its own file.
---@param notify function
---@return boolean
local function is_own(notify)
  local source = debug.getinfo(notify, 'S').source
  return source == '?' or source:find('^@vim/_') ~= nil
end

--- The shower of messages: Neovim on its command line, where a long message waits for ENTER; a
--- function of the user, which passes them on to Neovim; or a plugin.
---@return 'neovim'|'user'|'plugin'
local function shower()
  local notify = vim.notify
  -- A table that can be called, as of nvim-notify.
  if type(notify) ~= 'function' or #vim.api.nvim_list_uis() == 0 then
    return 'plugin'
  elseif is_own(notify) then
    return 'neovim'
  end
  for nth = 1, debug.getinfo(notify, 'u').nups do
    local name, value = debug.getupvalue(notify, nth)
    if name and type(value) == 'function' and value ~= notify and is_own(value) then
      return 'user'
    end
  end
  return 'plugin'
end

--- Whether a message shows all of a text.
---@param text string
---@return boolean
M.fits = function(text)
  local is_line = not text:find('\n') and vim.api.nvim_strwidth(PREFIX .. text) <= vim.v.echospace
  return is_line or shower() == 'plugin'
end

--- The start of a text, where Neovim would shorten nothing.
---@param text string
---@return string
local function start_of(text)
  local room = vim.v.echospace
  if vim.api.nvim_strwidth(text) <= room then
    return text
  end
  return vim.fn.printf('%.' .. math.max(room - 1, 0) .. 'S', text) .. '…'
end

--- Show a line on the command line. Neovim leaves out the middle of a line that is too long;
--- `:messages` has all of it. The line is never an error to Neovim: two errors wait for ENTER.
---@param line string
---@param level integer
local function echo(line, level)
  line = vim.o.cmdheight == 0 and start_of(line) or line
  local before = vim.o.shortmess
  vim.opt.shortmess:append('T')
  vim.cmd.echohl(GROUPS[level] or 'None')
  vim.cmd.echomsg(vim.fn.string(line))
  vim.cmd.echohl('None')
  vim.o.shortmess = before
end

--- Call vim.notify, which may be another plugin's and fail.
---@param text string
---@param level integer
---@param opts? table
local function notify(text, level, opts)
  if not pcall(vim.notify, text, level, opts) then
    vim.api.nvim_echo({ { text, 'WarningMsg' } }, true, {})
  end
end

--- Show several messages as one.
---@param list bellboard.Message[] the gravest first
local function show(list)
  local level, who = list[1].level, shower()
  local texts = vim.tbl_map(function(message)
    return message.text
  end, list)
  if who == 'plugin' then
    local lines = { unpack(texts, 1, LINES) }
    lines[#lines + 1] = #texts > LINES and ('and %d more'):format(#texts - LINES) or nil
    local opts = #list == 1 and list[1].opts or { title = 'bellboard', ft = 'text' }
    return notify(table.concat(lines, '\n'), level, opts)
  end
  local line = table.concat(texts, '; '):gsub('%s*\n%s*', '; ')
  if who == 'neovim' then
    return echo(line, level)
  end
  -- With 'cmdheight' 0, an error of any length waits for ENTER.
  level = vim.o.cmdheight == 0 and math.min(level, vim.log.levels.WARN) or level
  notify(start_of(line), level)
end

--- Show pending messages.
local function flush()
  local list, seen = {}, {}
  for nth = #pending, 1, -1 do
    local message = pending[nth]
    if not seen[message.about or message.text] then
      seen[message.about or message.text] = true
      table.insert(list, 1, message)
    end
  end
  pending = {}
  local order = {}
  for nth, message in ipairs(list) do
    order[message] = nth
  end
  table.sort(list, function(a, b)
    return a.level > b.level or a.level == b.level and order[a] < order[b]
  end)
  show(list)
end

--- Show a message, together with all others of this tick.
---@param message bellboard.Message
M.tell = function(message)
  if #pending < MOST then
    pending[#pending + 1] = message
  end
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
