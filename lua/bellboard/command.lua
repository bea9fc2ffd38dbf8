-- The subcommands of `:ClaudeSessions`, and their completion.
local bellboard = require('bellboard')
local config = require('bellboard.config')
local host = require('bellboard.host')
local message = require('bellboard.message')
local sessions = require('bellboard.state.sessions')

local M = {}

---@type table<string, fun(count: integer, rest: string[])>
local verbs = {
  pick = function()
    require('bellboard.view.picker').open()
  end,
  board = function()
    require('bellboard.view.board').open()
  end,
  next = function(count)
    bellboard.next(count)
  end,
  prev = function(count)
    bellboard.prev(count)
  end,
  back = function()
    bellboard.back()
  end,
  answer = function(_, rest)
    bellboard.answer(rest[1])
  end,
  ['goto'] = function(_, rest)
    bellboard.jump(rest[1] or '')
  end,
  snooze = function(_, rest)
    require('bellboard.action.mark').verbs.snooze(rest)
  end,
  park = function(_, rest)
    require('bellboard.action.mark').verbs.park(rest)
  end,
  label = function(_, rest)
    require('bellboard.action.mark').verbs.label(rest)
  end,
  notices = function()
    host.notify('notices')
  end,
  quiet = function()
    bellboard.mode('quiet')
  end,
  normal = function()
    bellboard.mode('normal')
  end,
  all = function()
    bellboard.mode('all')
  end,
  new = function(_, rest)
    require('bellboard.action.launch').new(rest)
  end,
  resume = function(_, rest)
    require('bellboard.action.launch').resume(rest)
  end,
  install = function(_, rest)
    require('bellboard.action.install').open('install', rest)
  end,
  uninstall = function(_, rest)
    require('bellboard.action.install').open('uninstall', rest)
  end,
  health = function()
    vim.cmd.checkhealth('bellboard')
  end,
  restart = function()
    bellboard.restart()
  end,
  stop = function()
    bellboard.stop()
  end,
}

--- Run a subcommand of `:ClaudeSessions`.
---@param verb string
---@param count? integer
---@param rest? string[]
M.run = function(verb, count, rest)
  local action = verbs[verb]
  if not action then
    message.error('no such subcommand: ' .. verb)
    return
  end
  if verb ~= 'stop' and verb ~= 'health' and verb ~= 'restart' then
    bellboard.start()
  end
  action(count or 1, rest or {})
end

---@param args vim.api.keyset.create_user_command.command_args
M.command = function(args)
  local words = vim.deepcopy(args.fargs)
  M.run(table.remove(words, 1) or 'pick', args.count, words)
end

---@param lead string
---@param line string
---@return string[]
M.complete = function(lead, line)
  local candidates = {}
  local verb, rest = line:match('%s(%a+)%s+(.-)%S*$')
  if verb == 'label' and rest == '' then
    candidates = vim.tbl_keys(config.get().notices.labels)
    table.sort(candidates)
  elseif vim.tbl_contains({ 'goto', 'snooze', 'park', 'label', 'answer' }, verb) then
    for _, session in ipairs(sessions.list()) do
      candidates[#candidates + 1] = session.session_id
    end
  elseif line:match('%s+u?n?install%s') then
    candidates = require('bellboard.action.install').files
  elseif line:match('^%s*[%d%s]*%S+%s+%S*$') then
    candidates = vim.tbl_keys(verbs)
    table.sort(candidates)
  end
  return vim.tbl_filter(function(word)
    return vim.startswith(word, lead)
  end, candidates)
end

return M
