-- What a new user is asked once: whether to install the hooks.
local dialog = require('bellboard.dialog')
local message = require('bellboard.message')
local program = require('bellboard.process.program')
local remembered = require('bellboard.remembered')

local M = {}

--- Remembered: the user was asked about the hooks, or had them.
local ASKED = 'hooks-asked'

local greeted = false

--- What is missing without hooks.
---@param names string[]
---@param unlisted string[] those of them whose sessions are not listed then
---@return string
local function without(names, unlisted)
  if #unlisted == 0 then
    return 'Without them, sessions are listed all the same, with less detail.'
  elseif #unlisted == #names then
    return 'Without them, sessions are not listed.'
  end
  return ('Without them, those of %s are not listed.'):format(table.concat(unlisted, ', '))
end

---@param names string[] of the agents on this machine
---@param unlisted string[] those that need hooks to be listed
local function ask(names, unlisted)
  dialog.ask(('Install %s hooks?'):format(table.concat(names, ', ')), {
    'Hooks report each change at once, with the tool in use, subagents and progress.',
    without(names, unlisted),
  }, {
    {
      'y',
      'show the change',
      function()
        remembered.note(ASKED)
        require('bellboard.install').open('install', {})
      end,
    },
    {
      'n',
      'no hooks',
      function()
        remembered.note(ASKED)
        message.info(':ClaudeSessions install adds them later')
      end,
    },
  })
end

--- Ask about the hooks if agents are installed and none has any; once per user.
M.greet = function()
  if greeted or remembered.is(ASKED) then
    return
  end
  greeted = true
  program.decoded({ 'hooks', 'check', '--json' }, function(found)
    if not found then
      return
    end
    local names, unlisted = {}, {}
    for _, agent in ipairs(found.agents) do
      if agent.hooks then
        return remembered.note(ASKED)
      end
      names[#names + 1] = agent.name
      unlisted[#unlisted + 1] = not agent.shows and agent.name or nil
    end
    if #names > 0 then
      ask(names, unlisted)
    end
  end)
end

return M
