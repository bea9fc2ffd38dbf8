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

local function ask()
  question.ask('Install Claude Code hooks?', {
    'Sessions show without them, from the files and screens of Claude Code.',
    'Hooks add the tool in use, agents and progress, and report each change at once.',
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

--- Ask about the hooks if Claude Code is installed without them; once per user.
M.greet = function()
  if greeted or remembered.is(ASKED) then
    return
  end
  greeted = true
  program.run({ 'hooks', 'check', '--json' }, function(printed)
    local ok, found = pcall(vim.json.decode, printed or '')
    if not ok then
      return
    elseif found.installed then
      remembered.note(ASKED)
    elseif found.claude then
      ask()
    end
  end)
end

return M
