-- The view of a request and its keys. No key answers while the user may still be typing something
-- else, or once the request is answered elsewhere.
local choosing = require('bellboard.answer.choosing')
local config = require('bellboard.config')
local diff = require('bellboard.answer.diff')
local foot = require('bellboard.answer.foot')
local input = require('bellboard.answer.input')
local jump = require('bellboard.jump')
local mark = require('bellboard.session_edit')
local opened = require('bellboard.answer.opened')
local parts = require('bellboard.answer.parts')
local sending = require('bellboard.answer.sending')
local sessions = require('bellboard.sessions')
local updates = require('bellboard.updates')
local window = require('bellboard.answer.view')

local M = {}

local api = vim.api

local function close_windows()
  api.nvim_create_augroup('bellboard.request.update', {})
  diff.close()
  window.close()
end

--- Close the view, if it shows this request, and return to where the user was.
---@param shown bellboard.Shown
M.close = function(shown)
  if opened.now() == shown then
    opened.set(nil)
    close_windows()
  end
end

--- The request is no longer asked: say so, or move on, in a triage or if the user is elsewhere.
---@param why string
local function gone(why)
  local open = assert(opened.now())
  if input.is_open() then
    open.is_over = true
    return input.warn(why, function()
      if open == opened.now() then
        gone(why)
      end
    end)
  elseif open.skip or not opened.is_here() then
    return open.over('gone', why)
  end
  open.is_over = true
  diff.close()
  opened.say(why)
end

--- What a request shows of what is asked.
---@type string[]
local SHOWN = { 'kind', 'title', 'thread', 'parts', 'questions', 'fields' }

---@param one bellboard.Request
---@param other bellboard.Request
---@return boolean
local function is_alike(one, other)
  return vim.iter(SHOWN):all(function(key)
    return vim.deep_equal(one[key], other[key])
  end)
end

--- Go on with the request that has replaced it, if that asks the same: some CLIs report a question
--- when it comes and once more when they show it.
---@param open bellboard.Open
---@param why string
local function follow(open, why)
  local session = sessions.get(open.session.session_id)
  if not session or session.status ~= 'blocked' or session.asked_at ~= open.session.asked_at then
    return gone(why)
  end
  sending.get(session, { id = session.request or '' }, function(request)
    if open ~= opened.now() or open.is_over or open.is_busy then
      return
    end
    local was_read = open.request.digest ~= ''
    if not request or was_read and not is_alike(open.request, request) then
      return gone(why)
    end
    open.session, open.request, open.draft.choice = session, request, nil
    if was_read then
      opened.guard()
      opened.draw()
    else
      open.status = nil
      M.show(open)
    end
  end)
end

--- Check that it is still open. The background process also knows requests that another one hides.
local function check()
  local open = opened.now()
  if not open or open.is_over or open.is_busy then
    return
  elseif not sessions.get(open.session.session_id) then
    return gone('The session has ended.')
  elseif sending.stands(open.session) and open.request.id == (open.session.request or '') then
    return
  end
  sending.get(open.session, { id = open.request.id }, function(request, why)
    if open ~= opened.now() or open.is_over or open.is_busy then
      return
    elseif not request then
      follow(open, ('No longer asked: %s.'):format(why))
    elseif request.digest ~= open.request.digest then
      gone('It asks something else now.')
    end
  end)
end

--- Show the outcome of an answer, if the view still shows its request.
---@param shown bellboard.Shown
---@param reply bellboard.Reply
---@param taken string|nil message if the agent did what the answer says
---@return boolean whether it does
M.heard = function(shown, reply, taken)
  local open = opened.now()
  if open ~= shown then
    return false
  end
  open.is_busy = false
  if taken then
    M.finish(taken)
  elseif reply.ok then
    open.is_over = true
    opened.say('Answered, but ' .. (reply.text or 'nothing happened') .. '.')
  else
    opened.say((sending.failure(reply) .. '.'):gsub('^%l', string.upper))
    check()
  end
  return true
end

--- Show that all is done, and leave the view.
---@param text string
---@param stays? boolean it waits to be closed
M.finish = function(text, stays)
  if opened.is_here() then
    diff.close()
    opened.finish(text, stays == true)
  else
    assert(opened.now()).over('closed', text)
  end
end

--- Close it at once.
---@param open bellboard.Open
local function close(open)
  open.over('closed', open.leaves)
end

---@type table<string, fun(open: bellboard.Open)> the name of a key → what it does
local moves = {
  fill = choosing.type,
  pick = choosing.pick,
  page = window.page,
  diff = function(open)
    local part = parts.diffs(open.request)[1]
    if part then
      diff.open(part, not open.session.machine, {
        foot = window.foot(),
        attach = M.attach,
        wanted = function()
          return open == opened.now() and opened.is_here()
        end,
        done = opened.draw,
      })
    end
  end,
  skip = function(open)
    if open.skip then
      open.skip()
    end
  end,
  snooze = function(open)
    mark.snooze(open.session.session_id)
    open.over('snoozed')
  end,
  go = function(open)
    open.over('closed')
    jump.to(open.session.session_id)
  end,
  failed = function(open)
    local session = open.failed and open.failed()
    if session then
      open.over('closed')
      jump.to(session.session_id)
    end
  end,
  update = function(open)
    if open.is_over then
      open.over('closed')
      require('bellboard.answer').to(open.session.session_id)
    end
  end,
  close = function(open)
    if diff.is_open() then
      diff.close()
      window.enter()
      opened.draw()
    else
      close(open)
    end
  end,
}

--- Keys that leave the view, which wait like those that answer, and keys that work at the end.
local LEAVES = { go = true, failed = true, snooze = true }
local ENDS = { close = true, failed = true }

--- Whether a key was pressed in the view, not in a copy of it.
---@return boolean
local function is_pressed_here()
  return window.is_open() and opened.is_here()
end

---@param name string
local function press(name)
  local open = opened.now()
  if not open or name ~= 'close' and not is_pressed_here() or open.is_done and not ENDS[name] then
    return
  end
  if name ~= 'pick' and open.draft and open.draft.choice then
    open.draft.choice = nil -- its number has to be pressed twice in a row
    opened.say(nil)
  end
  if not (opened.MEANS[name] or LEAVES[name]) then
    moves[name](open)
  elseif not opened.is_ready() then
    opened.guard()
  elseif LEAVES[name] then
    moves[name](open)
  elseif opened.can() then
    choosing.answer(name)
  end
end

--- Map the keys in a buffer of the view.
---@param buf integer
M.attach = function(buf)
  local function map(lhs, act, desc)
    vim.keymap.set('n', lhs, act, { buffer = buf, nowait = true, desc = desc })
  end
  for _, lhs in ipairs(foot.INERT) do
    map(lhs, '<Nop>', 'nothing')
  end
  for nth = 1, 9 do
    map(tostring(nth), function()
      if is_pressed_here() and opened.can() then
        choosing.option(nth)
      end
    end, 'choose an option')
  end
  for lhs, name in pairs(config.get().answer.keys) do
    if name then
      map(lhs, function()
        press(name)
      end, name)
    end
  end
  opened.keep(buf)
end

--- Open the windows, without a request.
local function open_windows()
  window.open({
    close = function()
      local open = opened.now()
      if open then
        close(open)
      end
    end,
    changed = opened.draw,
  })
  M.attach(window.buffer())
  M.attach(window.foot())
  local function update()
    local open = opened.now()
    if open and not window.is_open() then -- by `:noautocmd q`
      return close(open)
    end
    opened.draw()
    check()
  end
  updates.on('request.update', vim.schedule_wrap(update))
end

--- Show a request, in the open view or in a new one.
---@param shown bellboard.Shown
M.show = function(shown)
  local request = shown.request
  if not request.complete and (request.why or '') ~= '' then
    local why = 'Cannot be answered here: ' .. request.why .. '.'
    shown.status = shown.status and shown.status .. '. ' .. why or why
  end
  opened.set(shown)
  diff.close()
  if not window.is_open() then
    open_windows()
  end
  opened.draw(true)
  if request.questions or request.fields then
    window.seek(request.questions and { question = 1 } or { field = 1 })
  end
end

--- Show a request that the user has asked for, where the user is. What was shown before is over; a
--- view that is open elsewhere, perhaps in another tab page, is closed.
---@param shown bellboard.Shown
M.open = function(shown)
  local before = opened.now()
  opened.set(nil)
  if not window.is_of(api.nvim_get_current_win()) then
    close_windows()
  end
  if before then
    before.over('closed', before.leaves)
  end
  M.show(shown)
end

return M
