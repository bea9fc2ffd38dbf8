-- The lualine component 'bellboard', with the colours of the statuses on the section's background.
-- Options: sessions = true for an item per session, colored = false. Updates refresh lualine.
local statusline = require('bellboard.view.statusline')

local M = require('lualine.component'):extend()

local colours = require('lualine.utils.utils')

function M:init(options)
  M.super.init(self, options)
  self.layout = self.options.sessions and 'sessions' or 'counts'
  self.highlights = {}
  local drawn
  vim.api.nvim_create_autocmd('User', {
    group = vim.api.nvim_create_augroup('bellboard.lualine.' .. self.component_no, {}),
    pattern = 'BellboardUpdate',
    callback = function()
      local items = statusline.items(self.layout)
      if items ~= drawn then -- not every update changes the text
        drawn = items
        require('lualine').refresh()
      end
    end,
  })
end

--- A group's foreground on the background of this section.
---@param group string|nil
---@return string
function M:paint(group)
  if not group or self.options.colored == false then
    return self:get_default_hl()
  end
  if not self.highlights[group] then
    local fg = colours.extract_color_from_hllist('fg', { group }, nil)
    self.highlights[group] = self:create_hl({ fg = fg }, group)
  end
  return self:format_hl(self.highlights[group])
end

function M:update_status()
  return statusline.render(statusline.items(self.layout), function(group)
    return self:paint(group)
  end)
end

return M
