-- What the keys of a picker do: go to the session, and some actions of the board.
local board_keys = require('bellboard.board.keys')
local jump = require('bellboard.jump')
local keys = require('bellboard.keys')

local M = {}

---@class bellboard.PickerAction a key of a picker, apart from that to go there
---@field key string
---@field name string
---@field desc string
---@field stays boolean the picker stays open
---@field run fun(session: bellboard.Session)

---@return bellboard.PickerAction[]
M.list = function()
  local list = {}
  for _, key in ipairs(keys.board) do
    if key.picker and key[2] ~= 'go' then
      list[#list + 1] = {
        key = key.picker,
        name = key[2],
        desc = key[3],
        stays = key.stays == true,
        run = function(session)
          board_keys.run(key[2], { session })
        end,
      }
    end
  end
  return list
end

--- Go to a session once the picker has closed and has restored its window.
---@param session bellboard.Session|nil
M.go = function(session)
  if session then
    vim.schedule(function()
      jump.to(session.session_id)
    end)
  end
end

return M
