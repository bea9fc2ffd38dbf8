-- The Python program: its interpreter, and running `bellboard` in the background.
local config = require('bellboard.config')

local M = {}

--- The version of the plugin and of the program.
M.version = '0.1.0'

---@class bellboard.Interpreter
---@field command string[]
---@field why string how it was found

--- The directory of this plugin.
---@return string
M.root = function()
  local path = vim.fs.normalize(debug.getinfo(1, 'S').source:sub(2))
  return (path:gsub('/lua/bellboard/process/program%.lua$', ''))
end

--- The interpreter to use. It is not checked: an invalid one fails with a message when started.
---@return bellboard.Interpreter
M.interpreter = function()
  local wanted = config.get().python
  if wanted then
    return { command = config.words(wanted), why = 'the option python' }
  end
  local own = M.root() .. '/.venv/bin/python'
  local is_whole = vim.uv.fs_stat(M.root() .. '/.venv/.ready') -- build.sh has completed
  if is_whole and vim.fn.executable(own) == 1 then
    return { command = { own }, why = "the plugin's own .venv" }
  end
  local prog = vim.g.python3_host_prog
  if type(prog) == 'string' and prog ~= '' then
    return { command = { vim.fs.normalize(prog) }, why = 'g:python3_host_prog' }
  end
  local launcher = vim.fn.exepath('pynvim-python')
  if launcher ~= '' then
    -- Not the launcher itself: stopping that would leave the real interpreter running.
    local sibling = vim.fs.dirname(vim.uv.fs_realpath(launcher) or launcher) .. '/python'
    if vim.fn.executable(sibling) == 1 then
      return { command = { sibling }, why = 'the environment of pynvim-python' }
    end
  end
  local found = vim.fn.exepath('python3')
  return { command = { found ~= '' and found or 'python3' }, why = 'python3 on PATH' }
end

--- The command line of `bellboard`. With -E, no PYTHONPATH makes it import files of the current
--- directory, and no PYTHONHOME keeps it from starting.
---@return string[]
M.command = function()
  local entry = M.root() .. '/rplugin/python3/bellboard/__main__.py'
  return vim.list_extend({ unpack(M.interpreter().command) }, { '-E', entry })
end

--- The last line of the error output, or how the program ended.
---@param done vim.SystemCompleted
---@return string
local function reason(done)
  local lines = vim.split(vim.trim(done.stderr or ''), '\n')
  local text = lines[#lines]:gsub('^bellboard: ', ''):gsub('^bellboard [^:]*: error: ', '')
  text = text:gsub('^the following arguments are required:', 'needs') -- to fit on one line
  local ending = done.signal ~= 0 and ('ended by signal %d'):format(done.signal)
    or ('exit code %d'):format(done.code)
  return text ~= '' and text or ending
end

--- Run `bellboard` with these arguments; `after` gets its output, or nil, the reason and what was
--- printed before.
---@param words string[]
---@param after fun(printed: string|nil, reason: string, partly: string|nil)
---@param columns? integer of its lines; default: no line is cut or wrapped
M.run = function(words, after, columns)
  local command = vim.list_extend(M.command(), words)
  local function ended(done)
    if done.code == 0 and done.signal == 0 then
      after(done.stdout, '')
    else
      after(nil, reason(done), done.stdout)
    end
  end
  local options = { text = true, env = columns and { COLUMNS = columns } }
  local ok, problem = pcall(vim.system, command, options, vim.schedule_wrap(ended))
  if not ok then
    local why = tostring(problem):gsub('^[^:]*:%d+: ', '') -- without the place in Neovim's source
    after(nil, ('cannot start "%s" (%s)'):format(command[1], why))
  end
end

--- Run `bellboard` with these arguments; `after` gets the decoded output, or nil and the reason.
---@param words string[]
---@param after fun(decoded: any, why: string)
M.decoded = function(words, after)
  M.run(words, function(printed, why)
    local ok, decoded = pcall(vim.json.decode, printed or '')
    if ok then
      return after(decoded, '')
    end
    local unreadable = ('cannot read what "bellboard %s" printed'):format(words[1])
    after(nil, printed and unreadable or why)
  end)
end

return M
