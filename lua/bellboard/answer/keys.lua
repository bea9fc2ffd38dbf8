-- The open request and its keys: choose, fill in, send, leave. No key answers a request that is
-- no longer open.
local canvas = require('bellboard.canvas')
local cells = require('bellboard.text')
local config = require('bellboard.config')
local dialog = require('bellboard.dialog')
local diff = require('bellboard.answer.diff')
local drafts = require('bellboard.answer.draft')
local input = require('bellboard.answer.input')
local jump = require('bellboard.jump')
local mark = require('bellboard.session_edit')
local requests = require('bellboard.answer.request')
local host = require('bellboard.process.talk')
local rows = require('bellboard.answer.rows')
local sessions = require('bellboard.sessions')
local writing = require('bellboard.send')

local M = {}

local api = vim.api

---@alias bellboard.Over 'closed'|'gone'|'sent'|'snoozed'|'seen'|'again' how a view was left

---@class bellboard.Shown a request to show
---@field session bellboard.Session
---@field request bellboard.Request
---@field status? string a message about it
---@field prefix? fun(): string start of the title
---@field skip? fun() shows the next one instead
---@field failed? fun(): bellboard.Session|nil the session whose last answer failed
---@field sending? fun() an answer is on its way
---@field sent? fun(reply: bellboard.Reply) gets the outcome of an answer
---@field over fun(how: bellboard.Over, why?: string) nothing is left

---@class bellboard.Open: bellboard.Shown
---@field draft bellboard.Draft
---@field state 'asking'|'sending'|'over'|'done' over: it is no longer asked; done: nothing is left
---@field drawn? { width: integer, rows: bellboard.Row[] } of a last turn
---@field leaves? string message once it has closed by itself

---@type bellboard.Open|nil
local open
---@type bellboard.Dialog|nil
local view

local UNTYPED = 'This question takes only the options that it offers.'
--- Choices that can be sent before the request was read to its end.
local REFUSES = { deny = true, decline = true, keep = true, stop = true }

---@return bellboard.Open|nil
M.now = function()
  return open
end

--- Whether keys go to the view.
---@return boolean
M.is_here = function()
  return view ~= nil and view:is_here()
end

--- Whether keys answer it.
---@return boolean
M.can = function()
  return open ~= nil and open.state == 'asking' and view ~= nil and view:is_ready()
end

local function close_window()
  if view then
    local closed = view
    view = nil
    closed:close()
  end
end

--- Redraw it.
---@param is_new? boolean
local function draw(is_new)
  if not (open and view and view:is_open()) then
    return
  end
  local session, request = open.session, open.request
  local asked = cells.safe(request.title or '')
  local title = cells.safe(session.words.project)
    .. ': '
    .. (asked ~= '' and asked or session.words.word)
  local width, is_ready = view:width(), view:is_ready()
  local is_long = cells.width(title) > width - 16
  local way = open.state == 'asking' and request.way ~= 'go' and (request.ways or {})[1]
  view:draw({
    title = title,
    prefix = open.prefix and open.prefix(),
    since = (request.asked_at or 0) > 0 and request.asked_at or session.since,
    rows = rows.of(open, width, is_ready, is_long and asked or nil),
    hints = rows.hints(open, is_ready),
    page = rows.key_of('page'),
    note = way and cells.safe(way.words) or nil,
    status = open.status,
  }, is_new)
end

--- Show a message below it.
---@param text string|nil
M.say = function(text)
  if open then
    open.status = text
    draw()
  end
end

--- Show what has come of it, in place of what can be chosen.
---@param state 'over'|'done'
---@param text string
local function conclude(state, text)
  local this = assert(open)
  this.state, this.status = state, text
  draw()
  if view and view:is_open() then
    view:to_end()
  end
end

--- Close the view, if it shows this request, and return to where the user was.
---@param shown bellboard.Shown
M.close = function(shown)
  if open == shown then
    open = nil
    close_window()
  end
end

--- Close it at once.
local function leave()
  local this = assert(open)
  this.over('closed', this.leaves)
end

--- Show that all is done. The view then closes by itself, once no key was pressed for a moment: the
--- next key goes to the window below it.
---@param text string
---@param stays? boolean it waits to be closed
M.finish = function(text, stays)
  local this = assert(open)
  if not M.is_here() then
    return this.over('closed', text)
  end
  this.leaves = not stays and text or nil
  conclude('done', text:gsub('^%l', string.upper) .. '.')
  assert(view):wait()
end

--- The keys count now. A view that closes by itself does so, unless the user is typing a command.
local function settled()
  if open and open.leaves then
    if api.nvim_get_mode().mode:find('^c') then
      return assert(view):wait()
    end
    leave()
  end
end

-- Whether it is still asked -----------------------------------------------------------------------

--- The request is over: say so, or move on, in a triage or if the user is elsewhere.
---@param why string
local function gone(why)
  local this = assert(open)
  if input.is_open() then
    this.state = 'over'
    return input.warn(why, function()
      if this == open then
        gone(why)
      end
    end)
  elseif this.request.turn and M.is_here() then
    this.state = 'over'
    return M.say(why) -- who reads it goes on reading
  elseif this.skip or not M.is_here() then
    return this.over('gone', why)
  end
  conclude('over', why)
end

--- The fields of a request that show what is asked.
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

--- Go on with the request that replaced the open one, if both ask the same: some CLIs report a
--- question when it comes, and again when they show it.
---@param this bellboard.Open
---@param why string
local function follow(this, why)
  local session = sessions.get(this.session.session_id)
  if not session or session.status ~= 'blocked' or session.asked_at ~= this.session.asked_at then
    return gone(why)
  end
  requests.get(session, { id = session.request or '' }, function(request)
    if this ~= open or this.state ~= 'asking' then
      return
    end
    local was_read = this.request.digest ~= ''
    if not request or was_read and not is_alike(this.request, request) then
      return gone(why)
    end
    this.session, this.request, this.draft.once = session, request, nil
    if was_read then
      assert(view):wait()
      draw()
    else
      this.status = nil
      M.show(this)
    end
  end)
end

--- Check that the request is open. The background process also knows requests that others hide.
local function check()
  local this = open
  if not this or this.state ~= 'asking' then
    return
  elseif not sessions.get(this.session.session_id) then
    return gone('The session has ended.')
  elseif this.request.turn then
    if not (requests.still_asks(this.session) or writing.is_open()) then
      gone('It has gone on since then.')
    end
    return
  elseif requests.still_asks(this.session) and this.request.id == (this.session.request or '') then
    return
  end
  requests.get(this.session, { id = this.request.id }, function(request, why)
    if this ~= open or this.state ~= 'asking' then
      return
    elseif not request then
      follow(this, ('No longer asked: %s.'):format(why))
    elseif request.digest ~= this.request.digest then
      gone('It asks something else now.')
    end
  end)
end

-- Answering ---------------------------------------------------------------------------------------

--- Show the outcome of an answer, if the view still shows its request.
---@param shown bellboard.Shown
---@param reply bellboard.Reply
---@return boolean whether it does
M.heard = function(shown, reply)
  if open ~= shown then
    return false
  end
  open.state = 'asking'
  local outcome = requests.outcome(reply)
  if requests.is_taken(reply) then
    M.finish(outcome)
  elseif reply.ok then
    conclude('over', 'Answered, but ' .. (reply.text or 'nothing happened') .. '.')
  else
    M.say((outcome .. '.'):gsub('^%l', string.upper))
    check()
  end
  return true
end

---@param answer bellboard.Answer
local function send(answer)
  local this = assert(open)
  assert(view):enter()
  this.state = 'sending'
  for _, text in pairs(this.draft.kept) do
    canvas.cut(text) -- the view is about to close
  end
  M.say('Sending…')
  requests.send(this.session, this.request, answer, function(reply)
    local text = drafts.typed(answer)
    if not reply.ok and vim.trim(text) ~= '' then
      this.draft.refused[answer.choice] = answer.message or answer.input
      canvas.cut(text)
      reply.why = reply.why .. '; your text is in register 1'
    end
    this.sent(reply)
  end)
  if this.sending then
    this.sending()
  end
end

--- Let the user type, then act if the view still shows the same request.
---@param prompt bellboard.Input
---@param act fun(text: string)
local function ask(prompt, act)
  local this = assert(open)
  prompt.takes = this.request.takes
  input.open(prompt, function(text, is_left)
    if not is_left and view then
      view:enter()
    end
    if text and this == open and this.state == 'asking' then
      act(text)
    end
  end)
end

--- Why a choice cannot be sent yet, if it cannot.
---@param choice bellboard.Choice
---@param is_again boolean its key was pressed before
---@return string|nil
local function obstacle(choice, is_again)
  local this, seen = assert(open), assert(view)
  if choice.needs == 'answers' then
    if not next(drafts.answers(this.draft, this.request)) then
      return 'Choose first: press the number of an option'
        .. (rows.fills(this.request) and ', or i to type an answer.' or '.')
    end
    local first = drafts.open(this.draft, this.request, 0)
    if first and not is_again then
      this.draft.once = choice.id
      seen:seek({ question = first })
      return 'Some questions are unanswered. Press the key again to send anyway.'
    end
  end
  if not (REFUSES[choice.id] or seen:was_read()) then
    return 'Read it to the end first: <Space> or G.'
  end
end

local give

--- The request could be answered only in its terminal: check whether it can be from here by now.
---@param choice bellboard.Choice
---@param says_why boolean
local function look_again(choice, says_why)
  local this = assert(open)
  requests.get(this.session, { id = this.request.id }, function(request)
    if this ~= open or not (M.can() and M.is_here()) then
      return
    end
    if request and request.digest == this.request.digest and request.way ~= 'go' then
      for _, key in ipairs({ 'way', 'ways', 'choices', 'takes', 'more' }) do
        this.request[key] = request[key]
      end
      for _, each in ipairs(request.choices or {}) do
        if each.id == choice.id then
          return give(each, says_why)
        end
      end
      draw()
    end
  end)
end

--- Send a choice, after asking for what it needs.
---@param choice bellboard.Choice
---@param says_why boolean
---@param is_again? boolean its key was pressed before
give = function(choice, says_why, is_again)
  local this = assert(open)
  local why, refused = obstacle(choice, is_again == true), this.draft.refused[choice.id]
  if why then
    return M.say(why)
  elseif requests.is_only_there(this.request) then
    look_again(choice, says_why)
  elseif says_why or choice.needs == 'message' then
    ask({ title = choice.words, text = refused }, function(text)
      send({ choice = choice.id, message = vim.trim(text) })
    end)
  elseif choice.needs == 'input' then
    local command = vim.iter(this.request.parts or {}):find(function(part)
      return part.kind == 'command'
    end)
    local text = refused or command and command.text or ''
    ask({ title = choice.words, text = text, filetype = 'sh' }, function(changed)
      send({ choice = choice.id, input = changed })
    end)
  elseif choice.needs == 'answers' then
    send({ choice = choice.id, answers = drafts.answers(this.draft, this.request) })
  elseif choice.needs == 'content' then
    send({ choice = choice.id, content = drafts.content(this.draft, this.request) })
  else
    send({ choice = choice.id })
  end
end

--- Send the choice that a key stands for.
---@param name string of the key
---@param once? string the choice whose key was pressed before
local function answer(name, once)
  local choice = requests.choice(assert(open).request, name)
  if choice then
    give(choice, name == 'reply', once == choice.id)
  end
end

--- Whether an option is the answer to the only question.
---@param nth integer|nil
---@return boolean
local function is_chosen(nth)
  local chosen = assert(open).draft
  return nth ~= nil and not chosen.typed[1] and (chosen.chosen[1] or {})[nth] == true
end

--- Press the number of a choice: the second time, it is sent.
---@param nth integer
---@param once? string the choice whose number was pressed before
local function number(nth, once)
  local this = assert(open)
  local choice = requests.numbered(this.request, nth)
  local why = choice and obstacle(choice, false)
  if not choice then
    return
  elseif why then
    return M.say(why)
  elseif once == choice.id then
    return give(choice, false)
  end
  this.draft.once = choice.id
  M.say(('Press %d again or <CR> to say: %s.'):format(nth, choice.words))
end

--- Choose an option of the question under the cursor, and go to the next question. If there is only
--- one question, choosing the option again sends it. Without questions, `nth` is a choice's number.
---@param nth integer
---@param once? string the choice whose number was pressed before
local function option(nth, once)
  local this, seen = assert(open), assert(view)
  local at = (seen:spot() or { question = 1 }).question
  local question = at and (this.request.questions or {})[at]
  local is_only = requests.only_question(this.request) ~= nil
  if not question then
    return number(nth, once)
  elseif not (question.options or {})[nth] then
    return
  elseif is_only and is_chosen(nth) then
    return answer('yes')
  end
  drafts.choose(this.draft, question, at, nth)
  local texts = {
    is_only and nth <= 9 and ('Press %d again or <CR> to answer that.'):format(nth) or nil,
  }
  texts[#texts + 1] = this.draft.kept[at] and 'Your text is kept: i shows it.' or nil
  M.say(#texts > 0 and table.concat(texts, ' ') or nil)
  local following = not question.many and drafts.open(this.draft, this.request, at)
  if following then
    seen:seek({ question = following })
  elseif is_only then
    seen:seek({ question = at, option = nth })
  end
end

---@param at integer
---@param field bellboard.Field
local function fill(at, field)
  local this, seen = assert(open), assert(view)
  local name = cells.safe((field.title or '') ~= '' and field.title or field.name)
  local function put(value)
    seen:enter()
    if value ~= nil and this == open then
      this.draft.values[at] = value
      M.say(nil)
    end
  end
  if field.type == 'boolean' then
    return put(not this.draft.values[at])
  elseif field.options and #field.options > 0 then
    seen:yield()
    return dialog.select(field.options, {
      prompt = name,
      kind = 'bellboard-answer',
      format_item = function(each)
        return cells.safe(each.label .. ' ' .. (each.description or ''))
      end,
    }, function(each)
      put(each and each.label)
    end)
  end
  local before = this.draft.values[at]
  ask({ title = name, text = before ~= nil and tostring(before) or '' }, function(text)
    M.say(drafts.set(this.draft, field, at, text))
  end)
end

--- Type an answer to the question under the cursor, or set the field.
local function type_in()
  local this, seen = assert(open), assert(view)
  local spot = seen:spot() or { question = 1, field = 1 }
  local question = spot.question and (this.request.questions or {})[spot.question]
  local field = spot.field and (this.request.fields or {})[spot.field]
  if question and question.typed == false then
    M.say(UNTYPED)
  elseif question then
    local title = (question.header or '') ~= '' and question.header or 'Answer'
    local before = this.draft.typed[spot.question] or this.draft.kept[spot.question]
    ask({ title = cells.safe(title), text = before }, function(text)
      drafts.type(this.draft, spot.question, text)
      local is_sent = requests.only_question(this.request) and this.draft.typed[1]
      M.say(is_sent and 'Press <CR> to answer with your text.' or nil)
      seen:seek({ question = spot.question })
    end)
  elseif field then
    fill(spot.field, field)
  end
end

--- Answer the only question: with the option under the cursor, else with what was chosen or typed.
---@param question bellboard.Question
---@param spot bellboard.Spot
local function settle(question, spot)
  local this, seen = assert(open), assert(view)
  local answered = next(drafts.answers(this.draft, this.request)) ~= nil
  if not (answered or spot.option or seen:was_read()) then
    return seen:page()
  elseif spot.option and this.draft.typed[1] then
    local text = 'You typed an answer: %s sends it; the number of an option chooses that instead.'
    return M.say(text:format(rows.key_of('yes') or '<CR> above the options'))
  elseif spot.option and not is_chosen(spot.option) then
    drafts.choose(this.draft, question, 1, spot.option)
    draw()
  end
  answer('yes')
end

--- Show how a file differs that the last turn names: the one under the cursor, or the only one.
---@param this bellboard.Open
local function compare(this)
  local files, seen = this.request.turn.files or {}, assert(view)
  local spot = seen:spot() or {}
  local file = files[spot.file] or #files == 1 and files[1]
  if not file then
    seen:seek({ file = 1 })
    return M.say(#files > 0 and 'Put the cursor on a file, then press the key again.' or nil)
  end
  local about = { session_id = this.session.session_id, path = file.whole }
  host.ask('diff', about, function(reply)
    if this ~= open or not M.is_here() then
      return
    elseif reply.diff then
      return diff.show(reply.diff, file.path)
    end
    M.say(('No diff of %s: %s.'):format(cells.safe(file.path), reply.why))
  end)
end

--- Send what was chosen, choose the option or set the field under the cursor, compare the file;
--- elsewhere show the next page.
---@param this bellboard.Open
---@param once? string the choice whose number was pressed before
local function pick(this, once)
  local seen = assert(view)
  local spot, question = seen:spot() or {}, requests.only_question(this.request)
  local choice = once
    and vim.iter(this.request.choices):find(function(each)
      return each.id == once
    end)
  if (question or choice) and not M.can() then
    seen:wait()
  elseif question then
    settle(question, spot)
  elseif choice then
    give(choice, false, true)
  elseif spot.option then
    option(spot.option)
  elseif spot.field then
    type_in()
  elseif spot.file then
    compare(this)
  else
    seen:page()
  end
end

-- Keys --------------------------------------------------------------------------------------------

--- Close it, and go to a session.
---@param this bellboard.Open
---@param session bellboard.Session|nil
local function go(this, session)
  if session then
    this.over('closed')
    jump.to(session.session_id)
  end
end

--- Keys that wait do something that cannot be taken back, or leave the view.
---@type table<string, true>
local WAITS = { send = true, snooze = true, seen = true, go = true, failed = true }

---@type table<string, fun(this: bellboard.Open, once?: string)> the name of a key → what it does
local acts = {
  fill = type_in,
  pick = pick,
  page = function()
    assert(view):page()
  end,
  diff = function(this)
    if this.request.turn then
      return compare(this)
    end
    local part = rows.diffs(this.request)[1]
    if part then
      diff.open(part, not this.session.machine, function()
        return this == open and M.is_here()
      end)
    end
  end,
  skip = function(this)
    if this.skip then
      this.skip()
    end
  end,
  snooze = function(this)
    mark.snooze(this.session.session_id)
    this.over('snoozed')
  end,
  send = function(this)
    if this.request.turn then
      writing.open(this.session.session_id, {
        sent = function()
          if this == open then
            this.over('sent')
          end
        end,
      })
    end
  end,
  seen = function(this)
    if this.request.turn then
      host.tell({ ['goto'] = { session_id = this.session.session_id } })
      this.over('seen')
    end
  end,
  go = function(this)
    go(this, this.session)
  end,
  failed = function(this)
    go(this, this.failed and this.failed())
  end,
  update = function(this)
    if this.state == 'over' then
      this.over('again')
    end
  end,
  close = leave,
}
for _, name in ipairs({ 'yes', 'always', 'no', 'reply', 'stop', 'edit' }) do
  WAITS[name] = true
  acts[name] = function(_, once)
    if M.can() then
      answer(name, once)
    end
  end
end

--- Keys that still do something once nothing is left.
local ENDS = { close = true, failed = true }

--- The keys of the view: what is configured, and the numbers.
---@return bellboard.Key[]
local function keys()
  local made = {}
  ---@param lhs string
  ---@param waits boolean|nil
  ---@param works_at_end boolean|nil
  ---@param act fun(this: bellboard.Open, once?: string)
  local function add(lhs, waits, works_at_end, act)
    made[#made + 1] = {
      lhs,
      waits = waits,
      act = function()
        if not open or open.state == 'done' and not works_at_end then
          return
        end
        local once = open.draft.once -- it has to be pressed twice in a row
        open.draft.once = nil
        if once then
          M.say(nil)
        end
        act(open, once)
      end,
    }
  end
  for nth = 1, 9 do
    add(tostring(nth), true, false, function(_, once)
      if M.can() then
        option(nth, once)
      end
    end)
  end
  for lhs, name in pairs(config.get().answer.keys) do
    if name then
      add(lhs, WAITS[name], ENDS[name], acts[name])
    end
  end
  return made
end

-- Showing -----------------------------------------------------------------------------------------

local function open_window()
  local mine ---@type bellboard.Dialog
  mine = dialog.open({
    keys = keys(),
    name = 'bellboard://request',
    is_split = config.get().answer.layout == 'split',
    changed = draw,
    settled = settled,
    closed = function()
      if open and view == mine then
        leave()
      end
    end,
  }, { title = '', rows = { { text = '' } }, hints = {} })
  view = mine
  sessions.on_change('request.update', function()
    vim.schedule(function()
      if open and view == mine and not mine:is_open() then -- by `:noautocmd q`
        return leave()
      end
      draw()
      check()
    end)
    return view ~= mine
  end)
end

--- Show a request, in the open view or in a new one.
---@param shown bellboard.Shown
M.show = function(shown)
  local request = shown.request
  open = shown --[[@as bellboard.Open]]
  open.draft, open.state = drafts.new(request), 'asking'
  if not (view and view:is_open()) then
    close_window()
    open_window()
  end
  assert(view):wait()
  draw(true)
  if request.questions or request.fields then
    view:seek(request.questions and { question = 1 } or { field = 1 })
  end
end

--- Show a request that the user has asked for, where the user is. What was shown before is over; a
--- view that is open elsewhere, perhaps in another tab page, is closed.
---@param shown bellboard.Shown
M.open = function(shown)
  local before = open
  open = nil
  if not M.is_here() then
    close_window()
  end
  if before then
    before.over('closed', before.leaves)
  end
  M.show(shown)
end

return M
