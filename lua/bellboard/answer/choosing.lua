-- What the answering keys of a request do: choose, type, fill in, and send.
local cells = require('bellboard.text')
local diff = require('bellboard.answer.diff')
local draft = require('bellboard.answer.draft')
local foot = require('bellboard.answer.foot')
local input = require('bellboard.answer.input')
local opened = require('bellboard.answer.opened')
local sending = require('bellboard.answer.sending')
local window = require('bellboard.answer.view')

local M = {}

local UNTYPED = 'This question takes only the options that it offers.'
--- Choices that can be sent before the request was read to its end.
local REFUSES = { deny = true, decline = true, keep = true, stop = true }

---@param answer bellboard.Answer
local function send(answer)
  local open = assert(opened.now())
  diff.close()
  window.enter()
  open.is_busy = true
  for _, text in pairs(open.draft.kept) do
    input.keep(text) -- the view is about to close
  end
  opened.say('Sending…')
  sending.send(open.session, open.request, answer, function(reply)
    local text = draft.typed(answer)
    if not reply.ok and vim.trim(text) ~= '' then
      open.draft.refused[answer.choice] = answer.message or answer.input
      input.keep(text)
      reply.why = reply.why .. '; your text is in register 1'
    end
    open.sent(reply)
  end)
  if open.sending then
    open.sending()
  end
end

--- Let the user type, then do something if the view still shows the same.
---@param what bellboard.Input
---@param act fun(text: string)
local function ask(what, act)
  local open = assert(opened.now())
  what.takes = open.request.takes
  input.open(what, function(text, is_left)
    if not is_left then
      window.enter()
    end
    if text and open == opened.now() and not open.is_over then
      act(text)
    end
  end)
end

--- Why a choice cannot be sent yet, if it cannot.
---@param choice bellboard.Choice
---@return string|nil
local function obstacle(choice)
  local open = assert(opened.now())
  if choice.needs == 'answers' then
    if not next(draft.answers(open.draft, open.request)) then
      return 'Choose first: press the number of an option'
        .. (foot.fills(open.request) and ', or i to type an answer.' or '.')
    end
    local first = draft.open(open.draft, open.request, 0)
    if first and not open.warned then
      open.warned = true
      window.seek({ question = first })
      return 'Some questions are unanswered. Press the key again to send anyway.'
    end
  end
  if not (REFUSES[choice.id] or window.is_seen()) then
    return 'Read it to the end first: <Space> or G.'
  end
end

---@param open bellboard.Open
---@return string
local function command_of(open)
  for _, part in ipairs(open.request.parts or {}) do
    if part.kind == 'command' then
      return part.text
    end
  end
  return ''
end

local give

--- It could only be answered there: check whether it can be answered from here by now.
---@param choice bellboard.Choice
---@param says_why boolean
local function look_again(choice, says_why)
  local open = assert(opened.now())
  sending.get(open.session, { id = open.request.id }, function(request)
    if open ~= opened.now() or not (opened.can() and opened.is_here()) then
      return
    end
    local is_same = request and request.digest == open.request.digest
    if is_same and request.way ~= 'go' then
      open.request.way, open.request.ways = request.way, request.ways
      open.request.choices, open.request.takes = request.choices, request.takes
      open.request.more = request.more
      for _, each in ipairs(request.choices or {}) do
        if each.id == choice.id then
          return give(each, says_why)
        end
      end
      opened.draw()
    end
  end)
end

--- Send a choice, after asking for what it needs.
---@param choice bellboard.Choice
---@param says_why boolean
give = function(choice, says_why)
  local open = assert(opened.now())
  local why, refused = obstacle(choice), open.draft.refused[choice.id]
  if why then
    return opened.say(why)
  elseif opened.is_only_there() then
    look_again(choice, says_why)
  elseif says_why or choice.needs == 'message' then
    ask({ title = choice.words, text = refused }, function(text)
      send({ choice = choice.id, message = vim.trim(text) })
    end)
  elseif choice.needs == 'input' then
    local command = refused or command_of(open)
    ask({ title = choice.words, text = command, filetype = 'sh' }, function(text)
      send({ choice = choice.id, input = text })
    end)
  elseif choice.needs == 'answers' then
    send({ choice = choice.id, answers = draft.answers(open.draft, open.request) })
  elseif choice.needs == 'content' then
    send({ choice = choice.id, content = draft.content(open.draft, open.request) })
  else
    send({ choice = choice.id })
  end
end

--- Send the choice that a key stands for.
---@param name string of the key
M.answer = function(name)
  local choice = opened.choice_of(name)
  if choice then
    give(choice, name == 'reply')
  end
end

--- Whether an option is the answer to the only question.
---@param nth integer|nil
---@return boolean
local function is_chosen(nth)
  local chosen = assert(opened.now()).draft
  return nth ~= nil and not chosen.typed[1] and (chosen.chosen[1] or {})[nth] == true
end

--- Choose an option of the question under the cursor, and go to the next question. If there is only
--- one, choosing it again sends it. Where nothing is asked like that, it is the number of a choice.
---@param nth integer
M.option = function(nth)
  local open, spot = assert(opened.now()), window.spot() or { question = 1 }
  local at = spot.question
  local question = at and (open.request.questions or {})[at]
  if not question then
    return M.choice(nth)
  elseif not (question.options or {})[nth] then
    return
  elseif opened.lone() and is_chosen(nth) then
    return M.answer('yes')
  end
  draft.choose(open.draft, question, at, nth)
  local told = {
    opened.lone() and nth <= 9 and ('Press %d again or <CR> to answer that.'):format(nth) or nil,
  }
  told[#told + 1] = open.draft.kept[at] and 'Your text is kept: i shows it.' or nil
  opened.say(#told > 0 and table.concat(told, ' ') or nil)
  local following = not question.many and draft.open(open.draft, open.request, at)
  if following then
    window.seek({ question = following })
  elseif opened.lone() then
    window.seek({ question = at, option = nth })
  end
end

--- Press the number of a choice: the second time, it is sent.
---@param nth integer
M.choice = function(nth)
  local open, choice = assert(opened.now()), opened.numbered(nth)
  local why = choice and obstacle(choice)
  if not choice then
    return
  elseif why then
    return opened.say(why)
  elseif open.draft.choice == choice.id then
    open.draft.choice = nil
    return give(choice, false)
  end
  open.draft.choice = choice.id
  opened.say(('Press %d again or <CR> to say: %s.'):format(nth, choice.words))
end

---@param at integer
---@param field bellboard.Field
local function fill(at, field)
  local open = assert(opened.now())
  local name = cells.safe((field.title or '') ~= '' and field.title or field.name)
  local function put(value)
    window.enter()
    if value ~= nil and open == opened.now() then
      open.draft.values[at] = value
      opened.say(nil)
    end
  end
  if field.type == 'boolean' then
    return put(not open.draft.values[at])
  elseif field.options and #field.options > 0 then
    window.yield()
    return vim.ui.select(field.options, {
      prompt = name,
      kind = 'bellboard-answer',
      format_item = function(option)
        return cells.safe(option.label .. ' ' .. (option.description or ''))
      end,
    }, function(option)
      put(option and option.label)
    end)
  end
  local before = open.draft.values[at]
  ask({ title = name, text = before ~= nil and tostring(before) or '' }, function(text)
    opened.say(draft.set(open.draft, field, at, text))
  end)
end

--- Type an answer to the question under the cursor, or set the field.
M.type = function()
  local open = assert(opened.now())
  local request = open.request
  local spot = window.spot() or { question = 1, field = 1 }
  local question = spot.question and (request.questions or {})[spot.question]
  local field = spot.field and (request.fields or {})[spot.field]
  if question and question.typed == false then
    opened.say(UNTYPED)
  elseif question then
    local title = (question.header or '') ~= '' and question.header or 'Answer'
    local before = open.draft.typed[spot.question] or open.draft.kept[spot.question]
    ask({ title = cells.safe(title), text = before }, function(text)
      draft.type(open.draft, spot.question, text)
      local is_sent = opened.lone() and open.draft.typed[1]
      opened.say(is_sent and 'Press <CR> to answer with your text.' or nil)
      window.seek({ question = spot.question })
    end)
  elseif field then
    fill(spot.field, field)
  end
end

--- Answer the only question: with the option under the cursor, else with what was chosen or typed.
---@param spot bellboard.Spot
local function settle(spot)
  local open = assert(opened.now())
  local answered = next(draft.answers(open.draft, open.request)) ~= nil
  if not (answered or spot.option or window.is_seen()) then
    return window.page()
  elseif spot.option and open.draft.typed[1] then
    local yes = foot.key_of('yes')
    local text = 'You typed an answer: %s sends it; the number of an option chooses that instead.'
    return opened.say(text:format(yes or '<CR> above the options'))
  elseif spot.option and not is_chosen(spot.option) then
    draft.choose(open.draft, opened.lone() --[[@as bellboard.Question]], 1, spot.option)
    opened.draw()
  end
  M.answer('yes')
end

--- Send what was chosen, choose the option or set the field under the cursor; elsewhere show the
--- next page.
M.pick = function()
  local spot, open = window.spot() or {}, assert(opened.now())
  if opened.lone() or open.draft.choice then
    if not opened.is_ready() then
      opened.guard()
    elseif opened.can() and opened.lone() then
      settle(spot)
    elseif opened.can() then
      for nth = 1, 9 do
        local choice = opened.numbered(nth)
        if choice and choice.id == open.draft.choice then
          return M.choice(nth)
        end
      end
    end
  elseif spot.option then
    M.option(spot.option)
  elseif spot.field then
    M.type()
  else
    window.page()
  end
end

return M
