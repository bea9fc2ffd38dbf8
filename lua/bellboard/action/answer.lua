-- Answer a permission with yes or no from where you are. A key is only sent to a terminal that
-- still shows the question.
local cells = require('bellboard.view.cells')
local host = require('bellboard.host')
local jump = require('bellboard.action.jump')
local message = require('bellboard.message')
local sessions = require('bellboard.state.sessions')
local terminals = require('bellboard.state.terminals')

local M = {}

---@param text string
---@param session? bellboard.Session
local function say(text, session)
  local name = session and session.words.project .. ': ' or ''
  message.info(name .. text)
end

---@param session bellboard.Session
---@param why string
local function go(session, why)
  say(why, session)
  jump.to(session.session_id)
end

--- Whether a session still asks the same question.
---@param asked bellboard.Session
---@return boolean
local function still(asked)
  local now = sessions.get(asked.session_id)
  return now ~= nil
    and now.status == 'blocked'
    and now.asked_at == asked.asked_at
    and now.detail == asked.detail
end

---@param session bellboard.Session as it was when the user chose
---@param yes boolean
local function send(session, yes)
  local asked = { session_id = session.session_id, request = session.request }
  host.ask('request', asked, function(found)
    if not found.ok then
      return say('not answered: ' .. found.why, session)
    end
    local answer = {
      session_id = session.session_id,
      request = found.request.id,
      digest = found.request.digest,
      choice = yes and 'allow' or 'stop',
    }
    host.ask('answer', answer, function(reply)
      if not reply.ok then
        say('not answered: ' .. reply.why, session)
      elseif reply.outcome ~= 'taken' then
        say(reply.text, session)
      end
    end)
  end)
end

--- Why a session cannot be answered from here, if it cannot.
---@param session bellboard.Session
---@return string|nil
local function obstacle(session)
  if session.kind ~= 'permission' then
    return ('a %s needs more than yes or no'):format(session.kind or 'question')
  elseif session.agent and session.agent ~= 'claude' then
    return ('cannot answer %s from here'):format(cells.safe(session.agent))
  elseif sessions.stale() then
    return 'the background process is not running, so this may be outdated'
  elseif not (session.tty and session.asked_at) then
    return 'its terminal is unknown'
  elseif
    not session.detail
    or session.detail:match('…$')
    or session.detail:find('***', 1, true)
  then
    return 'the question is not shown in full here'
  elseif not (terminals.buffer(session.tty) or session.pane or session.nvim) then
    return ('its terminal %s is neither in this Neovim nor in tmux'):format(cells.safe(session.tty))
  end
end

--- The most urgent blocked session, permissions first.
---@return bellboard.Session|nil
local function first()
  local found
  for _, session in ipairs(sessions.list()) do
    if session.status == 'blocked' and (not found or found.kind ~= 'permission') then
      found = (not found or session.kind == 'permission') and session or found
    end
  end
  return found
end

--- Let the user choose an answer, and send it if the session still asks the same.
---@param id? string default: the most urgent permission
---@param after? fun() called once the user has said yes or no
M.to = function(id, after)
  local session = id and sessions.get(id) or not id and first() or nil
  if not session then
    return say(id and 'that session has ended' or 'no session is asking anything')
  elseif session.status ~= 'blocked' then
    return say('it asks nothing', session)
  end
  local why = obstacle(session)
  if why then
    return go(session, why)
  end
  local words = session.words
  local prompt = ('%s asks: %s %s'):format(words.project, words.word, words.text)
  local choices = { 'Yes', 'No', 'Go there' }
  vim.ui.select(choices, { prompt = prompt, kind = 'bellboard-answer' }, function(choice)
    if choice == 'Go there' then
      jump.to(session.session_id)
    elseif choice and not still(session) then
      say('not answered: it no longer asks that', session)
    elseif choice then
      send(session, choice == 'Yes')
    end
    if after and (choice == 'Yes' or choice == 'No') then
      after()
    end
  end)
end

return M
