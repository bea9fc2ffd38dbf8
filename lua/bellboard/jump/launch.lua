-- Start or resume a session in a terminal buffer.
local age = require('bellboard.age')
local config = require('bellboard.config')
local dialog = require('bellboard.dialog')
local message = require('bellboard.message')
local moment = require('bellboard.moment')
local popup = require('bellboard.popup')
local program = require('bellboard.process.program')
local window = require('bellboard.jump.show')
local windows = require('bellboard.window')

local M = {}

local api = vim.api

--- Show a buffer in a split, or a new tab page if there is no room: a float would cover others.
---@param buf integer
---@param layout vim.api.keyset.win_config
local function split(buf, layout)
  local win = windows.open(buf, true, layout)
  if not windows.is_normal(win) then
    windows.close(win) -- else "useopen" in 'switchbuf' would enter it
    windows.tab(buf)
  end
end

--- Show a buffer where the options put a terminal.
---@param buf integer
---@param layout? string default: as the options say
---@return bellboard.Place|nil before what the current window showed, if it shows the buffer now
local function put(buf, layout)
  local options = config.get().launch
  layout = layout or options.layout
  local function size(whole)
    return math.max(1, math.floor(options.size <= 1 and whole * options.size or options.size))
  end
  if layout == 'tab' then
    windows.tab(buf)
  elseif layout == 'vsplit' then
    split(buf, { split = 'right', win = -1, width = size(vim.o.columns) })
  elseif layout == 'split' then
    split(buf, { split = 'below', win = -1, height = size(vim.o.lines) })
  else
    return window.put(buf)
  end
end

---@param command string[]
---@param env? table<string, string>
---@param layout? string
---@param directory? string default: of the current window
---@return integer buf
---@return bellboard.Place|nil before
local function open(command, env, layout, directory)
  local opts = { env = env or vim.empty_dict(), cwd = directory }
  local buf = api.nvim_create_buf(true, false)
  local ok, before = pcall(put, buf, layout)
  if not ok then
    api.nvim_buf_delete(buf, { force = true })
    error(before, 0)
  end
  if vim.fn.has('nvim-0.11') == 1 then
    opts.term = true
    vim.fn.jobstart(command, opts)
  else
    vim.fn.termopen(command, opts)
  end
  if config.get().jump.insert then
    vim.cmd.startinsert()
  end
  return buf, before
end

--- Run a command in a terminal buffer, where the options put one, once no command line is open.
---@param command string[]
---@param env? table<string, string>
---@param opened? fun(buf: integer, before: bellboard.Place|nil)
---@param layout? 'split'|'vsplit'|'tab'|'current' default: as the options say
---@param directory? string
M.terminal = function(command, env, opened, layout, directory)
  moment.when('open', function()
    local buf, before = open(command, env, layout, directory)
    if opened then
      opened(buf, before)
    end
  end)
end

--- Run a command in a terminal buffer, if its program exists.
---@param command string[]
---@param layout? 'split'|'vsplit'|'tab'|'current'
M.start = function(command, layout)
  if vim.fn.executable(command[1]) == 0 then
    return message.error(('"%s" is not on PATH'):format(command[1]))
  end
  M.terminal(command, nil, nil, layout)
end

--- Start a session in a terminal buffer. The program finds its command, and makes its worktree.
---@param words? string[] as of `bellboard new`
M.new = function(words)
  local usual = config.claude()
  if vim.fn.executable(usual[1]) == 0 and not vim.list_contains(words or {}, '--agent') then
    return message.error(('"%s" is not on PATH. See :help g:bellboard.claude'):format(usual[1]))
  end
  local given = { 'new', '--print', '--json', '--default', vim.json.encode(usual) }
  program.decoded(vim.list_extend(given, words or {}), function(found, why)
    if not found then
      return popup.refuse(why, 'new')
    end
    for _, note in ipairs(found.notes) do
      message.warn(note)
    end
    M.terminal(found.command, nil, nil, nil, found.directory)
  end)
end

---@class bellboard.Ended a session that has ended
---@field session_id string
---@field ended number
---@field agent string
---@field words { title: string, branch: string, agent: string }
---@field resume string[] the command that resumes it

---@param session bellboard.Ended
---@param mixed boolean whether sessions of several agents are listed
---@return string
local function worded(session, mixed)
  local words = session.words
  local when = ('%4s'):format(age.of(session.ended))
  local parts = { when, mixed and words.agent or '', words.branch, words.title }
  return table.concat(
    vim.tbl_filter(function(part)
      return part ~= ''
    end, parts),
    '  '
  )
end

--- Choose a session that ended in this directory and resume it.
---@param args? string[] passed to the CLI
---@param on_choice? fun() run once one is chosen
M.resume = function(args, on_choice)
  local words = { 'list', '--ended', '--json', '--dir', vim.fn.getcwd() }
  program.decoded(words, function(decoded, why)
    if not decoded then
      return popup.refuse(why .. '. See :checkhealth bellboard', 'resume')
    end
    local sessions = vim.tbl_filter(function(session)
      return #session.resume > 0
    end, decoded.ended)
    if #sessions == 0 then
      return message.info('no session to resume in this directory')
    end
    local mixed = vim.iter(sessions):any(function(session)
      return session.agent ~= sessions[1].agent
    end)
    local function format(session)
      return worded(session, mixed)
    end
    local opts = { prompt = 'Resume', kind = 'bellboard', format_item = format }
    dialog.select(sessions, opts, function(session)
      if session and on_choice then
        on_choice()
      end
      if session and session.agent == 'claude' then
        M.new(vim.list_extend({ '--resume', session.session_id }, args or {}))
      elseif session then
        M.start(vim.list_extend(session.resume, args or {}))
      end
    end)
  end)
end

return M
