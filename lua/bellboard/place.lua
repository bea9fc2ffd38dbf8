-- Where a session runs, in a word.
local cells = require('bellboard.text')
local sessions = require('bellboard.sessions')
local terminals = require('bellboard.terminals')
local tmux = require('bellboard.jump.tmux')

local M = {}

--- `terminal` or `chat` if it runs in this Neovim, else the name of its tmux pane, if known.
---@param session bellboard.Session
---@return string
M.of = function(session)
  if terminals.buffer(session.tty) then
    return 'terminal'
  elseif terminals.of(nil, session.session_id) then
    return 'chat'
  end
  local target = session.pane and tmux.place(session)
  return target and session.words.server .. cells.safe(target) or session.words.place
end

--- Look up the names of new panes.
M.attach = function()
  sessions.on_change('place', function()
    tmux.learn(sessions.list(), sessions.changed)
  end)
end

return M
