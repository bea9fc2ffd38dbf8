-- `bellboard …`, run with the interpreter of the host; nobody waits for it.
local config = require('bellboard.config')

local M = {}

--- What it said of why it failed, in a line; Python's own last words if it is no message of ours.
---@param done vim.SystemCompleted
---@return string
local function reason(done)
  local lines = vim.split(vim.trim(done.stderr or ''), '\n')
  local text = lines[#lines]:gsub('^bellboard: ', '')
  return text ~= '' and text or ('it ended with %d'):format(done.code)
end

--- Run a command, and go on with what it printed, or with nil and the reason.
---@param words string[]
---@param after fun(printed: string|nil, reason: string)
M.run = function(words, after)
  local command = vim.list_extend(config.program(), words)
  local ok, problem = pcall(vim.system, command, { text = true }, function(done)
    vim.schedule(function()
      if done.code == 0 then
        after(done.stdout, '')
      else
        after(nil, reason(done))
      end
    end)
  end)
  if not ok then
    after(nil, ('cannot start "%s" (%s)'):format(command[1], problem))
  end
end

return M
