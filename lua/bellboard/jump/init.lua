-- Jumps: to a session, on to the next that needs you, and back to where the first jump started.
local elsewhere = require('bellboard.jump.elsewhere')
local filter = require('bellboard.board.filter')
local host = require('bellboard.process.talk')
local machine = require('bellboard.jump.machine')
local message = require('bellboard.message')
local places = require('bellboard.jump.history')
local sessions = require('bellboard.sessions')
local terminals = require('bellboard.terminals')
local tmux = require('bellboard.jump.tmux')
local window = require('bellboard.jump.show')

local M = {}

local api = vim.api

---@class bellboard.Origin: bellboard.Place
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
    local how = { mode = api.nvim_get_mode().mode, from = from }
    origin = vim.tbl_extend('error', places.here(), how)
    places.start()
  end
end

--- Mark it as seen.
---@param session bellboard.Session
local function landed(session)
  host.tell({ ['goto'] = { session_id = session.session_id } })
end

---@type bellboard.Moves
local moves = { show = show, landed = landed }

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
  return vim.tbl_extend('error', { shown = true }, tmux.here())
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
      open = function(command, opened)
        remember()
        require('bellboard.jump.launch').terminal(command, nil, function(made, before)
          landing = made
          if before then
            places.replace(before, made)
          end
          opened(made)
        end)
      end,
      elsewhere = function(place)
        elsewhere.to(place, moves)
      end,
      landed = landed,
    })
  elseif buf then
    remember()
    show(buf)
    landed(session)
  else
    elsewhere.to(session, moves)
  end
end

--- Go `count` sessions forward among those that need you, or those with a status, most urgent
--- first. Wraps around.
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
  local current = terminals.current()
  local id = current and current.session_id or last
  local at = 0
  for nth, session in ipairs(needing) do
    if session.session_id == id then
      at = nth
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
    message.info(to and 'the buffer you jumped from is gone' or 'nowhere to go back to')
    return
  end
  vim.cmd.stopinsert()
  window.bring_back()
  if api.nvim_win_is_valid(to.win) then
    api.nvim_set_current_win(to.win)
  end
  if api.nvim_buf_is_valid(to.buf) then
    local before = window.put(to.buf)
    if before and before.win == to.win then -- something else was shown there since
      places.restore(to)
    end
    if to.mode == 't' then
      vim.cmd.startinsert()
    end
  end
  if to.from and to.from.tmux and to.from.pane then
    elsewhere.to_pane(to.from, show, function(why)
      if why then
        message.info(why)
      end
    end)
  end
end

return M
