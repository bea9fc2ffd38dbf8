-- The request in the view: what the user has chosen of it, and whether keys answer it now.
local age = require('bellboard.view.age')
local cells = require('bellboard.view.cells')
local config = require('bellboard.config')
local content = require('bellboard.view.request.content')
local draft = require('bellboard.action.draft')
local foot = require('bellboard.view.request.foot')
local layout = require('bellboard.view.request.layout')
local sessions = require('bellboard.state.sessions')
local window = require('bellboard.view.request.window')

local M = {}

---@class bellboard.Shown a request to show
---@field session bellboard.Session
---@field request bellboard.Request
---@field prefix? fun(): string start of the title
---@field status? string what is to be said about it
---@field skip? fun() shows the next one instead
---@field sent? fun(reply: bellboard.Reply) gets what came of an answer
---@field sending? fun() an answer is on its way
---@field over fun(how: 'closed'|'gone'|'snoozed', why?: string) nothing more is to be answered

---@class bellboard.Open: bellboard.Shown
---@field draft bellboard.Draft
---@field is_over? boolean its keys no longer answer
---@field is_busy? boolean an answer is on its way
---@field warned? boolean that not all questions are answered

---@type bellboard.Open|nil
local open
--- When keys count, in nanoseconds.
local ready = 0

--- The choices that a key stands for; the first one that there is.
M.MEANS = {
  yes = { 'allow', 'approve', 'choose', 'fill' },
  always = { 'always', 'approve-edits' },
  no = { 'deny', 'decline' },
  reply = { 'deny', 'keep' },
  stop = { 'stop' },
  edit = { 'edit' },
}

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
      local takes = name ~= 'reply' or (choice.needs or ''):find('^message')
      if choice.id == id and takes then
        return choice
      end
    end
  end
end

--- Whether keys count yet.
---@return boolean
M.is_ready = function()
  return vim.uv.hrtime() >= ready
end

--- Whether keys answer it.
---@return boolean
M.can = function()
  return open ~= nil and not (open.is_over or open.is_busy) and M.is_ready()
end

---@return bellboard.Chunk[]
local function title()
  local session, request = open.session, open.request
  local project, asked = cells.safe(session.words.project), cells.safe(request.title or '')
  local since = (request.asked_at or 0) > 0 and request.asked_at or session.since
  local name = project .. ': ' .. (asked ~= '' and asked or session.words.word)
  local prefix, ago = ' ' .. (open.prefix and open.prefix() or ''), '  ' .. age.of(since) .. ' '
  local room = layout.width() - cells.width(prefix .. ago)
  return {
    { prefix, 'BellboardDim' },
    { cells.cut(name, math.max(room, 1)), 'BellboardFloatTitle' },
    { ago, 'BellboardDim' },
  }
end

--- The key of each choice.
---@return table<string, string>
local function keys()
  local found = {}
  for _, name in ipairs({ 'yes', 'always', 'no', 'reply', 'stop', 'edit' }) do
    local choice = M.choice_of(name)
    if choice then
      found[choice.id] = found[choice.id] or name
    end
  end
  return found
end

--- Draw it as it is now.
---@param is_new? boolean
M.draw = function(is_new)
  if not (open and window.is_open()) then
    return
  end
  local width = layout.width()
  window.draw({
    title = title(),
    rows = content.rows(open.session, open.request, open.draft, width),
    again = not is_new,
    foot = foot.rows(open.request, {
      status = open.status,
      can = M.can(),
      is_over = open.is_over == true,
      skips = open.skip ~= nil,
      asks = open.is_over == true and sessions.get(open.session.session_id) ~= nil,
      keys = keys(),
    }, width),
  })
end

--- Say something below it.
---@param text string|nil
M.say = function(text)
  if open then
    open.status = text
    M.draw()
  end
end

--- Let keys count once none has been pressed for a moment.
M.guard = function()
  local wait = config.get().answer.ready
  ready = vim.uv.hrtime() + wait * 1e9
  vim.defer_fn(function()
    if M.is_ready() then
      M.draw()
    end
  end, math.ceil(wait * 1000) + 1)
end

--- Show another request, or none.
---@param shown bellboard.Shown|nil
M.set = function(shown)
  open = shown and vim.tbl_extend('force', { draft = draft.new(shown.request) }, shown) or nil
  if shown then
    M.guard()
  end
end

return M
