-- Requests of sessions: fetched in full, and answered. The background process checks both and
-- chooses the way. The last turn of a session that rests is a request without choices.
local host = require('bellboard.process.talk')
local message = require('bellboard.message')
local remembered = require('bellboard.remembered')
local sessions = require('bellboard.sessions')

local M = {}

--- Milliseconds to read the outcome of an answer, before another message replaces it.
local READ = 5000

--- The choice that a key stands for.
---@param request bellboard.Request
---@param name string of a key
---@return bellboard.Choice|nil
M.choice = function(request, name)
  local id = (request.keys or {})[name]
  return vim.iter(request.choices or {}):find(function(choice)
    return choice.id == id
  end)
end

--- The choice with a number: of a permission or a plan, as in the dialogs of the agents.
---@param request bellboard.Request
---@param nth integer
---@return bellboard.Choice|nil
M.numbered = function(request, nth)
  return not (request.questions or request.fields) and (request.choices or {})[nth] or nil
end

--- The only question, if one answer to it is all that is asked.
---@param request bellboard.Request
---@return bellboard.Question|nil
M.only_question = function(request)
  local questions = request.questions or {}
  return #questions == 1 and not questions[1].many and questions[1] or nil
end

--- Whether a request has choices, none of which can be given from here.
---@param request bellboard.Request
---@return boolean
M.is_only_there = function(request)
  return request.way == 'go' and #(request.choices or {}) > 0
end

--- Whether a session has ended its turn and asks nothing.
---@param session bellboard.Session
---@return boolean
M.rests = function(session)
  return session.status ~= 'blocked' and session.status ~= 'working'
end

--- The last turn of a session as a request without choices.
---@param session bellboard.Session
---@param turn bellboard.Turn
---@return bellboard.Request
local function of_turn(session, turn)
  return {
    id = '',
    session_id = session.session_id,
    digest = '',
    kind = 'turn',
    title = session.words.word,
    asked_at = turn.since,
    parts = {},
    choices = {},
    complete = true,
    turn = turn,
  }
end

--- The request of a session, as far as it is known, if it cannot be fetched in full.
---@param session bellboard.Session
---@param why string
---@return bellboard.Request
M.incomplete = function(session, why)
  if M.rests(session) then
    local text = session.last_message or ''
    local since = session.since
    return of_turn(session, { text = text, prompt = '', since = since, note = why })
  end
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

--- Get what a session shows: of one that rests, its last turn; else what it asks.
---@param session bellboard.Session
---@param done fun(request: bellboard.Request|nil, why: string|nil)
M.shown = function(session, done)
  if not M.rests(session) then
    return M.get(session, nil, done)
  end
  host.ask('turn', { session_id = session.session_id }, function(reply)
    done(reply.turn and of_turn(session, reply.turn) or nil, reply.why)
  end)
end

--- Get the request of a session, in full.
---@param session bellboard.Session
---@param which {id?: string, digest?: string}|nil a request; default: the one that it shows, unless
---  its terminal shows another one first
---@param done fun(request: bellboard.Request|nil, why: string|nil)
M.get = function(session, which, done)
  local wanted = which or { id = session.request or '', shown = true }
  wanted = vim.tbl_extend('error', { session_id = session.session_id }, wanted)
  host.ask('request', wanted, function(reply)
    if reply.ok and reply.request then
      done(reply.request)
    else
      done(nil, reply.why or 'the background process is older than this plugin; restart it')
    end
  end)
end

--- Whether a session still has the same request, or still rests.
---@param session bellboard.Session as it was
---@return boolean
M.still_asks = function(session)
  local now = sessions.get(session.session_id)
  if now and M.rests(session) then
    return M.rests(now) and now.since == session.since
  end
  return now ~= nil
    and now.status == 'blocked'
    and now.request == session.request
    and now.asked_at == session.asked_at
end

--- Say once how to answer without typed keys, while answers are off.
---@param session bellboard.Session
---@param reply bellboard.Reply
local function offer(session, reply)
  local is_off = sessions.health().answers == 'off' and not session.machine
  if reply.ok and reply.way == 'keys' and is_off and remembered.note('answers') then
    vim.defer_fn(function()
      message.info('typed as keys; ":ClaudeSessions answers on" uses the hook')
    end, READ)
  end
end

--- Send an answer; `done` gets the outcome.
---@param session bellboard.Session
---@param request bellboard.Request
---@param answer bellboard.Answer
---@param done fun(reply: bellboard.Reply)
M.send = function(session, request, answer, done)
  local sent = vim.tbl_extend('error', {
    session_id = session.session_id,
    request = request.id,
    digest = request.digest,
  }, answer)
  host.ask('answer', sent, function(reply)
    offer(session, reply)
    done(reply)
  end)
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
M.outcome = function(reply)
  if reply.ok then
    local text = reply.text or ''
    local is_as_expected = text:find('^it went on') or text:find('^it took this answer')
    return is_as_expected and 'answered' or 'answered; ' .. text
  end
  return reply.is_unsure and reply.why or 'not answered: ' .. reply.why
end

return M
