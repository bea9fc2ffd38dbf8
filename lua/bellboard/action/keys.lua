-- The keys of the board.
local cells = require('bellboard.view.cells')
local host = require('bellboard.host')
local jump = require('bellboard.action.jump')
local mark = require('bellboard.action.mark')
local message = require('bellboard.message')
local popup = require('bellboard.view.popup')
local sessions = require('bellboard.state.sessions')

local M = {}

local api = vim.api

---@class bellboard.Key
---@field [1] string
---@field [2] string what it does
---@field session? fun(session: bellboard.Session) acts on the session under the cursor
---@field anywhere? fun()

---@return table
local function board()
  return require('bellboard.view.board')
end

--- Ask for a word; the default is the current one.
---@param prompt string
---@param field string
---@param act fun(session: bellboard.Session, word: string)
---@return fun(session: bellboard.Session)
local function ask(prompt, field, act)
  return function(session)
    vim.ui.input({ prompt = prompt, default = session[field] }, function(word)
      if word then
        act(session, word)
      end
    end)
  end
end

local minutes = { { '15 minutes', 15 }, { 'an hour', 60 }, { 'until tomorrow', 24 * 60 } }

---@param session bellboard.Session
local function snooze(session)
  local choices = vim.list_extend({}, minutes)
  if (session.snoozed_until or 0) > os.time() then
    table.insert(choices, 1, { 'end the snooze', 0 })
  end
  vim.ui.select(choices, {
    prompt = 'Snooze for',
    format_item = function(choice)
      return choice[1]
    end,
  }, function(choice)
    if choice then
      mark.snooze(session.session_id, choice[2])
    end
  end)
end

---@param session bellboard.Session
local function correct(session)
  local settable = vim.tbl_filter(function(status)
    return status ~= 'unknown'
  end, sessions.statuses)
  vim.ui.select(settable, { prompt = 'Actual status' }, function(status)
    if status then
      host.tell({ set = { session_id = session.session_id, status = status } })
    end
  end)
end

--- Stop the process shown here; the background process checks that it is still the same one.
---@param session bellboard.Session
local function stop(session)
  local name = session.words.project
  if not session.pid then
    return message.info(name .. ': its process is unknown')
  end
  local prompt = ('Stop process %d (%s %s)?'):format(session.pid, name, session.words.title)
  vim.ui.select({ 'Leave it', 'Stop it' }, { prompt = prompt }, function(choice)
    if choice == 'Stop it' then
      local request = { session_id = session.session_id, pid = session.pid }
      host.ask('stop', request, function(reply)
        message.info(('%s: %s'):format(name, reply.text or 'not stopped: ' .. reply.why))
      end)
    end
  end)
end

--- Choose a session that ended in this directory and resume it in a terminal.
local function resume()
  board().leave()
  require('bellboard.action.launch').resume()
end

--- Explain a session's status from the log, in a new window.
---@param session bellboard.Session
local function explain(session)
  require('bellboard.system.program').run({ 'explain', session.session_id }, function(printed, why)
    if not printed then
      return message.info('cannot explain this session: ' .. why)
    end
    vim.cmd('botright new')
    local lines = vim.split(vim.trim(printed), '\n')
    api.nvim_buf_set_lines(0, 0, -1, false, vim.tbl_map(cells.safe_line, lines))
    vim.bo.buftype, vim.bo.bufhidden, vim.bo.modifiable = 'nofile', 'wipe', false
    vim.wo.wrap = false
    vim.keymap.set('n', 'q', '<Cmd>close<CR>', { buffer = 0, desc = 'close' })
    vim.cmd.normal({ 'G', bang = true }) -- the newest is at the end
  end)
end

local function help()
  local lines = {}
  for _, key in ipairs(M.list) do
    lines[#lines + 1] = (' %-9s %s'):format(key[1], key[2])
  end
  popup.open(lines, 'board')
end

---@type bellboard.Key[]
M.list = {
  {
    '<CR>',
    'go to the session',
    session = function(session)
      board().leave()
      jump.to(session.session_id)
    end,
  },
  {
    'a',
    'answer: yes, no, or go there',
    session = function(session)
      require('bellboard.action.answer').to(session.session_id)
    end,
  },
  {
    'K',
    'preview',
    session = function(session)
      require('bellboard.view.preview').lines(session, function(lines)
        popup.open(lines, session.words.project, true)
      end)
    end,
  },
  {
    '<Tab>',
    'unfold or fold a session or repository',
    anywhere = function()
      board().fold()
    end,
  },
  {
    'zR',
    'unfold all',
    anywhere = function()
      board().fold_all(true)
    end,
  },
  {
    'zM',
    'fold all',
    anywhere = function()
      board().fold_all(false)
    end,
  },
  {
    ']]',
    'next session that needs you',
    anywhere = function()
      board().seek(1)
    end,
  },
  {
    '[[',
    'previous session that needs you',
    anywhere = function()
      board().seek(-1)
    end,
  },
  {
    'd',
    'mark as seen',
    session = function(session)
      host.tell({ ['goto'] = { session_id = session.session_id } })
    end,
  },
  {
    'p',
    'park (keep it out of the float) or unpark',
    session = function(session)
      mark.park(session.session_id)
    end,
  },
  { 's', 'snooze: no notices for a while', session = snooze },
  {
    'l',
    'label',
    session = ask('Label: ', 'label', function(session, word)
      mark.label(session.session_id, word)
    end),
  },
  {
    'r',
    'rename',
    session = ask('Name: ', 'title', function(session, word)
      host.tell({ name = { session_id = session.session_id, name = word } })
    end),
  },
  { 'c', 'correct the status', session = correct },
  { 'x', 'stop its process (asks first)', session = stop },
  { 'o', 'resume a session that ended here', anywhere = resume },
  { 'e', 'explain its status', session = explain },
  {
    'y',
    'yank the session id',
    session = function(session)
      vim.fn.setreg(vim.v.register, session.session_id)
      message.info('yanked ' .. cells.safe(session.session_id))
    end,
  },
  {
    'R',
    'refresh everything',
    anywhere = function()
      host.notify('snapshot')
    end,
  },
  {
    'q',
    'close',
    anywhere = function()
      vim.cmd.close()
    end,
  },
  { 'g?', 'this help', anywhere = help },
}

---@param key bellboard.Key
local function press(key)
  if key.anywhere then
    return key.anywhere()
  end
  local session, repository = board().under_cursor()
  if session then
    key.session(session)
  elseif repository and key[1] == '<CR>' then
    board().fold()
  end
end

--- Map the keys in a board's buffer; a double click is <CR>.
---@param buf integer
M.attach = function(buf)
  for _, key in ipairs(M.list) do
    local function act()
      press(key)
    end
    local nowait = #key[1] == 1
    vim.keymap.set('n', key[1], act, { buffer = buf, desc = key[2], nowait = nowait })
    if key[1] == '<CR>' then
      vim.keymap.set('n', '<2-LeftMouse>', act, { buffer = buf, desc = key[2] })
    end
  end
end

return M
