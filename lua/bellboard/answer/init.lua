-- Answer what a session asks, from where you are: in its view, or from a function.
local host = require('bellboard.process.talk')
local mark = require('bellboard.session_edit')
local message = require('bellboard.message')
local moment = require('bellboard.moment')
local request_view = require('bellboard.answer.keys')
local sending = require('bellboard.answer.sending')
local sessions = require('bellboard.sessions')

local M = {}

--- What to show of a request that the background process does not have in full.
---@param session bellboard.Session
---@param why string
---@return bellboard.Request
M.unknown = function(session, why)
  return {
    id = session.request or '',
    session_id = session.session_id,
    digest = '',
    kind = session.kind or 'permission',
    title = session.words.word,
    asked_at = session.asked_at,
    parts = { { kind = 'text', text = session.words.text } },
    choices = {},
    complete = false,
    why = why,
  }
end

--- Whether the agent did what the answer says.
---@param reply bellboard.Reply
---@return boolean
M.is_taken = function(reply)
  return reply.ok and reply.outcome == 'taken'
end

--- The outcome of an answer, in words.
---@param reply bellboard.Reply
---@return string
M.told = function(reply)
  return reply.ok and 'answered; ' .. (reply.text or '') or sending.failure(reply)
end

--- Show what a session asks.
---@param session bellboard.Session
local function show(session)
  sending.get(session, nil, function(request, why)
    if not request and not sending.stands(session) then
      local now = sessions.get(session.session_id)
      if now and now.status == 'blocked' then
        return show(now)
      end
      return message.info(session.words.project .. ': no longer asks that')
    end
    local shown ---@type bellboard.Shown
    shown = {
      session = session,
      request = request or M.unknown(session, why or 'unknown'),
      over = function(_, told)
        request_view.close(shown)
        if told then
          message.info(('%s: %s'):format(session.words.project, told))
        end
      end,
    }
    shown.sent = function(reply)
      if not request_view.heard(shown, reply, M.is_taken(reply) and M.told(reply) or nil) then
        message.info(('%s: %s'):format(session.words.project, M.told(reply)))
      end
    end
    moment.when('open', function()
      request_view.open(shown)
    end)
  end)
end

--- The most urgent session; a muted one only if no other one is blocked.
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

--- Show what a session asks, to answer it.
---@param id? string default: the most urgent one
M.to = function(id)
  local session = not id and first() or id and sessions.get(id) or nil
  if not session or not id and session.status ~= 'blocked' then
    message.info(id and 'that session has ended' or host.instead('no session is asking anything'))
  elseif session.status ~= 'blocked' then
    message.info(session.words.project .. ': not asking anything')
  elseif sessions.stale() then
    message.info('cannot answer: ' .. host.outdated())
  else
    show(session)
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
  sending.get(session, which, function(request, why)
    if not request then
      return done({ ok = false, why = why })
    elseif digest and digest ~= request.digest then
      return done({ ok = false, why = 'it asks something else now' })
    end
    sending.send(session, request, answer --[[@as bellboard.Answer]], done)
  end)
end

return M
