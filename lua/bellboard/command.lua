-- The commands `:Bellboard` and `:ClaudeSessions`: their subcommands and completion.
local bellboard = require('bellboard')
local config = require('bellboard.config')
local host = require('bellboard.process.talk')
local mark = require('bellboard.session_edit')
local message = require('bellboard.message')
local moment = require('bellboard.moment')
local which = require('bellboard.jump.names')

local M = {}

local api = vim.api

---@type table<string, fun(count: integer, rest: string[])>
local verbs = {
  pick = function()
    require('bellboard.picker').open()
  end,
  board = function()
    require('bellboard.board').open()
  end,
  next = function(count, rest)
    bellboard.next(count, table.concat(rest, ' '))
  end,
  prev = function(count, rest)
    bellboard.prev(count, table.concat(rest, ' '))
  end,
  back = bellboard.back,
  answer = function(_, rest)
    bellboard.answer(#rest > 0 and table.concat(rest, ' ') or nil)
  end,
  triage = function()
    require('bellboard.answer.triage').run()
  end,
  ['goto'] = function(_, rest)
    bellboard.jump(table.concat(rest, ' '))
  end,
  snooze = function(_, rest)
    local minutes = tonumber(rest[1]) and tonumber(table.remove(rest, 1))
    for _, session in ipairs(which.some(table.concat(rest, ' '), mark.is_snoozed)) do
      mark.snooze(session.session_id, minutes)
    end
  end,
  park = function(_, rest)
    for _, session in ipairs(which.some(table.concat(rest, ' '), mark.is_parked)) do
      mark.park(session.session_id)
    end
  end,
  label = function(_, rest)
    for _, session in ipairs(which.some(table.concat(rest, ' ', 2))) do
      mark.label(session.session_id, rest[1])
    end
  end,
  notices = function()
    host.notify('notices')
  end,
  new = function(_, rest)
    require('bellboard.jump.launch').new(rest)
  end,
  resume = function(_, rest)
    require('bellboard.jump.launch').resume(rest)
  end,
  install = function(_, rest)
    require('bellboard.install').hooks('install', rest)
  end,
  uninstall = function(_, rest)
    require('bellboard.install').hooks('uninstall', rest)
  end,
  build = function()
    require('bellboard.install').build()
  end,
  health = function()
    vim.cmd.checkhealth('bellboard')
  end,
  start = function() end, -- running any subcommand starts it
  restart = bellboard.restart,
  stop = bellboard.stop,
}
for _, mode in ipairs({ 'quiet', 'normal', 'all' }) do
  verbs[mode] = function()
    bellboard.mode(mode)
  end
end

--- Those that the shell program carries out. The name of a session is one word for those where
--- another may follow.
---@type table<string, boolean>
local by_words = {}
for _, name in ipairs(require('bellboard.jump.shell').commands) do
  by_words[name] = name ~= 'explain' and name ~= 'forget'
  verbs[name] = function(_, rest)
    if not by_words[name] and #rest > 0 then
      rest = { table.concat(rest, ' ') }
    end
    require('bellboard.jump.shell').run(vim.list_extend({ name }, rest))
  end
end

--- Subcommands that do not start the background process.
local without_host = { stop = true, health = true, restart = true, build = true, path = true }

--- Subcommands that open no window, so that they leave the command-line window open.
-- stylua: ignore
local windowless = {
  snooze = true, park = true, label = true, quiet = true, normal = true, all = true,
  start = true, stop = true, restart = true, build = true,
}

--- Run a subcommand of `:ClaudeSessions`.
---@param verb string
---@param count? integer
---@param rest? string[]
M.run = function(verb, count, rest)
  local action = verbs[verb]
  if not action then
    message.error(('no subcommand "%s"; try :ClaudeSessions <Tab>'):format(verb))
    return
  end
  if not without_host[verb] then
    bellboard.start()
  end
  local function run()
    action(count or 1, rest or {})
  end
  if windowless[verb] then
    run()
  else
    moment.after_command_window(run)
  end
end

--- The words of a command line. Quotes keep words together; a backslash escapes a quote, a space or
--- another backslash.
---@param text string
---@return string[]
local function words_of(text)
  local words, word, quote, at = {}, nil, nil, 1
  while at <= #text do
    local char = text:sub(at, at)
    if char == '\\' and quote ~= "'" and text:find('^["\'%s\\]', at + 1) then
      at = at + 1
      word = (word or '') .. text:sub(at, at)
    elseif char == quote then
      quote = nil
    elseif not quote and (char == '"' or char == "'") then
      quote, word = char, word or ''
    elseif not quote and char:match('%s') then
      words[#words + 1], word = word, nil
    else
      word = (word or '') .. char
    end
    at = at + 1
  end
  words[#words + 1] = word
  return words
end

---@param args vim.api.keyset.create_user_command.command_args
M.command = function(args)
  local words = words_of(args.args)
  M.run(table.remove(words, 1) or 'pick', args.count, words)
end

---@type table<string, fun(before: string): string[]> verb → what may follow
local arguments = {
  label = function(before)
    local labels = vim.tbl_keys(config.get().notices.labels)
    table.sort(labels)
    return before == '' and labels or which.names()
  end,
  install = function()
    return require('bellboard.install').files
  end,
}
arguments.uninstall = arguments.install
arguments.next = function()
  local fields = {}
  for _, session in ipairs(bellboard.sessions()) do
    fields['agent:' .. (session.agent or '')] = true
  end
  return vim.tbl_keys(fields)
end
arguments.prev = arguments.next
arguments.answers = function(before)
  return before == '' and { 'on', 'off' } or {}
end
-- stylua: ignore
for _, verb in ipairs({
  'goto', 'park', 'answer', 'explain', 'forget', 'history', 'name', 'set',
}) do
  arguments[verb] = which.names
end
arguments.snooze = function(before)
  return vim.tbl_filter(function(name)
    return before ~= '' or not tonumber(name:match('^%S+')) -- it would be read as minutes
  end, which.names())
end

--- What follows our command in a command line, which may begin with modifiers or other commands.
---@param line string
---@return string
local function after_command(line)
  local names = { 'Bellboard', 'ClaudeSessions' }
  for word, stop in line:gmatch('%f[%a](%u%w*)()') do
    if vim.startswith(names[1], word) or vim.startswith(names[2], word) then
      return line:sub(stop)
    end
  end
  return ''
end

--- What the words so far are of the name of a session, which may have several.
---@param verb string
---@param before string
---@return string
local function begun(verb, before)
  local words = words_of(before)
  if verb == 'label' or verb == 'snooze' and tonumber(words[1]) then
    table.remove(words, 1)
  end
  return #words > 0 and table.concat(words, ' ') .. ' ' or ''
end

---@param lead string
---@param line string
---@param at integer
---@return string[]
M.complete = function(lead, line, at)
  local candidates, typed = {}, line:sub(1, at)
  if not vim.endswith(typed, lead) then -- Neovim's leads go on after the cursor
    lead = lead:sub(1, #lead - (#line - at))
  end
  local verb, rest = after_command(typed):match('^[%s%d]+(%a+)%s+(.*)$')
  if verb and arguments[verb] then
    local before = rest:sub(1, #rest - #lead)
    local is_one = by_words[verb] or verb == 'label' and before == ''
    local special = is_one and '["\'%s\\]' or '["\'\\]'
    local known = begun(verb, before)
    local wanted = known .. lead:gsub('\\(["\'%s\\])', '%1')
    for _, name in ipairs(not (by_words[verb] and known ~= '') and arguments[verb](before) or {}) do
      if vim.startswith(name, wanted) then
        candidates[#candidates + 1] = name:sub(#known + 1):gsub(special, '\\%0')
      end
    end
    return candidates
  elseif not verb then
    candidates = vim.tbl_keys(verbs)
    table.sort(candidates)
  end
  return vim.tbl_filter(function(word)
    return vim.startswith(word, lead)
  end, candidates)
end

return M
