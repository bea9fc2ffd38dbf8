-- The lualine component 'bellboard': the counts, in the colors of the section.
local sessions = require('bellboard.sessions')
local statusline = require('bellboard.statusline')

local M = require('lualine.component'):extend()

function M:init(options)
  M.super.init(self, options)
  local colors = require('lualine.utils.utils').extract_highlight_colors('BellboardBlocked')
  self.urgent = self:create_hl(colors or {}, 'urgent')
  local drawn
  sessions.on_change('lualine.' .. self.component_no, function()
    local text = statusline.text({ plain = true })
    if text ~= drawn then -- not every update changes the text
      drawn = text
      require('lualine').refresh()
    end
  end)
end

function M:update_status()
  return statusline.render(self:format_hl(self.urgent), self:get_default_hl())
end

return M
