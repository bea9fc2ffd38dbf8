-- Answer the requests of sessions, from where you are: in a view, or by a function.
local diff = require('bellboard.answer.diff')
local host = require('bellboard.process.talk')
local mark = require('bellboard.session_edit')
local message = require('bellboard.message')
local moment = require('bellboard.moment')
local requests = require('bellboard.answer.request')
local sessions = require('bellboard.sessions')
local unsaved = require('bellboard.unsaved')
local view = require('bellboard.answer.keys')

local M = {}

--- Show what a session asks.
---@param session bellboard.Session
---@param otherwise? fun() if it rests and has no reply; default: say why
---@param answered? fun() after an answer was taken
local function show(session, otherwise, answered)
  requests.shown(session, function(request, why)
    if not request and not requests.still_asks(session) then
      local now = sessions.get(session.session_id)
      if now and now.status == 'blocked' then
        return show(now, otherwise, answered)
      end
      return message.info(sessions.name(session) .. ': that request is gone')
    elseif not request and requests.rests(session) then
      if otherwise then
        return moment.when('open', otherwise)
      end
      return message.info(('%s: %s'):format(sessions.name(session), why))
    end
    local shown ---@type bellboard.Shown
    shown = {
      session = session,
      request = request or requests.incomplete(session, why or 'unknown'),
      over = function(how, text)
        view.close(shown)
        if text then
          message.info(('%s: %s'):format(sessions.name(session), text))
        elseif how == 'again' then
          M.to(session.session_id)
        end
      end,
    }
    shown.sent = function(reply)
      if not view.heard(shown, reply) then
        message.info(('%s: %s'):format(sessions.name(session), requests.outcome(reply)))
      end
      if answered and requests.is_taken(reply) then
        answered()
      end
    end
    moment.when('open', function()
      view.open(shown)
    end)
  end)
end

--- The most urgent session; a muted one only if no other session is blocked.
---@return bellboard.Session|nil
local function first()
  local list = sessions.list()
  for _, session in ipairs(list) do
    if session.status == 'blocked' and not mark.is_muted(session) then
      return session
    end
  end
  return list[1]
end

--- Show what a session asks, to answer it; of one that rests, its last reply.
---@param id? string default: the most urgent one
---@param otherwise? fun() if it rests and has no reply; default: say why
---@param answered? fun() after an answer was taken
M.to = function(id, otherwise, answered)
  local session = not id and first() or id and sessions.get(id) or nil
  if not session or not id and session.status ~= 'blocked' then
    message.info(id and 'that session has ended' or host.instead('no session is asking anything'))
  elseif session.status == 'working' then
    message.info(sessions.name(session) .. ': not asking anything; it is still working')
  elseif sessions.stale() then
    message.info('cannot answer: ' .. host.outdated())
  else
    show(session, otherwise, answered)
  end
end

--- Compare unsaved changes of a file with what an agent has written, or asks to write.
---@param change? bellboard.Unsaved default: of the current buffer, else the newest
M.compare = function(change)
  local list, buf = unsaved.list(), vim.api.nvim_get_current_buf()
  change = change or vim.iter(list):find(function(each)
    return each.buf == buf
  end) or list[1]
  if not change then
    return message.info('no agent changes a file with unsaved changes')
  end
  local session = sessions.get(change.session_id)
  ---@param request bellboard.Request|nil
  local function open(request)
    local asked = vim.iter(request and request.parts or {}):find(function(part)
      return part.path == change.path
    end)
    moment.when('open', function()
      diff.open(asked or { kind = 'file', path = change.path }, true, function()
        return true
      end)
    end)
  end
  if session and session.status == 'blocked' and change.writes then
    requests.get(session, nil, open)
  else
    open()
  end
end

--- Answer what a session asks now.
---@param session bellboard.Session
---@param choice string|bellboard.Answer a choice, or an answer with the digest of what was read
---@param done fun(reply: bellboard.Reply)
M.give = function(session, choice, done)
  local answer = type(choice) == 'string' and { choice = choice } or vim.deepcopy(choice)
  local digest = answer.digest
  answer.digest = nil
  local which = { id = not digest and session.request or '', digest = digest }
  requests.get(session, which, function(request, why)
    if not request then
      return done({ ok = false, why = why })
    elseif digest and digest ~= request.digest then
      return done({ ok = false, why = 'it asks something else now' })
    end
    requests.send(session, request, answer --[[@as bellboard.Answer]], done)
  end)
end

return M
