-- What the keys of the board do.
local board = require('bellboard.board')
local beside = require('bellboard.board.preview')
local config = require('bellboard.config')
local host = require('bellboard.process.talk')
local jump = require('bellboard.jump')
local mark = require('bellboard.session_edit')
local message = require('bellboard.message')
local moment = require('bellboard.moment')
local page = require('bellboard.board.page')
local popup = require('bellboard.popup')
local several = require('bellboard.board.selection')
local sgr = require('bellboard.sgr')

local M = {}

local api = vim.api

---@class bellboard.Action what a key does
---@field [1] string its name in |g:bellboard.board.keys|
---@field [2] string what it does
---@field one? fun(session: bellboard.Session) acts on the session under the cursor
---@field each? fun(session: bellboard.Session) acts on each of the marked sessions
---@field all? fun(list: bellboard.Session[]) acts on the marked sessions together
---@field anywhere? fun()

--- Explain a session's status from the log, in a window.
---@param session bellboard.Session
local function explain(session)
  popup.command({ 'explain', session.session_id })
end

---@param session bellboard.Session
local function preview(session)
  require('bellboard.preview').lines(session, function(lines, colours)
    moment.when('open', function()
      if api.nvim_get_current_buf() == page.buffer() then -- the user may have gone on
        sgr.paint(popup.open(lines, session.words.project, true), colours)
      end
    end)
  end)
end

--- Choose a session that ended in this directory and resume it in a terminal.
local function resume()
  require('bellboard.jump.launch').resume({}, function()
    if api.nvim_get_current_buf() == page.buffer() then
      board.leave()
    end
  end)
end

--- Filter while the user types; <Esc> restores the previous filter.
local function filter()
  local before = page.choice().filter
  local group = api.nvim_create_augroup('bellboard.filter', {})
  local function show(text)
    page.choose({ filter = text })
    vim.cmd.redraw()
  end
  api.nvim_create_autocmd('CmdlineChanged', {
    group = group,
    pattern = '@',
    callback = function()
      show(vim.fn.getcmdline())
    end,
  })
  local opts = { prompt = 'Filter: ', default = before, cancelreturn = vim.NIL }
  local ok, text = pcall(vim.fn.input, opts) -- <C-c> is an error
  api.nvim_del_augroup_by_id(group)
  api.nvim_echo({ { '' } }, false, {}) -- the prompt would stay there
  show(ok and text ~= vim.NIL and vim.trim(text) or before)
  page.first()
end

---@param open boolean
local function fold_all(open)
  return function()
    page.fold_all(open)
  end
end

---@param direction integer
local function seek(direction)
  return function()
    if not page.seek(direction) then
      message.info('no session needs you')
    end
  end
end

--- The value after the current one, or the first one after the last.
---@param field 'group'|'sort'
local function turn(field)
  local among = config.values('board.' .. field)
  return function()
    local at = 0
    for nth, each in ipairs(among) do
      at = each == page.choice()[field] and nth or at
    end
    page.choose({ [field] = among[at % #among + 1] })
  end
end

---@type bellboard.Action[]
M.list = {
  {
    'go',
    'go to the session; fold a heading',
    one = function(session)
      board.leave()
      jump.to(session.session_id)
    end,
  },
  { 'answer', 'show what it asks, to answer it', all = several.answer },
  { 'preview', 'preview', one = preview },
  { 'preview_window', 'preview beside the board', anywhere = beside.toggle },
  {
    'fold',
    'unfold or fold a session or section',
    anywhere = function()
      if not page.fold() then
        message.info('nothing to fold on this line')
      end
    end,
  },
  { 'unfold_all', 'unfold all', anywhere = fold_all(true) },
  { 'fold_all', 'fold all', anywhere = fold_all(false) },
  { 'next', 'next session that needs you', anywhere = seek(1) },
  { 'prev', 'previous session that needs you', anywhere = seek(-1) },
  { 'filter', 'filter as you type', anywhere = filter },
  {
    'unfilter',
    'show all sessions again',
    anywhere = function()
      page.choose({ filter = '', here = vim.NIL })
    end,
  },
  {
    'here',
    'only this project, or all',
    anywhere = function()
      local root = vim.fs.root(vim.fn.getcwd(), '.git') or vim.fn.getcwd()
      page.choose({ here = not page.choice().here and root or vim.NIL })
    end,
  },
  { 'group', 'group by urgency or repository, or not', anywhere = turn('group') },
  { 'sort', 'sort by urgency, time or name', anywhere = turn('sort') },
  { 'mark', 'mark for the next key, or unmark', all = page.mark },
  {
    'unmark_all',
    'unmark all',
    anywhere = function()
      page.choose({ marked = {} })
    end,
  },
  {
    'seen',
    'mark as seen',
    each = function(session)
      host.tell({ ['goto'] = { session_id = session.session_id } })
    end,
  },
  { 'park', 'park (keep it out of the float) or unpark', all = several.park },
  { 'snooze', 'snooze: mute it for a while', all = several.snooze },
  {
    'label',
    'label',
    all = several.ask('Label', function(session)
      return session.label
    end, function(session, word)
      mark.label(session.session_id, word)
    end),
  },
  {
    'rename',
    'rename',
    one = function(session)
      several.ask('Name', function()
        return session.name or session.title
      end, function(_, word)
        host.tell({ name = { session_id = session.session_id, name = word } })
      end)({ session })
    end,
  },
  { 'correct', 'correct the status', all = several.correct },
  { 'stop', 'stop its process (asks first)', all = several.stop },
  { 'resume', 'resume a session that ended here', anywhere = resume },
  { 'explain', 'explain its status', one = explain },
  { 'yank', 'yank the session id', all = several.yank },
  {
    'refresh',
    'refresh everything',
    anywhere = function()
      host.notify('snapshot')
    end,
  },
  { 'close', 'close', anywhere = board.close },
}

--- Run an action on sessions: on one, on each, or on all together.
---@param action bellboard.Action
---@param list bellboard.Session[]
M.run = function(action, list)
  if action.all then
    return action.all(list)
  end
  for _, session in ipairs(list) do
    (action.each or action.one)(session)
  end
end

return M
