-- Installs the Python packages, and the hooks of agents; asks a new user about both.
local config = require('bellboard.config')
local dialog = require('bellboard.dialog')
local launch = require('bellboard.jump.launch')
local message = require('bellboard.message')
local popup = require('bellboard.popup')
local program = require('bellboard.process.program')
local coprocess = require('bellboard.process.run')
local host = require('bellboard.process.talk')
local remembered = require('bellboard.remembered')

local M = {}

--- Remembered: the user does not want to be asked about the packages at each start.
local DECLINED = 'build-declined'
--- Remembered: the user was asked about the hooks, or had them.
local ASKED = 'hooks-asked'
--- The options of `bellboard hooks` that name agents, or a settings file.
M.files = { '--agent', '--all', '--user', '--project', '--local', '--settings' }

--- The user has declined: say how to install later.
---@param text string
---@param verb string
---@param remember fun(): boolean
---@return bellboard.Option
local function declined(text, verb, remember)
  return {
    'n',
    text,
    function()
      remember()
      message.info((':ClaudeSessions %s installs them later'):format(verb))
    end,
  }
end

--- Run build.sh; show each step.
---@param after fun(ok: boolean, text: string)
local function run(after)
  local said = ''
  local function show()
    local step = vim.trim(said):match('[^\n]*$')
    if vim.endswith(step, '…') then
      message.info(step)
    end
  end
  vim.system(
    { 'sh', program.root() .. '/build.sh' },
    {
      stdout = function(_, data)
        said = said .. (data or '')
        vim.schedule(show)
      end,
    },
    vim.schedule_wrap(function(done)
      after(done.code == 0, vim.trim(said):match('[^\n]*$'))
    end)
  )
end

local building = false
--- Whether the user has asked for the build: once built, the process starts.
local is_asked = false
--- Whether the plugin's files were updated under the loaded Lua.
local is_updated = false

--- Install the Python packages in the background, then start.
---@param by_itself? boolean the user has not asked for it: it starts only if it runs, or should
M.build = function(by_itself)
  is_asked = is_asked or not by_itself
  is_updated = is_updated or by_itself == true
  if building then
    return message.info('the Python packages are already being installed')
  end
  building = true
  remembered.forget(DECLINED)
  local began = vim.uv.hrtime()
  run(function(ok, text)
    local asked = is_asked
    building, is_asked = false, false
    if ok then
      local updated = is_updated and '; restart Neovim' or ''
      message.info(('%s in %.0f s%s'):format(text, (vim.uv.hrtime() - began) / 1e9, updated))
      pcall(vim.cmd.helptags, { program.root() .. '/doc', magic = { file = false } }) -- read-only
      if asked or coprocess.is_wanted() then
        coprocess.restart()
      end
      return
    end
    message.warn('not installed; :ClaudeSessions build tries again')
    local function again()
      M.build(not asked)
    end
    local function log()
      local _, lines = pcall(vim.fn.readfile, program.root() .. '/.build.log')
      popup.window(type(lines) == 'table' and lines or { text }, 'log', true)
    end
    dialog.ask("bellboard's Python packages could not be installed", { text }, {
      { 'r', 'try again', again },
      { 'l', 'show the log', log },
      { 'q', 'close' },
    })
  end)
end

--- The background process cannot run: offer to build, unless the user chose its Python.
---@param why string
---@param by_itself boolean Neovim has started it, not the user
M.offer = function(why, by_itself)
  if config.get().python then
    return message.warn(host.instead(why))
  elseif building or by_itself and remembered.is(DECLINED) then
    return
  end
  local how = vim.fn.executable('uv') == 1 and 'uv' or 'pip'
  local lines = {
    "Install bellboard's Python packages?",
    ("%s puts them into the plugin's folder, in the background."):format(how),
  }
  if not by_itself then
    table.insert(lines, 1, why .. '.')
  end
  dialog.ask('bellboard', lines, {
    { 'y', 'install', M.build },
    declined('not now', 'build', function()
      return remembered.note(DECLINED)
    end),
  })
end

--- Install the hooks, or remove them, in a terminal: the program shows the change and asks there.
---@param verb 'install'|'uninstall'
---@param rest string[] which files; default: those of the agents on this machine
M.hooks = function(verb, rest)
  local command = vim.list_extend(program.command(), { 'hooks', verb })
  local claude = verb == 'install' and vim.fn.exepath(config.claude()[1]) or ''
  if claude ~= '' then
    vim.list_extend(command, { '--cli', claude }) -- in front: the last one counts
  end
  launch.start(vim.list_extend(command, rest), 'tab') -- a diff is wide
end

---@param names string[] of the agents on this machine
---@param unlisted string[] those that need hooks to be listed
local function ask_for_hooks(names, unlisted)
  local without = #unlisted == 0 and 'sessions are listed all the same, with less detail.'
    or #unlisted == #names and 'sessions are not listed.'
    or ('those of %s are not listed.'):format(table.concat(unlisted, ', '))
  local function remember()
    return remembered.note(ASKED)
  end
  local function show()
    remember()
    M.hooks('install', {})
  end
  dialog.ask(('Install %s hooks?'):format(table.concat(names, ', ')), {
    'Hooks report each change at once, with the tool in use, subagents and progress.',
    'Without them, ' .. without,
  }, { { 'y', 'show the change', show }, declined('no hooks', 'install', remember) })
end

local greeted = false

--- Ask about the hooks if agents are installed and none has any; once per user.
M.greet = function()
  if greeted or remembered.is(ASKED) then
    return
  end
  greeted = true
  program.decoded({ 'hooks', 'check', '--json' }, function(found)
    local names, unlisted = {}, {}
    for _, agent in ipairs(found and found.agents or {}) do
      if agent.hooks then
        return remembered.note(ASKED)
      end
      names[#names + 1] = agent.name
      unlisted[#unlisted + 1] = not agent.shows and agent.name or nil
    end
    if #names > 0 then
      ask_for_hooks(names, unlisted)
    end
  end)
end

return M
