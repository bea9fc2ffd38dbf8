-- Build the background process: its Python packages go into .venv in the plugin's folder.
local builder = require('bellboard.builder')
local config = require('bellboard.config')
local dialog = require('bellboard.dialog')
local coprocess = require('bellboard.process.run')
local host = require('bellboard.process.talk')
local message = require('bellboard.message')
local program = require('bellboard.process.program')
local remembered = require('bellboard.remembered')

local M = {}

--- Remembered: the user does not want to be asked at each start.
local DECLINED = 'build-declined'
local INSTALL = "Install bellboard's Python packages?"

local building = false
--- The user has asked for it: once built, it starts.
local is_asked = false
--- Its files were updated under the Lua that is loaded.
local is_updated = false

--- Build in the background, then start.
---@param by_itself? boolean the user has not asked for it: it starts only if it runs, or should
M.run = function(by_itself)
  is_asked = is_asked or not by_itself
  is_updated = is_updated or by_itself == true
  if building then
    return message.info('the Python packages are already being installed')
  end
  building = true
  remembered.forget(DECLINED)
  local began = vim.uv.hrtime()
  builder.run(program.root(), function(text)
    message.info(text .. ' …')
  end, function(built)
    local asked = is_asked
    building, is_asked = false, false
    if built.ok then
      local updated = is_updated and '; restart Neovim' or ''
      message.info(('%s in %.0f s%s'):format(built.text, (vim.uv.hrtime() - began) / 1e9, updated))
      if not (asked or coprocess.is_wanted()) then
        return
      end
      return require('bellboard').restart()
    end
    dialog.ask("bellboard's Python packages could not be installed", { built.text }, {
      {
        'r',
        'try again',
        function()
          M.run(not asked)
        end,
      },
      {
        'l',
        'show the log',
        function()
          require('bellboard.popup').window(vim.split(built.log, '\n'), 'log', true)
        end,
      },
      { 'q', 'close' },
    })
  end)
end

--- It cannot run: offer to build, unless the user chose its Python.
---@param why string
---@param by_itself boolean Neovim has started it, not the user
M.offer = function(why, by_itself)
  if config.get().python then
    return message.warn(host.instead(why))
  elseif building or by_itself and remembered.is(DECLINED) then
    return
  end
  local how = vim.fn.executable('uv') == 1 and 'uv' or 'pip'
  local lines =
    { INSTALL, ("%s puts them into the plugin's folder, in the background."):format(how) }
  if not by_itself then
    table.insert(lines, 1, why .. '.')
  end
  dialog.ask('bellboard', lines, {
    { 'y', 'install', M.run },
    {
      'n',
      'not now',
      function()
        remembered.note(DECLINED)
        message.info(':ClaudeSessions build installs them later')
      end,
    },
  })
end

return M
