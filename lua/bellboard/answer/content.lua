-- The rows of a request: who asks, what is asked, and what the user has chosen so far.
local cells = require('bellboard.text')
local parts = require('bellboard.answer.parts')
local place = require('bellboard.place')

local M = {}

local add_text, add_marked = parts.add_text, parts.add_marked

---@class bellboard.Draft what the user has chosen so far
---@field chosen table<integer, table<integer, true>> by question, its options
---@field typed table<integer, string> by question
---@field kept table<integer, string> by question, a text that an option has replaced
---@field choice? string the choice whose number was pressed once
---@field values table<integer, any> by field
---@field refused table<string, string> by choice, the text of an answer that was refused

---@param question bellboard.Question
---@param at integer
---@param draft bellboard.Draft
---@param width integer
---@param rows bellboard.Row[]
local function question_of(question, at, draft, width, rows)
  local here = { question = at }
  if (question.header or '') ~= '' then
    add_text(rows, question.header, width, 'BellboardHeading', '', here)
  end
  add_text(rows, question.text, width, nil, '', here)
  local chosen, typed = draft.chosen[at] or {}, draft.typed[at]
  for nth, option in ipairs(question.options or {}) do
    local is = chosen[nth] and not typed
    local mark = (question.many and '[%s]' or '(%s)'):format(is and 'x' or ' ')
    local spot = { question = at, option = nth }
    -- Keys are single digits: "12" would choose option 1, and then option 2 of the next question.
    local head = ('%s%s %s '):format(parts.INDENT, nth <= 9 and nth or ' ', mark)
    add_marked(rows, head, option.label, width, spot, is and 'BellboardChosen' or nil)
    if (option.description or '') ~= '' then
      add_text(rows, option.description, width, 'BellboardDim', (' '):rep(#head), spot)
    end
  end
  if typed then
    add_marked(rows, parts.INDENT .. '> ', typed, width, here, 'BellboardChosen')
  end
end

--- Values of a form, in words.
local WORDS = { [true] = 'yes', [false] = 'no' }

---@param request bellboard.Request
---@param draft bellboard.Draft
---@param width integer
---@param rows bellboard.Row[]
local function form_of(request, draft, width, rows)
  local widest = 0
  local function name(field)
    local title = cells.safe((field.title or '') ~= '' and field.title or field.name)
    return title .. (field.required and ' *' or '')
  end
  for _, field in ipairs(request.fields) do
    widest = math.min(math.max(widest, cells.width(name(field))), math.floor(width / 2))
  end
  for nth, field in ipairs(request.fields) do
    local value = draft.values[nth]
    local head = parts.INDENT .. cells.fit(name(field), widest) .. '  '
    local kind = field.options and #field.options > 0 and 'choose' or field.type or 'string'
    local text = value == nil and ('(%s)'):format(kind) or WORDS[value] or tostring(value)
    local group = value == nil and 'BellboardDim' or 'BellboardChosen'
    add_marked(rows, head, text == '' and '""' or text, width, { field = nth }, group)
    if (field.description or '') ~= '' then
      add_text(rows, field.description, width, 'BellboardDim', parts.INDENT:rep(2), { field = nth })
    end
  end
end

--- Who asks, in one or two rows.
---@param session bellboard.Session
---@param request bellboard.Request
---@return string
local function asker(session, request)
  local words, who = session.words, {}
  for _, word in ipairs({
    session.machine and 'on ' .. session.machine or '',
    words.repository ~= '' and words.repository or words.project,
    words.branch,
    words.title,
    request.thread_type and request.thread_type ~= '' and 'subagent ' .. request.thread_type or '',
    (request.thread or '') ~= '' and (request.thread_type or '') == '' and 'a subagent' or '',
    place.of(session),
  }) do
    who[#who + 1] = word ~= '' and cells.safe(word) or nil
  end
  return table.concat(who, ' · ')
end

--- All rows of a request.
---@param session bellboard.Session
---@param request bellboard.Request
---@param draft bellboard.Draft
---@param width integer
---@param title string|nil what the title of the window has no room for
---@return bellboard.Row[]
M.rows = function(session, request, draft, width, title)
  local rows = {}
  add_text(rows, title, width, 'BellboardHeading')
  add_text(rows, asker(session, request), width, 'BellboardDim')
  for _, part in ipairs(request.parts or {}) do
    rows[#rows + 1] = parts.row('')
    parts.add(part, width, rows)
  end
  for nth, question in ipairs(request.questions or {}) do
    rows[#rows + 1] = parts.row('')
    question_of(question, nth, draft, width, rows)
  end
  if request.fields and #request.fields > 0 then
    rows[#rows + 1] = parts.row('')
    form_of(request, draft, width, rows)
  end
  return rows
end

return M
