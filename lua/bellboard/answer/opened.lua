-- The request in the view: what the user has chosen of it, and whether keys answer it now.
local age = require('bellboard.age')
local cells = require('bellboard.text')
local content = require('bellboard.answer.content')
local diff = require('bellboard.answer.diff')
local draft = require('bellboard.answer.draft')
local foot = require('bellboard.answer.foot')
local guards = require('bellboard.key_delay')
local layout = require('bellboard.answer.layout')
local sessions = require('bellboard.sessions')
local window = require('bellboard.answer.view')

local M = {}

---@class bellboard.Shown a request to show
---@field session bellboard.Session
---@field request bellboard.Request
---@field prefix? fun(): string start of the title
---@field status? string a message about it
---@field skip? fun() shows the next one instead
---@field failed? fun(): bellboard.Session|nil the session whose last answer failed
---@field sent? fun(reply: bellboard.Reply) gets the outcome of an answer
---@field sending? fun() an answer is on its way
---@field over fun(how: 'closed'|'gone'|'snoozed', told?: string) nothing is left to answer

---@class bellboard.Open: bellboard.Shown
---@field draft bellboard.Draft
---@field is_over? boolean its keys no longer answer
---@field is_busy? boolean an answer is on its way
---@field is_done? boolean nothing is left but to close it
---@field leaves? string message once it has closed by itself
---@field warned? boolean that not all questions are answered

local api = vim.api

---@type bellboard.Open|nil
local open

local guard = guards.new(function()
  if not open then
    return
  elseif not open.leaves then
    M.draw()
  elseif api.nvim_get_mode().mode:find('^c') then
    M.guard() -- the user is typing a command
  else
    open.over('closed', open.leaves)
  end
end, function()
  vim.schedule(M.draw) -- its window may be half entered
end)

--- The choices that a key stands for; the first one that exists counts.
M.MEANS = {
  yes = { 'allow', 'approve', 'choose', 'fill' },
  always = { 'always', 'approve-edits' },
  no = { 'deny', 'decline' },
  reply = { 'deny', 'keep' },
  stop = { 'stop' },
  edit = { 'edit' },
}

--- The choice with a number: of a permission or a plan, as in the dialogs of the agents.
---@param nth integer
---@return bellboard.Choice|nil
M.numbered = function(nth)
  local request = assert(open).request
  return not (request.questions or request.fields) and (request.choices or {})[nth] or nil
end

--- The only question, if one answer to it is all that is asked.
---@return bellboard.Question|nil
M.lone = function()
  local questions = assert(open).request.questions or {}
  return #questions == 1 and not questions[1].many and questions[1] or nil
end

---@return bellboard.Open|nil
M.now = function()
  return open
end

--- The choice that a key stands for.
---@param name string of a key
---@return bellboard.Choice|nil
M.choice_of = function(name)
  for _, id in ipairs(M.MEANS[name] or {}) do
    for _, choice in ipairs(open and open.request.choices or {}) do
      local needs = choice.needs or ''
      local takes = { reply = needs:find('^message') ~= nil, no = needs ~= 'message' }
      if choice.id == id and takes[name] ~= false then
        return choice
      end
    end
  end
end

--- Whether keys count yet.
---@return boolean
M.is_ready = guard.is_ready

--- Whether keys answer it.
---@return boolean
M.can = function()
  return open ~= nil and not (open.is_over or open.is_busy) and M.is_ready()
end

--- Whether it has choices, and none of them can be given from here.
---@return boolean
M.is_only_there = function()
  local request = assert(open).request
  return request.way == 'go' and #(request.choices or {}) > 0
end

---@return bellboard.Chunk[]
---@return string|nil asked what is asked, if there is no room for all of it
local function title()
  local session, request = open.session, open.request
  local project, asked = cells.safe(session.words.project), cells.safe(request.title or '')
  local since = (request.asked_at or 0) > 0 and request.asked_at or session.since
  local name = project .. ': ' .. (asked ~= '' and asked or session.words.word)
  local prefix, ago = ' ' .. (open.prefix and open.prefix() or ''), '  ' .. age.of(since) .. ' '
  local room = math.max(layout.width() - cells.width(prefix .. ago), 1)
  return {
    { prefix, 'BellboardDim' },
    { cells.cut(name, room), 'BellboardFloatTitle' },
    { ago, 'BellboardDim' },
  },
    cells.width(name) > room and asked or nil
end

--- The key of each choice: what is configured, or else its number.
---@return table<string, string>
local function keys()
  local found = {}
  for _, name in ipairs({ 'yes', 'always', 'no', 'reply', 'stop', 'edit' }) do
    local choice = M.choice_of(name)
    if choice then
      found[choice.id] = found[choice.id] or foot.key_of(name)
    end
  end
  for nth = 1, 9 do
    local choice = M.numbered(nth)
    if choice then
      found[choice.id] = found[choice.id] or tostring(nth)
    end
  end
  return found
end

--- Redraw it.
---@param is_new? boolean
M.draw = function(is_new)
  if not (open and window.is_open()) then
    return
  end
  local width, failed = layout.width(), open.failed and open.failed()
  local head, asked = title()
  window.draw({
    title = head,
    rows = content.rows(open.session, open.request, open.draft, width, asked),
    again = not is_new,
    foot = foot.rows(open.request, {
      status = open.status,
      can = M.can() and not M.is_only_there(),
      is_over = open.is_over == true,
      is_done = open.is_done == true,
      is_diff = diff.is_open(),
      skips = open.skip ~= nil,
      asks = open.is_over == true and sessions.get(open.session.session_id) ~= nil,
      is_only_there = M.is_only_there() and not open.is_over,
      failed = failed and cells.safe(failed.words.project),
      keys = keys(),
      choice = open.draft.choice,
    }, width),
  })
  diff.fit()
end

--- Show a message below it.
---@param text string|nil
M.say = function(text)
  if open then
    open.status = text
    M.draw()
  end
end

--- Let keys count once none has been pressed for a moment.
M.guard = guard.wait

--- Wait again now, whenever a window of that buffer is entered, and after each key of a prompt.
---@param buf integer
M.keep = guard.keep

--- Whether keys go to the view.
---@return boolean
M.is_here = function()
  return window.is_of(api.nvim_get_current_win()) or diff.is_here()
end

--- Show that all is done. The view then closes by itself, once no key was pressed for a moment:
--- the next key goes to whatever is below it.
---@param text string
---@param stays boolean it waits to be closed
M.finish = function(text, stays)
  local now = assert(open)
  now.is_over, now.is_busy, now.is_done = true, false, true
  now.leaves = not stays and text or nil
  M.say(text:gsub('^%l', string.upper) .. '.')
  M.guard()
end

--- Show another request, or none.
---@param shown bellboard.Shown|nil
M.set = function(shown)
  open = shown
  if shown then
    open.draft = draft.new(shown.request)
    M.guard()
  end
end

return M
