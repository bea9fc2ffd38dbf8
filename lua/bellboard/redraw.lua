-- Updates everything that shows sessions.
local age = require('bellboard.age')
local statusline = require('bellboard.statusline')
local updates = require('bellboard.updates')

local M = {}

--- The statusline first: listeners may ask for its text.
M.all = function()
  statusline.update()
  updates.fire('BellboardUpdate')
end

age.on_step = M.all

return M
