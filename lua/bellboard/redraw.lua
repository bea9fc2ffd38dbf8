-- Updates everything that shows sessions.
local ink = require('bellboard.ink')
local statusline = require('bellboard.statusline')
local updates = require('bellboard.updates')

local M = {}

--- The statusline first: listeners may ask for its text.
M.all = function()
  ink.restore()
  statusline.update()
  updates.fire('BellboardUpdate')
end

return M
