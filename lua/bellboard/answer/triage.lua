-- Triage: one blocked session after the other, the most urgent first, each with its whole request;
-- then, if they are wanted, those that have ended a turn, each with its whole reply.
local host = require('bellboard.process.talk')
local mark = require('bellboard.session_edit')
local message = require('bellboard.message')
local moment = require('bellboard.moment')
local requests = require('bellboard.answer.request')
local sessions = require('bellboard.sessions')
local view = require('bellboard.answer.keys')

local M = {}

--- Milliseconds for the next dialog of a session, which is busy in between.
local FOLLOWS = 2000
local AGAIN = 200 -- milliseconds until the session is asked again

--- What the summary counts, in this order.
local COUNTED = { 'answered', 'answered elsewhere', 'sent', 'seen', 'snoozed', 'skipped', 'left' }

---@class bellboard.Triage
---@field only table<string, true>|nil the sessions that were chosen; nil: all
---@field wants_replies boolean also of sessions that have ended a turn
---@field passed table<string, true> requests that are dealt with
---@field counts table<string, integer> how many were answered, skipped, snoozed, …
---@field wrong string[] answers that did not do what they should
---@field failed? bellboard.Session the session of the last one of them
---@field pending integer answers on their way
---@field follows? { id: string, last: integer } the session that goes on to its next dialog
---@field note? string what has just happened
---@field shown? bellboard.Shown what it has shown last
---@field state? 'fetching'|'showing'|'resting'|'over' resting: nothing is asked now
---@field said? string what the view says then

---@type bellboard.Triage|nil
local run

--- The key of a session's request.
---@param session bellboard.Session
---@return string
local function key_of(session)
  local since = session.status == 'blocked' and session.asked_at or session.since
  return ('%s %s %s'):format(session.session_id, session.request or '', since or '')
end

--- Whether a triage is about a session: a chosen one, or without a choice any that is not muted.
---@param session bellboard.Session
---@return boolean
local function concerns(session)
  return run.only and run.only[session.session_id] or not run.only and not mark.is_muted(session)
end

--- Whether a session has something to show: its request, or a reply that is wanted.
---@param session bellboard.Session
---@return boolean
local function is_due(session)
  local has_ended = session.status == 'completed' or session.status == 'error'
  return session.status == 'blocked' or run.wants_replies and has_ended
end

--- The sessions that are left, most urgent first.
---@return bellboard.Session[]
local function waiting()
  return vim.tbl_filter(function(session)
    return is_due(session) and concerns(session) and not run.passed[key_of(session)]
  end, sessions.list())
end

--- The number of its sessions that work: each may ask next.
---@return integer
local function working()
  return #vim.tbl_filter(function(session)
    return session.status == 'working' and concerns(session) and not session.link_since
  end, sessions.stale() and {} or sessions.list())
end

---@param what string
local function count(what)
  run.counts[what] = (run.counts[what] or 0) + 1
end

--- The summary.
---@param of bellboard.Triage
---@return string
local function summary(of)
  local parts = {}
  for _, what in ipairs(COUNTED) do
    parts[#parts + 1] = of.counts[what] and ('%d %s'):format(of.counts[what], what) or nil
  end
  vim.list_extend(parts, of.wrong)
  return 'triage: ' .. (#parts > 0 and table.concat(parts, ', ') or 'nothing was asked')
end

--- Show the summary once the outcome of the last answer is known. Another triage may have begun.
---@param of bellboard.Triage
local function conclude(of)
  if of.state == 'over' and of.pending == 0 then
    if of == run then
      run = nil
    end
    message.info(summary(of))
  end
end

local function close()
  run.state = 'over'
  if run.shown then
    view.close(run.shown)
  end
  conclude(run)
end

--- No request is open. The view stays until the outcome of the last answer is known, while sessions
--- work that may ask next, and, if an answer failed, until the user has read that.
local function finish()
  if not run.shown or view.now() ~= run.shown then
    return close()
  end
  local text, stays, busy = summary(run), #run.wrong > 0, working()
  if run.pending > 0 then
    text, stays = 'Sending…', true
  elseif busy > 0 then
    text = text:gsub('^triage', ('waiting for %d session%s'):format(busy, busy == 1 and '' or 's'))
    stays = true
  end
  if text ~= run.said or not view.is_here() then
    run.said = text
    view.finish(text, stays)
  end
end

local step

--- Whether the terminal showed another request than the session's own, which comes next then.
---@param session bellboard.Session
---@param request bellboard.Request
---@return boolean
local function is_another(session, request)
  return request.id ~= (session.request or '')
end

--- Expect the next dialog of a session.
---@param of bellboard.Triage
---@param session bellboard.Session
local function follow(of, session)
  of.follows = { id = session.session_id, last = vim.uv.now() + FOLLOWS }
end

--- Whether a session may still go on to its next dialog.
---@param session bellboard.Session
---@return boolean
local function goes_on(session)
  local follows = run.follows
  return follows ~= nil and follows.id == session.session_id and vim.uv.now() < follows.last
end

--- Handle the outcome of an answer.
---@param session bellboard.Session
---@param request bellboard.Request
---@return fun(reply: bellboard.Reply)
local function heard(session, request)
  local of = run
  return function(reply)
    of.pending = of.pending - 1
    if is_another(session, request) then
      of.passed[key_of(session)] = nil
      follow(of, session)
    end
    local outcome = ('%s: %s'):format(sessions.name(session), requests.outcome(reply))
    if requests.is_taken(reply) then
      of.counts.answered = (of.counts.answered or 0) + 1
    else
      of.wrong[#of.wrong + 1] = outcome
      of.failed = session
    end
    if of.state == 'over' then
      return conclude(of)
    elseif of.state ~= 'showing' then
      of.note = outcome -- the next request replaces this one in the view
    end
    if of.state == 'resting' then
      step()
    else
      view.say(outcome)
    end
  end
end

---@param session bellboard.Session
---@param request bellboard.Request
local function show(session, request)
  local of = run
  run.state, run.said = 'showing', nil
  local shown ---@type bellboard.Shown
  local is_passed = false
  --- Go on with the next session.
  ---@param what? string to count
  ---@param asks_more? boolean its session is still to be asked about
  local function pass(what, asks_more)
    if of == run and run.state ~= 'over' and not is_passed then
      is_passed = true
      run.passed[key_of(shown.session)] = not asks_more or nil
      if what then
        count(what)
      end
      step()
    end
  end
  shown = {
    session = session,
    request = request,
    status = run.note,
    prefix = function()
      local left = of == run and #waiting() or 0
      return left > 0 and ('%d left · '):format(left) or ''
    end,
    sent = heard(session, request),
    sending = function()
      run.pending = run.pending + 1
      pass()
    end,
    skip = function()
      pass('skipped')
    end,
    failed = function()
      return of.failed
    end,
    over = function(how, why)
      if how == 'closed' then
        local left = #waiting()
        run.counts.left = left > 0 and left or nil
        close()
      elseif vim.list_contains({ 'sent', 'snoozed', 'seen' }, how) then
        pass(how)
      elseif shown.request.turn then
        pass()
      else
        run.note = ('%s: %s'):format(sessions.name(session), why)
        local more = is_another(shown.session, shown.request)
        if more then
          follow(run, shown.session)
        end
        pass('answered elsewhere', more)
      end
    end,
  }
  local display = run.shown and view.show or view.open
  run.shown = shown
  display(shown)
  run.note = nil
end

--- Show the next request, or end.
step = function()
  local of, session = run, waiting()[1]
  run.state = session and 'fetching' or 'resting'
  if not session then
    return finish()
  end
  requests.shown(session, function(request, why)
    moment.when('open', function()
      if of ~= run or run.state == 'over' then
        return
      elseif not requests.still_asks(session) then
        step()
      elseif request or not goes_on(session) then
        show(session, request or requests.incomplete(session, why or 'unknown'))
      else
        vim.defer_fn(function()
          if of == run and run.state ~= 'over' then
            step()
          end
        end, AGAIN)
      end
    end)
  end)
end

--- Go on when a session asks at last; end when no session works any more, or when the user has left
--- the view: the keys of another window are not for the next question.
local function follow_updates()
  local of = run
  local function look()
    if of ~= run or of.state ~= 'resting' then
      return
    elseif of.shown and not view.is_here() then
      return close()
    end
    step()
  end
  sessions.on_change('triage', function()
    if of ~= run or of.state == 'over' then
      return true
    elseif of.state == 'resting' then
      vim.schedule(function()
        moment.when('open', look)
      end)
    end
  end)
end

--- Answer one session after the other.
---@param only? bellboard.Session[] default: all that are blocked, not snoozed and not parked
---@param wants_replies? boolean after them, show those that have ended a turn
M.run = function(only, wants_replies)
  if run and run.state ~= 'over' then
    close()
  end
  run = { passed = {}, counts = {}, wrong = {}, pending = 0, wants_replies = wants_replies == true }
  for _, session in ipairs(only or {}) do
    run.only = run.only or {}
    run.only[session.session_id] = true
  end
  if sessions.stale() then
    run = nil
    message.info('cannot answer: ' .. host.outdated())
  elseif #waiting() == 0 then
    run = nil
    message.info(host.instead('no session is asking anything'))
  else
    follow_updates()
    step()
  end
end

return M
