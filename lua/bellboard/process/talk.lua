-- Talks to the background process of this Neovim, which calls functions here by name.
local config = require('bellboard.config')
local coprocess = require('bellboard.process.run')
local message = require('bellboard.message')
local moment = require('bellboard.moment')
local sessions = require('bellboard.sessions')

local M = {}

---@class bellboard.Reply the result of a request
---@field ok boolean
---@field why? string why not
---@field is_unsure? boolean it may have been done all the same
---@field text? string
---@field request? bellboard.Request
---@field way? string in which an answer was sent
---@field tty? string the terminal that shows a session now
---@field where? string in words, if that is not the user's
---@field command? string[] that shows a session in a terminal
---@field attach? string the tmux session that no terminal shows, and that it attaches to
---@field names? table<string, string> session → name of its pane
---@field rows? string[] what its terminal shows
---@field spans? integer[][] row, first and last byte, look
---@field looks? table[] attributes of highlight groups
---@field outcome? string what followed
---@field turn? bellboard.Turn the last turn of a session that rests
---@field diff? string

---@type number|nil when the user was last at this Neovim; 0: it has no screen
local focused
--- Whether a push could not be shown, which is reported once.
local broken = false
---@type table<integer, { channel: integer, what: string, done: fun(reply: bellboard.Reply) }>
---  by number
local waiting = {}
local asked = 0

M.notify, M.status = coprocess.notify, coprocess.status

--- The reply to a request. Called by the background process.
---@param number integer
---@param reply bellboard.Reply
M._reply = function(number, reply)
  local asker = waiting[number]
  waiting[number] = nil
  if asker then
    moment.when('draw', function()
      asker.done(reply)
    end)
  end
end

--- An action of the user could not be saved. Called by the background process.
M._complain = message.warn

--- Requests that reach the agent itself.
local REACHES = { answer = true, send = true, interrupt = true }

-- Fail all requests to the process that ended. Callers may ask again at once.
coprocess.on_end(function(channel)
  local numbers = vim.tbl_filter(function(number)
    return waiting[number].channel == channel
  end, vim.tbl_keys(waiting))
  table.sort(numbers)
  for _, number in ipairs(numbers) do
    local is_unsure = REACHES[waiting[number].what] == true
    local why = 'the background process has ended'
    why = is_unsure and why .. '; it may have been sent' or why
    M._reply(number, { ok = false, why = why, is_unsure = is_unsure })
  end
end)

---@type fun(push: string)
local take

--- Let a function take each push.
---@param act fun(push: string)
M.on_push = function(act)
  take = act
end

--- An error here must not prompt at every change.
---@param push string
local function receive(push)
  local ok, problem = pcall(take, push)
  if not ok then
    coprocess.note(tostring(problem))
    if not broken then
      broken = true
      message.warn('cannot show the sessions. See :checkhealth bellboard')
    end
  end
end

--- Receive a push. Called by the background process.
---@param push string
M._pushed = function(push)
  moment.when('draw', function()
    receive(push)
  end)
end

--- Why the background process cannot run, and what to do about it.
---@return string|nil why
---@return string step
M.trouble = function()
  local state = coprocess.status()
  if state.is_unbuilt and config.get().python then
    return state.gave_up, 'fix or unset the option python'
  end
  return state.gave_up, ':ClaudeSessions ' .. (state.is_unbuilt and 'build' or 'process restart')
end

--- The message when there is no session: without a background process, none is known.
---@param text string
---@return string
M.instead = function(text)
  local why, step = M.trouble()
  return why and ('%s; %s'):format(why, step) or text
end

--- Why the sessions may be outdated, and what to do about it.
---@return string
M.outdated = function()
  local state = coprocess.status()
  if not state.running then
    return M.instead('the background process is not running; :ClaudeSessions process start')
  elseif not state.heard then
    return 'the background process is starting; try again'
  end
  return (sessions.health().notes or {}).database or 'the sessions shown may be outdated; try again'
end

--- Report an event of this Neovim, such as a label; see |bellboard.tell()|.
---@param evidence table
---@return boolean sent
M.tell = function(evidence)
  local sent = M.notify('evidence', evidence)
  if not sent and not (evidence.view ~= nil or evidence['goto']) then
    local why = pcall(vim.mpack.encode, evidence) and 'the background process is not running'
      or 'it holds a function, which cannot be sent'
    message.warn(('%s failed: %s'):format(next(evidence), why))
  end
  return sent
end

--- Send a request, which may be refused. Does not block.
---@param what 'stop'|'request'|'answer'|'send'|'interrupt'|'goto'|'pane'|'names'|'preview'|'turn'
---  |'diff'
---@param request table
---@param done fun(reply: bellboard.Reply)
M.ask = function(what, request, done)
  asked = asked + 1
  waiting[asked] = { channel = coprocess.status().channel, what = what, done = done }
  if not M.notify('ask', asked, what, request) then
    M._reply(asked, { ok = false, why = M.outdated() })
  end
end

--- Report that the user is at this Neovim.
M.focused = function()
  focused = sessions.now()
  M.notify('focus', focused)
end

--- Report that this Neovim has no screen, so another Neovim is in front.
M.unseen = function()
  focused = 0
  M.notify('focus', focused)
end

--- When the user was last at this Neovim, for a background process that starts.
---@return number
M.last_focus = function()
  return focused or sessions.now()
end

return M
