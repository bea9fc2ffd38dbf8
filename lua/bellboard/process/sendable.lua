-- The part of a value that can be sent to another process.
local M = {}

--- Levels of nesting to send; deeper means a table that contains itself.
local DEEPEST = 16

--- The part of a value that can be sent: one function among the options would make all fail.
---@param value any
---@param depth? integer
---@return any
M.part = function(value, depth)
  local kind = type(value)
  depth = depth or 0
  if kind == 'string' or kind == 'number' or kind == 'boolean' or value == vim.NIL then
    return value
  elseif kind ~= 'table' or depth > DEEPEST then
    return nil
  end
  local copy = vim.islist(value) and #value > 0 and {} or vim.empty_dict()
  for key, member in pairs(value) do
    if type(key) == 'string' or vim.islist(value) then
      copy[key] = M.part(member, depth + 1)
    end
  end
  return copy
end

return M
