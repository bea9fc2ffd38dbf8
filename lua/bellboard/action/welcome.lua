-- What a new user is asked once: whether to install the hooks.
local config = require('bellboard.config')
local message = require('bellboard.message')
local program = require('bellboard.system.program')
local question = require('bellboard.view.question')
local remembered = require('bellboard.state.remembered')

local M = {}

--- Remembered: the user was asked about the hooks, or had them.
local ASKED = 'hooks-asked'

local greeted = false

---@param names string[] of the agents on this machine
local function ask(names)
  local is_claude = #names == 1 and names[1] == 'Claude Code'
  question.ask(('Install %s hooks?'):format(table.concat(names, ', ')), {
    'Hooks report each change at once, with the tool in use, agents and progress.',
    is_claude and 'Without them, its sessions are listed all the same, with less detail.'
      or 'Without them, most agents are not listed, and the others with less detail.',
  }, {
    {
      'y',
      'show the change',
      function()
        remembered.note(ASKED)
        require('bellboard.action.install').open('install', {})
      end,
    },
    {
      'n',
      'no hooks',
      function()
        remembered.note(ASKED)
        message.info((':%s install adds them later'):format(config.command()))
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
    local names = {}
    for _, agent in ipairs(found.agents) do
      if agent.hooks then
        return remembered.note(ASKED)
      end
      names[#names + 1] = agent.name
    end
    if #names > 0 then
      ask(names)
    end
  end)
end

return M
