-- The time of day, as Python's time.time() has it.
local M = {}

---@return number seconds since the epoch
M.now = function()
  local seconds, micros = vim.uv.gettimeofday()
  return seconds + micros / 1e6
end

return M
