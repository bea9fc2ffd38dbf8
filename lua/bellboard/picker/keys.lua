-- What the keys of a picker do: go to the session, and some actions of the board.
local actions = require('bellboard.board.actions')
local jump = require('bellboard.jump')

local M = {}

---@class bellboard.PickerAction a action with its key in a picker
---@field key string
---@field name string
---@field desc string
---@field stays boolean the picker stays open
---@field run fun(session: bellboard.Session)

local ALSO = {
  { name = 'answer', key = '<M-a>', stays = false },
  { name = 'seen', key = '<M-d>', stays = true },
  { name = 'park', key = '<M-p>', stays = true },
  { name = 'snooze', key = '<M-s>', stays = false },
}

--- All actions except going there.
---@return bellboard.PickerAction[]
M.list = function()
  return vim.tbl_map(function(also)
    for _, action in ipairs(actions.list) do
      if action[1] == also.name then
        local function run(session)
          actions.run(action, { session })
        end
        return vim.tbl_extend('error', { desc = action[2], run = run }, also)
      end
    end
  end, ALSO)
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
