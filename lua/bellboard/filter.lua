-- The filter of the board: `api status:blocked !done` matches sessions with all of these words.
local place = require('bellboard.place')

local M = {}

---@class bellboard.Term
---@field word string in lower case
---@field fields bellboard.FilterField[] where to look for it
---@field without boolean match sessions that do not have it

---@alias bellboard.FilterField 'status'|'repository'|'branch'|'label'|'agent'|'machine'|'text'

---@type bellboard.FilterField[]
M.fields = { 'status', 'repository', 'branch', 'label', 'agent', 'machine', 'text' }

--- A changed session is a new table.
---@type table<bellboard.Session, table<bellboard.FilterField, string>>
local kept = setmetatable({}, { __mode = 'k' })

---@param session bellboard.Session
---@return table<bellboard.FilterField, string>
local function texts_of(session)
  local texts = kept[session]
  if not texts then
    local words = session.words
    local function join(...)
      return table.concat({ ... }, ' '):lower()
    end
    texts = {
      status = join(
        session.status,
        session.kind or '',
        words.icon,
        session.needs_you and 'needs you' or '',
        session.link_since and 'stale' or '',
        session.quiet_since and 'quiet' or '',
        words.notes
      ),
      repository = join(words.repository, words.project),
      branch = words.branch:lower(),
      label = words.label:lower(),
      agent = join(session.agent or '', session.model or '', session.mode or ''),
      machine = (session.machine or ''):lower(),
      text = join(words.title, words.word, words.text, session.session_id),
    }
    kept[session] = texts
  end
  return texts
end

--- Split a filter into its terms. A field may be abbreviated: `s:blocked`.
---@param filter string
---@return bellboard.Term[]
M.parse = function(filter)
  local terms = {}
  for word in filter:lower():gmatch('%S+') do
    local without = word:match('^!(.+)$')
    local name, rest = (without or word):match('^(%a+):(.*)$')
    local fields = name
      and vim.tbl_filter(function(field)
        return vim.startswith(field, name)
      end, M.fields)
    local named = fields and #fields > 0
    local text = named and rest or without or word
    if text ~= '' and text ~= '!' then
      terms[#terms + 1] =
        { word = text, fields = named and fields or M.fields, without = without ~= nil }
    end
  end
  return terms
end

---@param session bellboard.Session
---@param term bellboard.Term
local function has(session, term)
  local texts = texts_of(session)
  for _, field in ipairs(term.fields) do
    if texts[field]:find(term.word, 1, true) then
      return true
    end
  end
  return #term.fields > 1 and place.of(session):lower():find(term.word, 1, true) ~= nil
end

---@param session bellboard.Session
---@param terms bellboard.Term[]
---@return boolean
M.matches = function(session, terms)
  for _, term in ipairs(terms) do
    if has(session, term) == term.without then
      return false
    end
  end
  return true
end

return M
