-- What the board shows while no session is known: the text that a shell shows as well.
local cells = require('bellboard.text')
local config = require('bellboard.config')
local host = require('bellboard.process.talk')
local program = require('bellboard.process.program')

local M = {}

local FILE = '/rplugin/python3/bellboard/screen/first_run.txt'
---@type string[]|nil
local text

--- The text with these words in it, without the lines that have an empty one.
---@param named table<string, string>
---@return string[]
local function filled(named)
  text = text or vim.fn.readfile(program.root() .. FILE)
  local lines = {}
  for _, line in ipairs(text) do
    local complete = true
    line = line:gsub('{(%w+)}', function(name)
      complete = complete and named[name] ~= ''
      return named[name]
    end)
    lines[#lines + 1] = complete and line or nil
  end
  return lines
end

--- Why there can be no session, or how to get one.
---@return string[]
M.lines = function()
  local why, step = host.trouble()
  if why then
    return { (' Not running: %s.'):format(cells.safe(why)), '', ' 1  ' .. step }
  end
  local command, claude = ':ClaudeSessions', config.claude()[1]
  local is_there = vim.fn.executable(claude) == 1
  return filled({
    missing = is_there and '' or cells.safe(claude),
    new = command .. ' new' .. (is_there and '' or ' --agent NAME'),
    health = command .. ' health',
    install = command .. ' install',
  })
end

return M
