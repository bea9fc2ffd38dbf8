-- The clickable items of the statusline.
local M = {}

---@class bellboard.Target where a click leads: a session, or the next one with a status
---@field id? string
---@field status? bellboard.Status

--- Targets by the number in the item. Numbers are never reused: the click may be on an item that
--- was drawn before the last change.
---@type table<integer, bellboard.Target>
local targets = {}
---@type table<string, integer>
local number_of = {}
local numbers = 0

---@param target bellboard.Target
---@return integer
M.number = function(target)
  local key = target.id and 'session ' .. target.id or target.status
  if not number_of[key] then
    numbers = numbers + 1
    number_of[key], targets[numbers] = numbers, target
  end
  return number_of[key]
end

--- Forget the sessions that are gone.
---@param exists fun(id: string): any
M.prune = function(exists)
  for key, on in pairs(number_of) do
    if targets[on].id and not exists(targets[on].id) then
      number_of[key], targets[on] = nil, nil
    end
  end
end

--- The start of a clickable item in 'statusline'.
---@param on integer
---@return string
M.start = function(on)
  return ("%%%d@v:lua.require'bellboard.buttons'.click@"):format(on)
end

--- Handle a click. Left goes to the session, or to the next one with that status; right opens the
--- picker, middle the board.
---@param on integer
---@param button string
M.click = function(on, _, button)
  local target = targets[on]
  vim.schedule(function()
    if button ~= 'l' or not target then
      require('bellboard.command').run(button == 'm' and 'board' or 'pick')
    elseif target.id then
      require('bellboard.jump').to(target.id)
    else
      require('bellboard.jump').step(1, target.status)
    end
  end)
end

return M
