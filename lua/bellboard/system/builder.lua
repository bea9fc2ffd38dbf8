-- Installs the Python packages into .venv in the plugin's folder: with uv if possible,
-- else with venv and pip. Requires nothing: build.lua runs it before the plugin is loaded.
local M = {}

---@class bellboard.Built
---@field ok boolean
---@field text string what happened, in one line
---@field log string the output of all programs

---@alias bellboard.Then fun(ok: boolean, printed: string)

local PYTHONS = { 'python3' }
for minor = 14, 10, -1 do
  PYTHONS[#PYTHONS + 1] = 'python3.' .. minor
end
local OLD_ENOUGH = 'import sys; sys.exit(sys.version_info < (3, 10))'
--- Programs that install packages, and how.
local MANAGERS = {
  { 'apt-get', 'apt install python3-venv' },
  { 'dnf', 'dnf install python3' },
  { 'pacman', 'pacman -S python' },
  { 'apk', 'apk add python3' },
  { 'brew', 'brew install python' },
}

--- How to install Python, or its venv, on this machine.
---@return string
local function remedy()
  for _, manager in ipairs(MANAGERS) do
    if vim.fn.executable(manager[1]) == 1 then
      return '; ' .. manager[2]
    end
  end
  return ''
end

--- Run a program in a folder; `after` is called in the main loop.
---@param command string[]
---@param folder string
---@param after bellboard.Then
local function run(command, folder, after)
  local opts = { cwd = folder, text = true, env = { UV_PROJECT_ENVIRONMENT = folder .. '/.venv' } }
  local started, problem = pcall(vim.system, command, opts, function(done)
    vim.schedule(function()
      local printed = vim.trim((done.stdout or '') .. (done.stderr or ''))
      after(done.code == 0, ('$ %s\n%s\n'):format(table.concat(command, ' '), printed))
    end)
  end)
  if not started then
    after(false, tostring(problem) .. '\n')
  end
end

--- The first Python that is new enough.
---@param folder string
---@param after fun(python: string|nil)
local function find(folder, after)
  local function try(place)
    local python = PYTHONS[place]
    if not python or vim.fn.executable(python) == 1 then
      return python
          and run({ python, '-c', OLD_ENOUGH }, folder, function(ok)
            if ok then
              after(python)
            else
              try(place + 1)
            end
          end)
        or not python and after(nil)
    end
    try(place + 1)
  end
  try(1)
end

--- The last line that a program printed, without colors.
---@param log string
---@return string
local function last_line(log)
  local lines = vim.split(vim.trim((log:gsub('\27%[[%d;]*m', ''))), '\n')
  return vim.trim(lines[#lines])
end

--- Build with venv and pip.
---@param root string
---@param report fun(text: string)
---@param after fun(ok: boolean, text: string, log: string)
local function with_pip(root, report, after)
  find(root, function(python)
    if not python then
      return after(false, 'Python 3.10 or newer is missing' .. remedy(), '')
    end
    local own = root .. '/.venv/bin/python'
    local venv = { python, '-m', 'venv', '.venv' }
    if vim.fn.executable(own) == 0 then
      table.insert(venv, 4, '--clear') -- the rest of an environment whose Python is gone
    end
    report('creating .venv with ' .. python)
    run(venv, root, function(made, printed)
      if not made then
        local why = printed:find('ensurepip', 1, true) and 'Python has no venv' .. remedy()
        return after(false, why or last_line(printed), printed)
      end
      report('installing Python packages with pip')
      local pip = { own, '-m', 'pip', 'install', '--disable-pip-version-check', '--quiet' }
      run(vim.list_extend(pip, { '--editable', '.' }), root, function(ok, more)
        after(ok, ok and 'built with pip' or 'pip failed: ' .. last_line(more), printed .. more)
      end)
    end)
  end)
end

--- Build. Does not block.
---@param root string folder of the plugin
---@param report fun(text: string) called with each step
---@param done fun(built: bellboard.Built) called once
M.run = function(root, report, done)
  local function finish(ok, text, log)
    done({ ok = ok, text = text, log = log })
  end
  if not vim.uv.fs_access(root, 'W') then
    local text = 'cannot write to %s: install its Python packages there, or set the option python'
    return finish(false, text:format(vim.fn.fnamemodify(root, ':~')), '')
  elseif vim.fn.executable('uv') == 0 then
    return with_pip(root, report, finish)
  end
  report('installing Python packages with uv')
  run({ 'uv', 'sync', '--no-dev', '--frozen' }, root, function(ok, printed)
    if ok then
      return finish(true, 'built with uv', printed)
    end
    with_pip(root, report, function(made, text, log)
      finish(
        made,
        made and text or ('uv failed: %s; %s'):format(last_line(printed), text),
        printed .. log
      )
    end)
  end)
end

return M
