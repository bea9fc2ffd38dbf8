local cells = require('bellboard.view.cells')
local finder = require('bellboard.view.filter')
local gate = require('bellboard.system.gate')
local host = require('bellboard.host')
local machine = require('bellboard.action.machine')
local message = require('bellboard.message')
local neighbour = require('bellboard.system.neighbour')
local sessions = require('bellboard.state.sessions')
local terminals = require('bellboard.state.terminals')
local tmux = require('bellboard.system.tmux')
local window = require('bellboard.action.window')

local M = {}

local api = vim.api

---@class bellboard.From where a jump into another Neovim came from
---@field tmux? string socket
---@field pane? string

---@class bellboard.Origin
---@field win integer
---@field buf integer
---@field mode string
---@field from? bellboard.From if it started in another Neovim

---@type bellboard.Origin|nil where the first of several jumps started
local origin
---@type integer|nil the terminal that the last jump showed here
local landing
---@type string|nil the session of the last jump
local last

---@param buf integer
local function show(buf)
  landing = buf
  window.show(buf)
end

--- Remember where a jump starts, unless it continues the one that ended here.
---@param from? bellboard.From
local function remember(from)
  if from or not origin or api.nvim_get_current_buf() ~= landing then
    local win, buf = api.nvim_get_current_win(), api.nvim_get_current_buf()
    origin = { win = win, buf = buf, mode = api.nvim_get_mode().mode, from = from }
  end
end

--- Everything known about where a session runs.
---@param session bellboard.Session
---@return string
local function whereabouts(session)
  local known = {}
  for _, key in ipairs({ 'pid', 'tty', 'cwd', 'nvim', 'terminal_program', 'ssh' }) do
    if session[key] then
      known[#known + 1] = ('%s %s'):format(key:gsub('_', ' '), session[key])
    end
  end
  return #known > 0 and table.concat(known, ', ') or session.session_id
end

--- Mark it as seen.
---@param session bellboard.Session
local function landed(session)
  host.tell({ ['goto'] = { session_id = session.session_id } })
end

---@param session bellboard.Session
---@param why string
local function lost(session, why)
  message.info(('%s: %s'):format(why, whereabouts(session)))
end

--- No terminal shows that tmux session: offer to attach to it here.
---@param socket string
---@param pane bellboard.Pane
---@param done fun(why: string|nil)
local function attach(socket, pane, done)
  local name = cells.safe(pane.target:match('^(.*):') or pane.target)
  local opts = { prompt = ('No terminal shows the tmux session %s'):format(name) }
  vim.ui.select({ 'Attach in a terminal here', 'Cancel' }, opts, function(_, choice)
    if choice ~= 1 then
      return
    end
    gate.tmux(socket, { 'attach-session', '-t', pane.session }, function(argv, why)
      vim.schedule(function()
        if argv then
          require('bellboard.action.launch').terminal(argv, { TMUX = '' }) -- it may be nested
        end
        done(not argv and why or nil)
      end)
    end)
  end)
end

--- Make tmux show a pane. If the client runs in a terminal of this Neovim, show that as well.
---@param socket string
---@param pane bellboard.Pane
---@param panes bellboard.Pane[]
---@param clients bellboard.Client[]
---@param done fun(why: string|nil)
local function to_pane(socket, pane, panes, clients, done)
  tmux.show(socket, pane, panes, clients, function(client, why, detached)
    if detached then
      return attach(socket, pane, done)
    end
    local outer = client and terminals.buffer(client.tty)
    if outer then
      show(outer)
    end
    done(not client and why or nil)
  end)
end

--- The pane that this Neovim is in, to come back to.
---@return bellboard.From
local function here()
  return { tmux = vim.split(vim.env.TMUX or '', ',')[1], pane = vim.env.TMUX_PANE }
end

---@param place bellboard.From
---@param done fun(why: string|nil)
local function to_place(place, done)
  tmux.look(place.tmux, function(panes, clients, why)
    for _, pane in ipairs(panes or {}) do
      if pane.id == place.pane then
        to_pane(place.tmux, pane, panes, clients, done)
        return
      end
    end
    done(panes and ('pane %s is gone'):format(place.pane) or why)
  end)
end

--- Show a terminal or chat of this Neovim for a jump from another one.
---@param tty string
---@param from bellboard.From
---@param id? string the session
---@return { shown: boolean, tmux?: string, pane?: string } where this Neovim is
M.arrive = function(tty, from, id)
  local buf = terminals.of(tty, id)
  if not buf then
    return { shown = false }
  end
  remember(from)
  show(buf)
  return vim.tbl_extend('error', { shown = true }, here())
end

--- Run in another Neovim, which may have another version of this plugin.
local ARRIVE = "return require('bellboard')._arrive(...)"

---@param session bellboard.Session
local function to_neighbour(session)
  local about = { session.tty or '', here(), session.session_id }
  neighbour.ask(session.nvim, ARRIVE, about, function(answer, why)
    if answer and not answer.shown then
      lost(session, 'its terminal in the other Neovim is gone')
      return
    end
    local problem = not answer and ('its Neovim did not show it: %s'):format(why) or nil
    local place = answer or tmux.has_pane(session) and session or {} -- that Neovim's own pane
    local function over(missed)
      if problem or missed then
        lost(session, problem or missed)
      else
        landed(session)
      end
    end
    if place.tmux and place.pane then
      to_place({ tmux = place.tmux, pane = place.pane }, over)
    else
      over()
      if answer then
        message.info('shown in the Neovim at ' .. session.nvim)
      end
    end
  end)
end

--- Show the window of the terminal program that a session runs in.
---@param session bellboard.Session
local function to_window(session)
  host.ask('show', { session_id = session.session_id }, function(reply)
    if reply.ok then
      landed(session)
    else
      lost(session, reply.why)
    end
  end)
end

--- Go to a session outside this Neovim: to its own tmux pane, else to its Neovim or its window.
---@param session bellboard.Session
local function to_elsewhere(session)
  local elsewhere = session.nvim and session.nvim ~= vim.v.servername
  if not tmux.has_pane(session) then
    if elsewhere then
      to_neighbour(session)
    elseif session.kitty then
      to_window(session)
    else
      lost(session, 'no known way to get there')
    end
    return
  end
  tmux.look(session.tmux, function(panes, clients, why)
    local pane = panes and tmux.own(panes, session)
    if pane then
      to_pane(session.tmux, pane, panes, clients, function(missed)
        if missed then
          lost(session, missed)
        else
          landed(session)
        end
      end)
    elseif elsewhere then
      to_neighbour(session)
    else
      lost(session, panes and ('its tmux pane %s is gone'):format(session.pane) or why)
    end
  end)
end

--- Go to a session: to its terminal buffer here, its tmux pane, its Neovim, or its machine.
---@param id string
M.to = function(id)
  local session = sessions.get(id)
  if not session then
    message.info(('no session "%s"'):format(id))
    return
  end
  last = id
  local buf = terminals.of(session.tty, id)
  if session.machine then
    machine.to(session, {
      show = function(known)
        remember()
        show(known)
      end,
      open = function(command)
        remember()
        require('bellboard.action.launch').terminal(command)
        landing = api.nvim_get_current_buf()
        return landing
      end,
      elsewhere = to_elsewhere,
      landed = landed,
    })
  elseif buf then
    remember()
    show(buf)
    landed(session)
  else
    to_elsewhere(session)
  end
end

--- Go `count` sessions forward among those that need you, or those with a status, most urgent
--- first. Wraps around.
---@param count integer
---@param status? bellboard.Status
---@param filter? string as on the board
M.step = function(count, status, filter)
  local terms = finder.parse(filter or '')
  local needing = vim.tbl_filter(function(session)
    local is_meant = status == session.status or (not status and session.needs_you)
    return is_meant and finder.matches(session, terms)
  end, sessions.list())
  if #needing == 0 then
    local what = status and ('no %s sessions left'):format(status) or 'no session needs you'
    message.info(#terms > 0 and ('%s that matches %s'):format(what, filter) or what)
    return
  end
  local current = terminals.current()
  local id = current and current.session_id or last
  local at = 0
  for place, session in ipairs(needing) do
    if session.session_id == id then
      at = place
    end
  end
  if at == 0 and count < 0 then
    at = 1
  end
  M.to(needing[(at + count - 1) % #needing + 1].session_id)
end

--- Go back to where the first of the last jumps started, even in another Neovim.
M.back = function()
  local to = origin
  origin, last = nil, nil
  if not (to and (api.nvim_buf_is_valid(to.buf) or to.from)) then
    message.info(to and 'the buffer to go back to is gone' or 'no jump to go back from')
    return
  end
  vim.cmd.stopinsert()
  if api.nvim_win_is_valid(to.win) then
    api.nvim_set_current_win(to.win)
  end
  if api.nvim_buf_is_valid(to.buf) and not vim.wo.winfixbuf then
    api.nvim_win_set_buf(0, to.buf)
    if to.mode == 't' then
      vim.cmd.startinsert()
    end
  end
  if to.from and to.from.tmux and to.from.pane then
    to_place(to.from, function(why)
      if why then
        message.info(why)
      end
    end)
  end
end

return M
