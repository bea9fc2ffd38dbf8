-- Where a session runs, as a word.
local cells = require('bellboard.view.cells')
local sessions = require('bellboard.state.sessions')
local terminals = require('bellboard.state.terminals')
local tmux = require('bellboard.system.tmux')

local M = {}

--- Here, else as its tmux or the background process calls it.
---@param session bellboard.Session
---@return string
M.of = function(session)
  if terminals.buffer(session.tty) then
    return 'terminal'
  end
  local target = session.pane and tmux.place(session)
  return target and cells.safe(target) or session.words.place
end

--- Ask the tmux servers of new panes what those are called.
M.attach = function()
  vim.api.nvim_create_autocmd('User', {
    group = vim.api.nvim_create_augroup('bellboard.place', {}),
    pattern = 'BellboardUpdate',
    callback = function()
      tmux.learn(sessions.list(), require('bellboard.view.redraw').all)
    end,
  })
end

return M
