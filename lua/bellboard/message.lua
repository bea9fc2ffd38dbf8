-- Messages to the user.
local M = {}

--- Scheduled, as a message may wait for a key.
---@param text string
---@param level integer
local function notify(text, level)
  vim.schedule(function()
    vim.notify('bellboard: ' .. text, level)
  end)
end

---@param text string
M.info = function(text)
  notify(text, vim.log.levels.INFO)
end

---@param text string
M.warn = function(text)
  notify(text, vim.log.levels.WARN)
end

---@param text string
M.error = function(text)
  notify(text, vim.log.levels.ERROR)
end

return M
