-- What the user says to a session: written in a small window of its own, and put into the session's
-- prompt by the background process. What was not sent is kept, and is there again the next time.
local age = require('bellboard.age')
local canvas = require('bellboard.canvas')
local cells = require('bellboard.text')
local config = require('bellboard.config')
local context = require('bellboard.send.context')
local dialog = require('bellboard.dialog')
local frame = require('bellboard.frame')
local highlight = require('bellboard.highlight')
local host = require('bellboard.process.talk')
local jump = require('bellboard.jump')
local message = require('bellboard.message')
local moment = require('bellboard.moment')
local place = require('bellboard.place')
local sessions = require('bellboard.sessions')
local window = require('bellboard.window')

local M = {}

local api = vim.api

local namespace = api.nvim_create_namespace('bellboard.send')
local group = api.nvim_create_augroup('bellboard.send', {})

--- Rows that it has at least, and the part of the screen that it takes at most.
local LEAST, PART = 5, 0.5
--- Columns and rows that are not its own: borders, and a margin to see what is below.
local BESIDE = 4

---@class bellboard.Letter what the user writes to a session
---@field session bellboard.Session as it was last known
---@field here bellboard.Here
---@field buf integer
---@field win? integer
---@field back? fun(resumes?: boolean)
---@field status? string a message about it
---@field is_cut? boolean there is no room for all of it
---@field is_sending? boolean
---@field sent? fun() called once it was submitted

---@type bellboard.Letter|nil the one in the window
local open
--- What was written and not sent, by session: its buffers are hidden, so that `u` still works.
---@type table<string, bellboard.Letter>
local drafts = {}

---@param buf integer
---@return string
local function written(buf)
  local text = table.concat(api.nvim_buf_get_lines(buf, 0, -1, false), '\n')
  return (text:gsub('^[ \t]*\n', ''):gsub('%s+$', ''))
end

--- What a reply says, in words.
---@param reply bellboard.Reply
---@return string
local function outcome(reply)
  if reply.ok then
    return reply.text or 'sent'
  end
  return reply.is_unsure and reply.why or 'not sent: ' .. reply.why
end

-- The frame ---------------------------------------------------------------------------------------

--- The hints, in their order: the action, and what it does in words.
local HINTS = {
  { 'send', 'send' },
  { 'put', 'paste only' },
  { 'context', 'add context' },
  { 'go', 'terminal' },
  { 'close', 'close' },
}

--- Whether a key also works in Insert mode: it types nothing.
---@param lhs string
---@return boolean
local function is_control(lhs)
  return lhs:find('^<[CM]%-') ~= nil
end

--- The keys that work now; after a message, only the one that goes there.
---@param is_said boolean
---@return bellboard.Hint[]
local function hints(is_said)
  local inserts, found = api.nvim_get_mode().mode:find('^i') ~= nil, {}
  for nth, hint in ipairs(HINTS) do
    local all = vim.tbl_filter(function(lhs)
      return config.get().send.keys[lhs] == hint[1] and is_control(lhs) == inserts
    end, vim.tbl_keys(config.get().send.keys))
    table.sort(all, function(a, b)
      return #a < #b or #a == #b and a < b
    end)
    local key = all[1] and all[1]:gsub('%-%u>', string.lower)
    found[#found + 1] = key and (not is_said or hint[1] == 'go') and { key, hint[2], rank = nth }
      or nil
  end
  found[#found + 1] = inserts and not is_said and { '<Esc>', 'more keys', rank = 0 } or nil
  return found
end

--- Draw who it goes to, what that session does, and the keys.
local function draw()
  local this = open
  if not (this and api.nvim_win_is_valid(this.win)) then
    return
  end
  local session, words = this.session, this.session.words
  local width = api.nvim_win_get_width(this.win)
  local right = { { (' %s'):format(highlight.icon(session)), highlight.group(session) } }
  right[2] = { (' %s %s '):format(words.word, age.of(session.since)), 'BellboardDim' }
  local left = { { ' to ', 'BellboardDim' } }
  local room = width - cells.sum(right) - 6
  left[2] = { cells.cut(cells.safe(words.project), room), 'BellboardHeading' }
  local about = vim.tbl_filter(function(text)
    return text ~= ''
  end, { cells.safe(words.title ~= '' and words.title or words.branch), place.of(session) })
  local rest = table.concat(about, ' · ')
  rest = rest ~= '' and cells.cut(' · ' .. rest, room - cells.width(left[2][1])) or ''
  left[3] = { rest .. ' ', 'BellboardDim' }
  local foot = frame.keys(this.is_sending and {} or hints(this.status ~= nil), width)
  if this.status then
    local text = cells.cut(this.status, math.max(width - cells.sum(foot) - 2, 1))
    this.is_cut = text ~= this.status
    table.insert(foot, 1, { (' %s '):format(text), 'BellboardStatus' })
  end
  api.nvim_win_set_config(this.win, {
    title = frame.spread(left, right, width, frame.edge(this.win, 'top')),
    footer = frame.spread(foot, {}, width, frame.edge(this.win, 'bottom')),
  })
end

--- Say something below the text; in a message if that cuts it.
---@param text string|nil
local function say(text)
  local this = assert(open)
  text = text and cells.safe(text):gsub('^%l', string.upper) or nil
  this.status = text
  draw()
  if text and this.is_cut then
    message.info(('%s: %s'):format(sessions.name(this.session), text))
  end
end

--- Where it goes. It grows with what is written.
---@param buf integer
---@param win? integer
---@return vim.api.keyset.win_config
local function layout(buf, win)
  local lines = vim.o.lines - vim.o.cmdheight
  local width = math.max(math.min(config.get().answer.width, vim.o.columns) - BESIDE, 16)
  local most = math.max(math.min(math.floor(lines * PART), lines - BESIDE), 1)
  local rows, before = api.nvim_buf_line_count(buf), win and api.nvim_win_get_height(win) or LEAST
  if win and math.max(rows, before) < most then -- it takes long for a long line
    rows = api.nvim_win_text_height(win, {}).all
  end
  local height = math.min(math.max(rows, before), most)
  local border = highlight.border()
  return {
    relative = 'editor',
    width = width,
    height = height,
    row = math.max(math.floor((lines - most - 2) / 2), 0),
    col = math.max(math.floor((vim.o.columns - width - 2) / 2), 0),
    border = border == 'shadow' and highlight.plain_border() or border, -- a title needs an edge
    zindex = config.get().float.zindex + 2,
  }
end

local function fit()
  if open and api.nvim_win_is_valid(open.win) then
    local where = layout(open.buf, open.win)
    if where.height ~= api.nvim_win_get_height(open.win) then
      api.nvim_win_set_config(open.win, where)
      draw()
    end
  end
end

-- Closing -----------------------------------------------------------------------------------------

---@param this bellboard.Letter
local function forget(this)
  drafts[this.session.session_id] = nil
  if api.nvim_buf_is_valid(this.buf) then
    api.nvim_buf_delete(this.buf, { force = true })
  end
end

--- Close the window, and go back to where the user was. A text stays, unless it was sent.
---@param is_sent? boolean
local function close(is_sent)
  local this = open
  if not this then
    return
  end
  open = nil
  api.nvim_clear_autocmds({ group = group })
  local is_here = api.nvim_get_current_win() == this.win
  window.close(this.win)
  if is_here then
    this.back(true)
  end
  local text = not is_sent and api.nvim_buf_is_valid(this.buf) and written(this.buf) or ''
  if text ~= '' and this.is_sending then
    return
  elseif text == '' then
    return forget(this)
  end
  local note = 'your text is kept, for the next time'
  if not sessions.get(this.session.session_id) then
    canvas.cut(text)
    forget(this)
    note = 'the session has ended; your text is in register 1'
  end
  message.info(('%s: %s'):format(sessions.name(this.session), note))
end

-- Sending -----------------------------------------------------------------------------------------

--- Put a text into the prompt of a session.
---@param session bellboard.Session
---@param text string
---@param submit boolean
---@param done? fun(reply: bellboard.Reply) default: a message
M.send = function(session, text, submit, done)
  done = done
    or function(reply)
      message.info(('%s: %s'):format(sessions.name(session), outcome(reply)))
    end
  if vim.trim(text) == '' then
    return done({ ok = false, why = 'there is no text' })
  elseif sessions.stale() then
    return done({ ok = false, why = host.outdated() })
  end
  local request = { session_id = session.session_id, text = text, submit = submit }
  host.ask('send', request, done)
end

--- Send what is written.
---@param submit boolean
local function deliver(submit)
  local this = assert(open)
  local session, buf = this.session, this.buf
  vim.cmd.stopinsert()
  vim.bo[buf].modifiable = false
  this.is_sending = true
  say('Sending…')
  M.send(session, written(buf), submit, function(reply)
    local is_over, text = reply.ok and reply.outcome ~= 'nothing', outcome(reply)
    this.is_sending = nil
    if api.nvim_buf_is_valid(buf) then
      vim.bo[buf].modifiable = true
    end
    if open == this and not is_over then
      return say(text)
    elseif open == this then
      close(true)
    elseif is_over then
      forget(this)
    else
      text = text .. '; your text is kept'
    end
    message.info(('%s: %s'):format(sessions.name(session), text))
    if is_over and submit and this.sent then
      this.sent()
    end
  end)
end

-- Adding context ----------------------------------------------------------------------------------

--- Put a text in place of a mark. One of several lines begins a line of its own.
---@param buf integer
---@param mark integer
---@param text string
---@return integer[] row and column after it
local function put(buf, mark, text)
  local at = api.nvim_buf_get_extmark_by_id(buf, namespace, mark, { details = true })
  local row, col, last = at[1], at[2], at[3]
  local before = api.nvim_buf_get_text(buf, row, 0, row, col, {})[1]
  if text:find('\n') and vim.trim(before) ~= '' then
    text = '\n' .. text
  end
  local lines = vim.split(text, '\n', { plain = true })
  api.nvim_buf_set_text(buf, row, col, last.end_row or row, last.end_col or col, lines)
  api.nvim_buf_del_extmark(buf, namespace, mark)
  return { row + #lines, #lines[#lines] + (#lines == 1 and col or 0) }
end

--- Replace a part of the text by what a name stands for, once that is known.
---@param this bellboard.Letter
---@param name string
---@param range { [1]: integer, [2]: integer, [3]: integer } row and columns, from 0
---@param done fun(at: integer[]|nil, why: string|nil) where the text ends
local function fill(this, name, range, done)
  local opts = { end_col = range[3], right_gravity = false, end_right_gravity = true }
  local mark = api.nvim_buf_set_extmark(this.buf, namespace, range[1], range[2], opts)
  context.get(name, this.here, function(text, why)
    if not api.nvim_buf_is_valid(this.buf) or not vim.bo[this.buf].modifiable then
      return
    end
    done(text and put(this.buf, mark, text), why)
    fit()
  end)
end

--- Replace the words that stand for context in some rows, from 0.
---@param this bellboard.Letter
---@param from integer
local function expand(this, from)
  local lines = api.nvim_buf_get_lines(this.buf, from, -1, false)
  for nth = #lines, 1, -1 do -- from the end, so that what is before stays in its place
    local found = {}
    for first, name, last in lines[nth]:gmatch('(){(%a+)}()') do
      table.insert(found, 1, { first, name, last })
    end
    for _, word in ipairs(found) do
      if context.is_known(word[2]) then
        fill(this, word[2], { from + nth - 1, word[1] - 1, word[3] - 1 }, function(at, why)
          if not at then
            message.info(('{%s}: %s'):format(word[2], why))
          end
        end)
      end
    end
  end
end

--- Let the user choose what to add at the cursor.
local function add()
  local this = assert(open)
  local inserts, cursor = api.nvim_get_mode().mode:find('^i') ~= nil, api.nvim_win_get_cursor(0)
  local line = api.nvim_get_current_line()
  local col = math.min(cursor[2] + (inserts and 0 or 1), #line)
  local options = {
    prompt = 'Add',
    format_item = function(item)
      return item[2]
    end,
  }
  dialog.select(context.items(), options, function(item)
    if not item or open ~= this or not api.nvim_win_is_valid(this.win) then
      return
    end
    window.enter(this.win)
    fill(this, item[1], { cursor[1] - 1, col, col }, function(at, why)
      if not at then
        return say(why)
      end
      say(nil)
      if api.nvim_get_current_win() == this.win then
        local is_end = at[2] >= #api.nvim_buf_get_lines(this.buf, at[1] - 1, at[1], false)[1]
        vim.cmd.startinsert({ bang = is_end })
        api.nvim_win_set_cursor(this.win, at)
      end
    end)
  end)
end

-- Keys --------------------------------------------------------------------------------------------

---@type table<string, fun(this: bellboard.Letter)>
local acts = {
  send = function()
    deliver(true)
  end,
  put = function()
    deliver(false)
  end,
  context = add,
  go = function(this)
    close()
    jump.to(this.session.session_id)
  end,
  close = function()
    close()
  end,
}

---@param buf integer
local function map(buf)
  for lhs, name in pairs(config.get().send.keys) do
    local function act()
      local this = open
      local is_here = this and api.nvim_get_current_win() == this.win
      if is_here and (not this.is_sending or name == 'close' or name == 'go') then
        acts[name](this)
      end
    end
    if name then
      local modes = is_control(lhs) and { 'n', 'i' } or 'n'
      vim.keymap.set(modes, lhs, act, { buffer = buf, nowait = true, desc = name })
    end
  end
end

-- Opening -----------------------------------------------------------------------------------------

--- A buffer to write in: a normal one, but that no file is behind it.
---@return integer
local function buffer()
  local buf = api.nvim_create_buf(false, true)
  vim.bo[buf].bufhidden, vim.bo[buf].modifiable = 'hide', true -- it is off in `nvim -M`
  vim.b[buf].bellboard_view = true
  local function on(events, callback)
    api.nvim_create_autocmd(events, { buffer = buf, callback = callback })
  end
  on({ 'TextChanged', 'TextChangedI', 'TextChangedP' }, function()
    if open and open.buf == buf and open.status and not open.is_sending then
      say(nil)
    end
    fit()
  end)
  on('BufWinLeave', function()
    local this = open
    vim.schedule(function()
      if this and open == this and this.buf == buf and not api.nvim_win_is_valid(this.win) then
        close()
      end
    end)
  end)
  return buf
end

--- Follow what its session does.
---@return boolean over
local function follow()
  if not open then
    return true
  end
  local session = sessions.get(open.session.session_id)
  if session then
    open.session = session
  elseif open.status == nil then
    open.status = 'The session has ended.'
  end
  draw()
  return false
end

--- Add a text at the end, on lines of its own.
---@param this bellboard.Letter
---@param text string
local function append(this, text)
  local is_empty = written(this.buf) == ''
  local from = is_empty and 0 or api.nvim_buf_line_count(this.buf)
  local lines = vim.split(text, '\n', { plain = true })
  api.nvim_buf_set_lines(this.buf, from, -1, false, lines)
  expand(this, from)
end

---@param this bellboard.Letter
local function show(this)
  local id = this.session.session_id
  this.back = window.origin()
  this.win = window.open(this.buf, true, layout(this.buf))
  drafts[id], open = this, this
  window.bare(this.win, { wrap = true, linebreak = true, breakindent = true, foldcolumn = '1' })
  highlight.frame(this.win)
  local opts = { buf = this.buf }
  pcall(api.nvim_set_option_value, 'filetype', 'markdown', opts) -- an autocommand may fail
  vim.bo[this.buf].textwidth = 0
  map(this.buf) -- now: other plugins map <CR> in Markdown
  sessions.on_change('send', follow)
  api.nvim_create_autocmd({ 'ModeChanged', 'VimResized' }, {
    group = group,
    callback = vim.schedule_wrap(function(event)
      if event.event == 'VimResized' and open and api.nvim_win_is_valid(open.win) then
        api.nvim_win_set_config(open.win, layout(open.buf, open.win))
      end
      draw()
    end),
  })
end

---@class bellboard.SendOptions
---@field text? string to begin with; names of context in it are replaced
---@field here? bellboard.Here where the user was; default: where they are
---@field sent? fun() called once the text was submitted

---@return boolean
M.is_open = function()
  return open ~= nil
end

--- Open the window in which the user writes to a session, with what was not sent the last time.
---@param id string
---@param opts? bellboard.SendOptions
M.open = function(id, opts)
  opts = opts or {}
  local here = opts.here or context.here()
  moment.when('open', function()
    local session = sessions.get(id)
    if not session then
      return message.info('that session has ended')
    end
    window.leave_visual()
    local is_there = open ~= nil and open == drafts[id] and api.nvim_win_is_valid(open.win)
    if not is_there or api.nvim_win_get_tabpage(open.win) ~= api.nvim_get_current_tabpage() then
      close()
    end
    local this = drafts[id]
    if not (this and api.nvim_buf_is_valid(this.buf)) then
      this = { session = session, here = here, buf = buffer() }
    end
    here.session = session
    this.session, this.here, this.sent = session, here, opts.sent
    this.status = this.is_sending and this.status or nil
    if open then
      window.enter(open.win)
    else
      show(this)
    end
    local text = opts.text or ''
    if here.selected and not text:find('{selection}', 1, true) then
      text = text .. (text ~= '' and '\n' or '') .. '{selection}'
    end
    if text ~= '' and not this.is_sending then
      append(this, text)
    end
    fit()
    draw()
    if not this.is_sending then
      local last = api.nvim_buf_line_count(this.buf)
      api.nvim_win_set_cursor(this.win, { last, 0 })
      vim.cmd.startinsert({ bang = true })
    end
  end)
end

return M
