-- What can be done on the board: a key, what it does in a few words, and how.
local bellboard = require('bellboard')
local config = require('bellboard.config')
local host = require('bellboard.host')
local ui = require('bellboard.ui')

local M = {}

local api = vim.api

---@class bellboard.Key
---@field [1] string
---@field [2] string what it does
---@field session? fun(session: bellboard.Session) what it does to the one under the cursor
---@field anywhere? fun()

---@return table
local function panel()
  return require('bellboard.panel')
end

---@param text string
local function say(text)
  vim.notify('bellboard: ' .. text, vim.log.levels.INFO)
end

---@param what string
---@param value fun(session: bellboard.Session): table the evidence but for the session
---@return fun(session: bellboard.Session)
local function tell(what, value)
  return function(session)
    local id = { session_id = session.session_id }
    bellboard.tell({ [what] = vim.tbl_extend('error', id, value(session)) })
  end
end

--- Ask for a word and tell it as evidence.
---@param what 'label'|'name'
---@param prompt string
---@param field string of the session, that is the default
---@return fun(session: bellboard.Session)
local function ask(what, prompt, field)
  return function(session)
    vim.ui.input({ prompt = prompt, default = session[field] }, function(word)
      if word then
        bellboard.tell({ [what] = { session_id = session.session_id, [what] = word } })
      end
    end)
  end
end

local minutes = { { '15 minutes', 15 }, { 'an hour', 60 }, { 'until tomorrow', 24 * 60 } }

---@param session bellboard.Session
local function snooze(session)
  local choices = vim.list_extend({}, minutes)
  if (session.snoozed_until or 0) > os.time() then
    table.insert(choices, 1, { 'wake it up', 0 })
  end
  vim.ui.select(choices, {
    prompt = 'No notices of it for',
    format_item = function(choice)
      return choice[1]
    end,
  }, function(choice)
    if choice then
      local until_ = choice[2] > 0 and os.time() + choice[2] * 60 or 0
      bellboard.tell({ snooze = { session_id = session.session_id, ['until'] = until_ } })
    end
  end)
end

---@param session bellboard.Session
local function correct(session)
  local settable = vim.tbl_filter(function(status)
    return status ~= 'unknown'
  end, bellboard.statuses)
  vim.ui.select(settable, { prompt = 'It really is' }, function(status)
    if status then
      bellboard.tell({ set = { session_id = session.session_id, status = status } })
    end
  end)
end

--- End the process that was shown: the host looks whether it still is the same one.
---@param session bellboard.Session
local function stop(session)
  local name = ui.project(session)
  if not session.pid then
    return say(name .. ': its process is not known')
  end
  local prompt = ('Stop process %d (%s %s)?'):format(session.pid, name, ui.title(session))
  vim.ui.select({ 'Leave it', 'Stop it' }, { prompt = prompt }, function(choice)
    if choice == 'Stop it' then
      local told = { session_id = session.session_id, pid = session.pid }
      host.ask('stop', told, function(reply)
        say(('%s: %s'):format(name, reply.text or 'not stopped: ' .. reply.why))
      end)
    end
  end)
end

--- Go on with a session that has ended, in a terminal in its folder.
---@param session { session_id: string, cwd: string }
local function again(session)
  panel().leave()
  vim.cmd('botright new')
  local command = { 'claude', '--resume', session.session_id }
  local opts = { cwd = session.cwd }
  local ok, problem = pcall(function()
    if vim.fn.has('nvim-0.11') == 1 then
      opts.term = true
      return vim.fn.jobstart(command, opts)
    end
    return vim.fn.termopen(command, opts)
  end)
  if not ok then
    vim.cmd.close()
    return say('cannot be opened: ' .. tostring(problem))
  end
  vim.cmd.startinsert()
end

--- Choose one of those that have ended, and go on with it in a terminal.
local function resume()
  host.ask('ended', {}, function(reply)
    local sessions = reply.sessions or {}
    if #sessions == 0 then
      return say(reply.why or 'no session has ended')
    end
    vim.ui.select(sessions, {
      prompt = 'Resume',
      kind = 'bellboard-ended',
      format_item = function(session)
        local name, title = ui.safe(session.project), ui.safe(session.title)
        return ('%s  %s  %s'):format(ui.fit(name, 16), ui.fit(title, 40), ui.age(session.ended))
      end,
    }, function(session)
      if session then
        again(session)
      end
    end)
  end)
end

--- What the log says of a session, in a buffer of its own.
---@param session bellboard.Session
local function explain(session)
  local command = vim.list_extend({}, config.interpreter().command)
  local entry = config.root() .. '/rplugin/python3/bellboard/__main__.py'
  vim.list_extend(command, { entry, 'explain', session.session_id })
  local env = { NO_COLOR = '1', COLUMNS = tostring(vim.o.columns) }
  vim.system(command, { text = true, env = env, cwd = '/' }, function(done)
    vim.schedule(function()
      if done.code ~= 0 then
        return say('cannot be explained: ' .. vim.trim(done.stderr or ''))
      end
      vim.cmd('botright new')
      local lines = vim.split(vim.trim(done.stdout or ''), '\n')
      api.nvim_buf_set_lines(0, 0, -1, false, vim.tbl_map(ui.safe_line, lines))
      vim.bo.buftype, vim.bo.bufhidden, vim.bo.modifiable = 'nofile', 'wipe', false
      vim.wo.wrap = false
      vim.keymap.set('n', 'q', '<Cmd>close<CR>', { buffer = 0, desc = 'close' })
      vim.cmd.normal({ 'G', bang = true }) -- the newest is at the end
    end)
  end)
end

local function help()
  local lines = {}
  for _, key in ipairs(M.list) do
    lines[#lines + 1] = (' %-9s %s'):format(key[1], key[2])
  end
  panel().popup(lines, 'board')
end

---@type bellboard.Key[]
M.list = {
  {
    '<CR>',
    'go to the session',
    session = function(session)
      panel().leave()
      bellboard.jump(session.session_id)
    end,
  },
  {
    'a',
    'answer: yes, no, or go there',
    session = function(session)
      bellboard.answer(session.session_id)
    end,
  },
  {
    'K',
    'preview',
    session = function(session)
      local lines = require('bellboard.pick').preview(session)
      panel().popup(vim.tbl_map(ui.safe_line, lines), ui.project(session), true)
    end,
  },
  {
    '<Tab>',
    'unfold or fold a session, or a repository',
    anywhere = function()
      panel().fold()
    end,
  },
  {
    'zR',
    'unfold all',
    anywhere = function()
      panel().fold_all(true)
    end,
  },
  {
    'zM',
    'fold all',
    anywhere = function()
      panel().fold_all(false)
    end,
  },
  {
    ']]',
    'next that needs you',
    anywhere = function()
      panel().seek(1)
    end,
  },
  {
    '[[',
    'previous that needs you',
    anywhere = function()
      panel().seek(-1)
    end,
  },
  {
    'd',
    'seen: it needs you no more',
    session = tell('goto', function()
      return {}
    end),
  },
  {
    'p',
    'park: keep it out of the float, or bring it back',
    session = tell('park', function(session)
      return { parked = not ui.marked(session, 'parked') }
    end),
  },
  { 's', 'snooze: no notices of it for a while', session = snooze },
  { 'l', 'label', session = ask('label', 'Label: ', 'label') },
  { 'r', 'rename', session = ask('name', 'Name: ', 'title') },
  { 'c', 'correct the status', session = correct },
  { 'x', 'stop its process, after asking', session = stop },
  { 'o', 'open one that has ended again', anywhere = resume },
  { 'e', 'explain: what the log says', session = explain },
  {
    'y',
    'yank the session id',
    session = function(session)
      vim.fn.setreg(vim.v.register, session.session_id)
      say('yanked ' .. ui.safe(session.session_id))
    end,
  },
  {
    'R',
    'ask the host for everything anew',
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
  local session, repository = panel().under_cursor()
  if session then
    key.session(session)
  elseif repository and key[1] == '<CR>' then
    panel().fold()
  end
end

--- Give a board its keys; a double click is <CR>, and so is `<Tab>` on what unfolds.
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
