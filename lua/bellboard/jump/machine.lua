-- Goes to a session of another machine: to the terminal here that shows it, or to a new one. The
-- background process asks the machine, which selects the session there.
local host = require('bellboard.process.talk')
local message = require('bellboard.message')
local terminals = require('bellboard.terminals')

local M = {}

---@class bellboard.MovesOut: bellboard.Moves how a jump moves to another machine
---@field open fun(command: string[], opened: fun(buf: integer)) in a new terminal
---@field elsewhere fun(place: bellboard.Session) goes to a pane or another Neovim

---@type table<string, integer> session → the terminal that was opened here to show it
local openings = {}

--- Show the terminal that was opened for a session, while its program runs, else open one.
---@param session bellboard.Session
---@param command string[]
---@param moves bellboard.MovesOut
local function open(session, command, moves)
  local known = openings[session.session_id]
  if known and terminals.is_running(known) then
    moves.show(known)
  else
    moves.open(command, function(buf)
      openings[session.session_id] = buf
    end)
  end
end

--- Go there.
---@param session bellboard.Session
---@param moves bellboard.MovesOut
M.to = function(session, moves)
  host.ask('goto', { session_id = session.session_id }, function(reply)
    local place = reply.place
    local buf = place and terminals.buffer(place.tty)
    if not reply.ok then
      message.info(('%s: %s'):format(session.words.project, reply.why))
    elseif reply.command then
      open(session, reply.command, moves)
    elseif buf then
      moves.show(buf)
      moves.landed(session)
    elseif place then
      moves.elsewhere(vim.tbl_extend('error', { session_id = session.session_id }, place))
    else
      moves.landed(session)
    end
  end)
end

return M
