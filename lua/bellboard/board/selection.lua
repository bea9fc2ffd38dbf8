-- Actions on several sessions at once.
local cells = require('bellboard.text')
local config = require('bellboard.config')
local dialog = require('bellboard.dialog')
local host = require('bellboard.process.talk')
local mark = require('bellboard.session_edit')
local message = require('bellboard.message')
local sessions = require('bellboard.sessions')

local M = {}

local api = vim.api

--- The name of some sessions in messages and prompts.
---@param list bellboard.Session[]
---@return string
local function name_of(list)
  local words = list[1].words
  if #list > 1 then
    return ('%d sessions'):format(#list)
  end
  return words.project .. (words.title ~= '' and (' "%s"'):format(words.title) or '')
end

--- Prompt for a word for some sessions; the default is the current one.
---@param what string
---@param current fun(session: bellboard.Session): string|nil
---@param act fun(session: bellboard.Session, word: string)
---@return fun(list: bellboard.Session[])
M.ask = function(what, current, act)
  return function(list)
    local prompt = #list == 1 and what .. ': ' or ('%s of %s: '):format(what, name_of(list))
    vim.ui.input({ prompt = prompt, default = current(list[1]) }, function(word)
      api.nvim_echo({ { '' } }, false, {}) -- or the prompt would stay on the command line
      for _, session in ipairs(word and list or {}) do
        act(session, word)
      end
    end)
  end
end

---@param list bellboard.Session[]
M.snooze = function(list)
  local usual = config.get().notices.snooze
  local choices = {
    { ('%g minutes'):format(usual), usual },
    { 'an hour', 60 },
    { 'a day', 24 * 60 },
  }
  if vim.iter(list):any(mark.is_snoozed) then
    table.insert(choices, 1, { 'end the snooze', 0 })
  end
  dialog.select(choices, {
    prompt = ('Snooze %s for'):format(name_of(list)),
    format_item = function(choice)
      return choice[1]
    end,
  }, function(choice)
    for _, session in ipairs(choice and list or {}) do
      mark.snooze(session.session_id, choice[2])
    end
  end)
end

--- Park all, or unpark them if all are parked.
---@param list bellboard.Session[]
M.park = function(list)
  local on = not vim.iter(list):all(mark.is_parked)
  for _, session in ipairs(list) do
    mark.park(session.session_id, on)
  end
end

---@param list bellboard.Session[]
M.correct = function(list)
  local settable = vim.tbl_filter(function(status)
    return status ~= 'unknown'
  end, sessions.statuses)
  local prompt = ('Actual status of %s'):format(name_of(list))
  dialog.select(settable, { prompt = prompt }, function(status)
    for _, session in ipairs(status and list or {}) do
      host.tell({ set = { session_id = session.session_id, status = status } })
    end
  end)
end

--- Stop the processes shown here; the background process checks that they are still the same.
---@param list bellboard.Session[]
M.stop = function(list)
  local function process(session)
    return session.pid or session.far_pid
  end
  local found = vim.tbl_filter(process, list)
  if #found == 0 then
    return message.info(name_of(list) .. ': the process is unknown; stop it in its terminal')
  end
  local prompt = #found == 1 and ('Stop process %d (%s)?'):format(process(found[1]), name_of(found))
    or ('Stop %d processes?'):format(#found)
  local choice_of = #found == 1 and { 'Cancel', 'Stop it' } or { 'Cancel', 'Stop them' }
  dialog.select(choice_of, { prompt = prompt }, function(choice)
    for _, session in ipairs(choice == choice_of[2] and found or {}) do
      local request = { session_id = session.session_id, pid = process(session) }
      host.ask('stop', request, function(reply)
        local outcome = reply.text or 'not stopped: ' .. reply.why
        message.info(('%s: %s'):format(session.words.project, outcome))
      end)
    end
  end)
end

--- Show what one asks, or triage those that ask something.
---@param list bellboard.Session[]
M.answer = function(list)
  if #list > 1 then
    require('bellboard.answer.triage').run(list)
  else
    require('bellboard.answer').to(list[1].session_id)
  end
end

---@param list bellboard.Session[]
M.yank = function(list)
  local ids = vim.tbl_map(function(session)
    return session.session_id
  end, list)
  vim.fn.setreg(vim.v.register, table.concat(ids, '\n'))
  message.info('yanked ' .. (#ids == 1 and cells.safe(ids[1]) or #ids .. ' session ids'))
end

return M
