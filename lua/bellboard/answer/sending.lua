-- Gets a session's request and sends an answer to it. The background process checks both and
-- chooses the way.
local host = require('bellboard.process.talk')
local message = require('bellboard.message')
local remembered = require('bellboard.remembered')
local sessions = require('bellboard.sessions')

local M = {}

--- Milliseconds to read the outcome of an answer, before another message replaces it.
local READ = 5000

--- Get what a session asks, in full.
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

--- Whether a session still shows what it asked.
---@param session bellboard.Session as it was
---@return boolean
M.stands = function(session)
  local now = sessions.get(session.session_id)
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
      message.info('typed as keys; ":ClaudeSessions answers on" avoids that')
    end, READ)
  end
end

--- Why there is no outcome of an answer, in words.
---@param reply bellboard.Reply
---@return string
M.failure = function(reply)
  return reply.is_unsure and reply.why or 'not answered: ' .. reply.why
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

return M
