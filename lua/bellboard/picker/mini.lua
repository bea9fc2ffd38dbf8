-- The picker of mini.pick.
local picker_keys = require('bellboard.picker.keys')
local preview = require('bellboard.preview')
local rows = require('bellboard.picker.rows')

local M = {}

---@param all bellboard.Session[]
M.open = function(all)
  local pick = require('mini.pick')
  local items = vim.tbl_map(function(session)
    return { text = rows.words(session), session = session }
  end, all)
  local mappings = {}
  for _, action in ipairs(picker_keys.list()) do
    mappings['bellboard_' .. action.name] = {
      char = action.key,
      func = function()
        local item = (pick.get_picker_matches() or {}).current
        if item then
          vim.schedule(function()
            action.run(item.session)
          end)
        end
        return not action.stays -- true closes the picker
      end,
    }
  end
  pick.start({
    source = {
      name = 'Agent sessions',
      items = items,
      show = function(buf, shown)
        local win = pick.get_picker_state().windows.main
        local layout = rows.layout(all, vim.api.nvim_win_get_width(win))
        rows.fill(
          buf,
          vim.tbl_map(function(item)
            return rows.columns(item.session, layout)
          end, shown)
        )
      end,
      preview = function(buf, item)
        preview.into(item.session, buf)
      end,
      choose = function(item)
        picker_keys.go(item.session)
      end,
    },
    mappings = mappings,
  })
end

return M
