-- The keys of the board.
local cells = require('bellboard.view.cells')
local config = require('bellboard.config')
local host = require('bellboard.host')
local jump = require('bellboard.action.jump')
local mark = require('bellboard.action.mark')
local message = require('bellboard.message')
local popup = require('bellboard.view.popup')
local sessions = require('bellboard.state.sessions')

local M = {}

local api = vim.api

---@class bellboard.Deed what a key does
---@field [1] string its name in |g:bellboard.board.keys|
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

--- The keys as configured, each with what it does.
---@return table<string, bellboard.Deed>
local function mapped()
  local deeds, keys = {}, {}
  for _, deed in ipairs(M.list) do
    deeds[deed[1]] = deed
  end
  for lhs, choice in pairs(config.get().board.keys) do
    local own = type(choice) == 'function' and { lhs, 'your function', session = choice }
    keys[lhs] = own or deeds[choice]
  end
  return keys
end

--- The keys of each deed in the order of the list, then those with a function of the user.
local function help()
  local lines, keys = {}, mapped()
  local order = vim.list_extend({}, M.list)
  for lhs, deed in vim.spairs(keys) do
    if deed[1] == lhs then
      order[#order + 1] = deed
    end
  end
  for _, deed in ipairs(order) do
    local of_it = vim.tbl_filter(function(lhs)
      return keys[lhs] == deed
    end, vim.tbl_keys(keys))
    table.sort(of_it)
    if #of_it > 0 then
      lines[#lines + 1] = (' %-9s %s'):format(table.concat(of_it, ' '), deed[2])
    end
  end
  popup.open(lines, 'board')
end

---@type bellboard.Deed[]
M.list = {
  {
    'go',
    'go to the session',
    session = function(session)
      board().leave()
      jump.to(session.session_id)
    end,
  },
  {
    'answer',
    'answer: yes, no, or go there',
    session = function(session)
      require('bellboard.action.answer').to(session.session_id)
    end,
  },
  {
    'preview',
    'preview',
    session = function(session)
      require('bellboard.view.preview').lines(session, function(lines)
        popup.open(lines, session.words.project, true)
      end)
    end,
  },
  {
    'fold',
    'unfold or fold a session or repository',
    anywhere = function()
      board().fold()
    end,
  },
  {
    'unfold_all',
    'unfold all',
    anywhere = function()
      board().fold_all(true)
    end,
  },
  {
    'fold_all',
    'fold all',
    anywhere = function()
      board().fold_all(false)
    end,
  },
  {
    'next',
    'next session that needs you',
    anywhere = function()
      board().seek(1)
    end,
  },
  {
    'prev',
    'previous session that needs you',
    anywhere = function()
      board().seek(-1)
    end,
  },
  {
    'seen',
    'mark as seen',
    session = function(session)
      host.tell({ ['goto'] = { session_id = session.session_id } })
    end,
  },
  {
    'park',
    'park (keep it out of the float) or unpark',
    session = function(session)
      mark.park(session.session_id)
    end,
  },
  { 'snooze', 'snooze: no notices for a while', session = snooze },
  {
    'label',
    'label',
    session = ask('Label: ', 'label', function(session, word)
      mark.label(session.session_id, word)
    end),
  },
  {
    'rename',
    'rename',
    session = ask('Name: ', 'title', function(session, word)
      host.tell({ name = { session_id = session.session_id, name = word } })
    end),
  },
  { 'correct', 'correct the status', session = correct },
  { 'stop', 'stop its process (asks first)', session = stop },
  { 'resume', 'resume a session that ended here', anywhere = resume },
  { 'explain', 'explain its status', session = explain },
  {
    'yank',
    'yank the session id',
    session = function(session)
      vim.fn.setreg(vim.v.register, session.session_id)
      message.info('yanked ' .. cells.safe(session.session_id))
    end,
  },
  {
    'refresh',
    'refresh everything',
    anywhere = function()
      host.notify('snapshot')
    end,
  },
  {
    'close',
    'close',
    anywhere = function()
      board().close()
    end,
  },
  { 'help', 'this help', anywhere = help },
}

---@param deed bellboard.Deed
local function run(deed)
  if deed.anywhere then
    return deed.anywhere()
  end
  local session, repository = board().under_cursor()
  if session then
    deed.session(session)
  elseif repository and deed[1] == 'go' then
    board().fold()
  end
end

--- Map the keys in a board's buffer; a double click goes to the session.
---@param buf integer
M.attach = function(buf)
  for lhs, deed in pairs(mapped()) do
    local function act()
      run(deed)
    end
    local nowait = #lhs == 1
    vim.keymap.set('n', lhs, act, { buffer = buf, desc = deed[2], nowait = nowait })
    if deed[1] == 'go' then
      vim.keymap.set('n', '<2-LeftMouse>', act, { buffer = buf, desc = deed[2] })
    end
  end
end

return M
