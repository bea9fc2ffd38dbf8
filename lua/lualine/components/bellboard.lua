-- The lualine component 'bellboard', with the colours of the statuses on the section's background.
-- Options: sessions = true for an item per session, colored = false. Updates refresh lualine.
local ink = require('bellboard.ink')
local statusline = require('bellboard.statusline')
local updates = require('bellboard.updates')

local M = require('lualine.component'):extend()

function M:init(options)
  M.super.init(self, options)
  self.layout = self.options.sessions and 'sessions' or 'counts'
  local drawn
  updates.on('lualine.' .. self.component_no, function()
    local items = statusline.items(self.layout)
    if items ~= drawn then -- not every update changes the text
      drawn = items
      require('lualine').refresh()
    end
  end)
end

--- A group's colour on the background of this section in this mode.
---@param group string|nil
---@return string
function M:paint(group)
  local own = self:get_default_hl()
  local ground = group and self.options.colored ~= false and own:match('^%%#(.-)#')
  return ground and ('%%#%s#'):format(ink.on(group, ground)) or own
end

function M:update_status()
  return statusline.render(statusline.items(self.layout), function(group)
    return self:paint(group)
  end)
end

return M
