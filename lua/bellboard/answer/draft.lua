-- The user's draft of an answer: chosen options, typed texts, values of a form.
local M = {}

---@class bellboard.Draft
---@field chosen table<integer, table<integer, true>> by question, its options
---@field typed table<integer, string> by question
---@field kept table<integer, string> by question, a text that an option has replaced
---@field once? string the choice whose key was pressed once, and has to be pressed twice
---@field values table<integer, any> by field
---@field refused table<string, string> by choice, the text of an answer that was refused

--- From here on, numbers are rounded.
local LARGEST = 2 ^ 53

---@param request bellboard.Request
---@return bellboard.Draft
M.new = function(request)
  local draft = { chosen = {}, typed = {}, kept = {}, values = {}, refused = {} }
  for nth, field in ipairs(request.fields or {}) do
    draft.values[nth] = field.default
  end
  return draft
end

--- Choose an option of a question; where several can be chosen, toggle it. A text is kept.
---@param draft bellboard.Draft
---@param question bellboard.Question
---@param at integer
---@param option integer
M.choose = function(draft, question, at, option)
  draft.kept[at] = draft.typed[at] or draft.kept[at]
  draft.typed[at] = nil
  local before = draft.chosen[at] or {}
  if question.many then
    before[option] = not before[option] or nil
    draft.chosen[at] = before
  else
    draft.chosen[at] = { [option] = true }
  end
end

--- Answer a question in the user's words; an empty text removes the answer.
---@param draft bellboard.Draft
---@param at integer
---@param text string
M.type = function(draft, at, text)
  draft.typed[at] = vim.trim(text) ~= '' and text or nil
  draft.kept[at] = nil
end

--- Set a field from what the user has typed.
---@param draft bellboard.Draft
---@param field bellboard.Field
---@param at integer
---@param text string empty: no value
---@return string|nil why it cannot be that
M.set = function(draft, field, at, text)
  if text == '' then
    draft.values[at] = nil
  elseif field.type == 'number' or field.type == 'integer' then
    local number = tonumber(text, 10) or tonumber(text)
    if not number or number ~= number or math.abs(number) == math.huge then
      return ('"%s" is not a number'):format(text)
    elseif field.type == 'integer' and number ~= math.floor(number) then
      return ('%s is not a whole number'):format(text)
    elseif field.type == 'integer' and math.abs(number) >= LARGEST then
      return ('%s cannot be sent exactly; answer in its terminal'):format(text)
    end
    draft.values[at] = number
  else
    draft.values[at] = text
  end
end

--- The first question after one that is not answered.
---@param draft bellboard.Draft
---@param request bellboard.Request
---@param after integer
---@return integer|nil
M.open = function(draft, request, after)
  local count = #(request.questions or {})
  for step = 0, count - 1 do
    local at = (after + step) % count + 1
    if not (draft.typed[at] or next(draft.chosen[at] or {})) then
      return at
    end
  end
end

--- The answers by the text of their question: labels, or a typed text.
---@param draft bellboard.Draft
---@param request bellboard.Request
---@return table<string, string[]|string>
M.answers = function(draft, request)
  local answers = {}
  for at, question in ipairs(request.questions or {}) do
    local labels = {}
    for nth, option in ipairs(question.options or {}) do
      labels[#labels + 1] = (draft.chosen[at] or {})[nth] and option.label or nil
    end
    answers[question.text] = draft.typed[at] or #labels > 0 and labels or nil
  end
  return answers
end

--- What the user typed for an answer.
---@param answer bellboard.Answer
---@return string
M.typed = function(answer)
  local texts = { answer.message or answer.input }
  for _, given in ipairs({ answer.answers or {}, answer.content or {} }) do
    for _, value in vim.spairs(given) do
      texts[#texts + 1] = type(value) == 'string' and value or nil
    end
  end
  return table.concat(texts, '\n')
end

--- The values of a form by the name of their field.
---@param draft bellboard.Draft
---@param request bellboard.Request
---@return table<string, any>
M.content = function(draft, request)
  local content = {}
  for at, field in ipairs(request.fields or {}) do
    content[field.name] = draft.values[at]
  end
  return content
end

return M
