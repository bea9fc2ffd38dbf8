-- Jumps: to a session, on to the next that needs you, and back to where the first jump started.
-- The background process shows sessions outside this Neovim.
local dialog = require('bellboard.dialog')
local filter = require('bellboard.filter')
local host = require('bellboard.process.talk')
local message = require('bellboard.message')
local sessions = require('bellboard.sessions')
local terminals = require('bellboard.terminals')
local window = require('bellboard.jump.show')

local M = {}

local api = vim.api

---@class bellboard.From the tmux pane that a jump started in
---@field tmux? string socket
---@field pane? string

---@class bellboard.Origin: bellboard.Place
---@field mode string
---@field from? bellboard.From if it started in another Neovim
---@field continues boolean it continues the jump that ended here

---@type bellboard.Origin|nil where the first of several jumps started
local origin
---@type integer|nil the terminal that the last jump showed here
local landing
---@type string|nil the session of the last jump
local last
---@type table<string, number> session → since when it needed you as a jump led there
local visited = {}
---@type table<string, integer> session → the terminal that was opened here to show it
local openings = {}

--- The pane that this Neovim is in. Of `socket,pid,session`, only the socket may have a comma.
---@return bellboard.From
local function here()
  return { tmux = (vim.env.TMUX or ''):match('^(.+),[^,]*,[^,]*$'), pane = vim.env.TMUX_PANE }
end

--- The asker of a jump, for the background process.
---@return table
local function asker()
  return vim.tbl_extend('error', here(), { nvim = vim.v.servername })
end

--- The start of a jump.
---@param from? bellboard.From
---@return bellboard.Origin
local function start(from)
  local continues = not from and origin ~= nil and api.nvim_get_current_buf() == landing
  local how = { mode = api.nvim_get_mode().mode, from = from, continues = continues }
  return vim.tbl_extend('error', window.here(), how)
end

--- A jump has led to a place in this Neovim.
---@param began bellboard.Origin
local function remember(began)
  if not (began.continues and origin) then
    origin = began
    window.start()
  end
end

---@param buf integer
---@param began bellboard.Origin
local function show(buf, began)
  remember(began)
  landing = buf
  window.show(buf)
end

--- Mark a session as seen.
---@param session bellboard.Session
local function landed(session)
  host.tell({ ['goto'] = { session_id = session.session_id } })
end

--- Show the terminal that was opened for a session, while its program runs, else open one.
---@param session bellboard.Session
---@param command string[]
---@param began bellboard.Origin
local function open(session, command, began)
  local opened = openings[session.session_id]
  if opened and terminals.is_running(opened) then
    return show(opened, began)
  end
  remember(began)
  local env = { TMUX = '' } -- tmux may be nested
  require('bellboard.jump.launch').terminal(command, env, function(buf, before)
    openings[session.session_id], landing = buf, buf
    if before then
      window.replace(before, buf)
    end
  end)
end

--- No terminal shows the tmux session of a session: offer to attach to it here.
---@param session bellboard.Session
---@param reply bellboard.Reply
---@param began bellboard.Origin
local function attach(session, reply, began)
  local opts = { prompt = ('No terminal shows the tmux session %s'):format(reply.attach) }
  dialog.select({ 'Attach in a terminal here', 'Cancel' }, opts, function(_, choice)
    if choice == 1 then
      open(session, reply.command, began)
      landed(session)
    end
  end)
end

--- The background process has shown a session, or says how to.
---@param session bellboard.Session
---@param reply bellboard.Reply
---@param began bellboard.Origin
local function arrived(session, reply, began)
  local buf = terminals.buffer(reply.tty)
  if not reply.ok then
    message.info(('%s: %s'):format(sessions.name(session), reply.why))
  elseif reply.attach then
    attach(session, reply, began)
  elseif reply.command then
    open(session, reply.command, began)
  else
    if buf then
      show(buf, began)
    elseif reply.where then
      message.info(reply.where)
    end
    landed(session)
  end
end

--- Show a terminal or chat of this Neovim for a jump from elsewhere.
---@param tty string
---@param from bellboard.From
---@param id? string the session
---@return { shown: boolean, tmux?: string, pane?: string } where this Neovim is
M.arrive = function(tty, from, id)
  local buf = terminals.of(tty, id)
  if not buf then
    return { shown = false }
  end
  show(buf, start(from))
  return vim.tbl_extend('error', { shown = true }, here())
end

--- Go to a session: to its terminal buffer here, its tmux pane, its Neovim, or its machine.
---@param id string
M.to = function(id)
  local session = sessions.get(id)
  if not session then
    message.info(('no session "%s"'):format(id))
    return
  end
  local current = terminals.current()
  if current then
    visited[current.session_id] = current.since
  end
  last, visited[id] = id, session.since
  local buf, began = terminals.of(session.tty, id), start()
  if buf then
    show(buf, began)
    landed(session)
    return
  end
  host.ask('goto', { session_id = id, from = asker() }, function(reply)
    arrived(session, reply, began)
  end)
end

--- The sessions to go on to, in this order: those not visited since they began to need you, most
--- urgent first, then longest waiting first; then the others, around from the current one, which is
--- the last. `cli/goto.py` does the same.
---@param needing bellboard.Session[]
---@return bellboard.Session[] ring
---@return boolean has_current
local function ring_of(needing)
  local current = terminals.current()
  local id = current and current.session_id or last
  local new, before, after, at = {}, {}, {}, nil
  for _, session in ipairs(needing) do
    if session.session_id == id then
      at = session
    elseif visited[session.session_id] ~= session.since then
      new[#new + 1] = session
    else
      table.insert(at and after or before, session)
    end
  end
  local ring = vim.list_extend(vim.list_extend(new, after), before)
  ring[#ring + 1] = at
  return ring, at ~= nil
end

--- Go on to another session that needs you, or that has a status; back if `count` is negative.
---@param count integer
---@param status? bellboard.Status
---@param wanted? string as on the board, such as `agent:codex`
M.step = function(count, status, wanted)
  local terms = filter.parse(wanted or '')
  local needing = vim.tbl_filter(function(session)
    local is_meant = status == session.status or (not status and session.needs_you)
    return is_meant and filter.matches(session, terms)
  end, sessions.list())
  if #needing == 0 then
    local what = status and ('no %s sessions left'):format(status)
      or #terms > 0 and ('no session that matches %s needs you'):format(wanted)
      or 'no session needs you'
    message.info(host.instead(what))
    return
  end
  local ring, has_current = ring_of(needing)
  local at = count < 0 and not has_current and count or count - 1
  M.to(ring[at % #ring + 1].session_id)
end

--- Go back to where the first of the last jumps started, even in another Neovim.
M.back = function()
  local to = origin
  origin, last, visited = nil, nil, {}
  local reopen = to and window.reopens[to.filetype]
  if not (to and (api.nvim_buf_is_valid(to.buf) or to.from or reopen)) then
    message.info(to and 'the buffer you jumped from is gone' or 'nowhere to go back to')
    return
  end
  vim.cmd.stopinsert()
  window.bring_back()
  if api.nvim_win_is_valid(to.win) then
    api.nvim_set_current_win(to.win)
  end
  if reopen then
    reopen()
    vim.fn.winrestview(to.view)
  elseif api.nvim_buf_is_valid(to.buf) then
    local before = window.put(to.buf)
    if before and before.win == to.win then -- the window shows another buffer by now
      window.restore(to)
    end
    if to.mode == 't' then
      vim.cmd.startinsert()
    end
  end
  if to.from and to.from.tmux and to.from.pane then
    local place = { tmux = to.from.tmux, pane = to.from.pane, from = asker() }
    host.ask('pane', place, function(reply)
      local buf = terminals.buffer(reply.tty)
      if buf then
        landing = buf
        window.show(buf)
      elseif not reply.ok then
        message.info(reply.why)
      end
    end)
  end
end

return M
