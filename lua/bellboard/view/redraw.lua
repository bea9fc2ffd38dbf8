-- Updates everything that shows sessions.
local ink = require('bellboard.view.ink')
local statusline = require('bellboard.view.statusline')
local updates = require('bellboard.state.updates')

local M = {}

--- The statusline first: listeners may ask for its text.
M.all = function()
  ink.restore()
  statusline.update()
  updates.fire('BellboardUpdate')
end

return M
