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
--- uv makes environments without pip. What ensurepip runs is isolated only by -I.
local WITH_PIP = 'try: import pip\nexcept ImportError: import ensurepip; ensurepip.bootstrap()'
--- Everything that is fetched has a hash in that file, as in uv.lock: also what builds the package,
--- and a pip that can install it as editable, unlike that of Python 3.10.2.
local LOCKED = { '--require-hashes', '--requirement', 'requirements.txt' }
local OURS = { '--no-deps', '--no-index', '--no-build-isolation', '--editable', '.' }
--- A `target` or `prefix` in pip's configuration puts them elsewhere.
local INSTALLED = 'import msgspec, pynvim'
local ELSEWHERE = 'what pip installed is not in .venv: see "%s -m pip config list"'
local EXCLUSIVE = 6 -- LOCK_EX | LOCK_NB
local WOULD_BLOCK = { [11] = true, [35] = true } -- EAGAIN on Linux; on macOS and the BSDs
--- Programs that install packages, and how.
local MANAGERS = {
  { 'apt-get', 'apt install python3-venv' },
  { 'dnf', 'dnf install python3.12' }, -- its python3 may be 3.9
  { 'pacman', 'pacman -S python' },
  { 'apk', 'apk add python3' },
  { 'brew', 'brew install python' },
}

--- How to install Python, or its venv, on this machine. uv brings a Python of its own.
---@return string
local function remedy()
  local ways = {}
  for _, manager in ipairs(MANAGERS) do
    if vim.fn.executable(manager[1]) == 1 then
      ways = { manager[2] }
      break
    end
  end
  if vim.fn.executable('uv') == 0 then
    ways[#ways + 1] = 'install uv'
  end
  return #ways > 0 and '; ' .. table.concat(ways, ', or ') or ''
end

--- Run a program in a folder; `after` is called in the main loop. A signal leaves the code at 0.
---@param command string[]
---@param folder string
---@param after bellboard.Then
local function run(command, folder, after)
  local opts = { cwd = folder, text = true, env = { UV_PROJECT_ENVIRONMENT = folder .. '/.venv' } }
  local function ended(done)
    local printed = vim.trim((done.stdout or '') .. (done.stderr or ''))
    local log = ('$ %s\n%s\n'):format(table.concat(command, ' '), printed)
    after(done.code == 0 and done.signal == 0, log)
  end
  local started, problem = pcall(vim.system, command, opts, vim.schedule_wrap(ended))
  if not started then
    after(false, tostring(problem):gsub('^[^:]*:%d+: ', '') .. '\n')
  end
end

--- The first Python that is new enough.
---@param folder string
---@param after fun(python: string|nil)
local function find(folder, after)
  local function try(place)
    local python = PYTHONS[place]
    if not python then
      return after(nil)
    end
    run({ python, '-E', '-c', OLD_ENOUGH }, folder, function(ok)
      if ok then
        after(python)
      else
        try(place + 1)
      end
    end)
  end
  try(1)
end

--- Wait until no other Neovim builds in this folder, then build there alone.
--- The kernel drops the lock with the process that has it, however that ends.
---@param root string
---@param report fun(text: string)
---@param build fun(release: fun())
local function alone(root, report, build)
  local has_ffi, ffi = pcall(require, 'ffi')
  local fd = has_ffi and vim.uv.fs_open(root, 'r', 0)
  if not fd then
    return build(function() end)
  end
  pcall(ffi.cdef, 'int flock(int, int);')
  local function try(waits)
    if ffi.C.flock(fd, EXCLUSIVE) == 0 or not WOULD_BLOCK[ffi.errno()] then
      return build(function()
        vim.uv.fs_close(fd)
      end)
    elseif not waits then
      report('another Neovim is installing the Python packages')
    end
    vim.defer_fn(function()
      try(true)
    end, 200)
  end
  try(false)
end

--- The last error that a program printed, else its last line, without colors. After the errors of
--- a program that it ran, pip adds lines about itself.
---@param log string
---@return string
local function reason(log)
  local lines = vim.split(vim.trim((log:gsub('\27%[[%d;]*m', ''))), '\n')
  for place = #lines, 1, -1 do
    local text = lines[place]:match('^%s*ERROR: (.*)')
    if text then
      return vim.trim(text)
    end
  end
  return vim.trim(lines[#lines])
end

--- Make .venv, with pip in it. It is made again only if its Python is gone or too old: venv would
--- keep the links to that one. What else is in there stays: it may be in use, or work offline.
--- Of a link to another folder, only the link is replaced: that folder is not ours to empty.
---@param root string
---@param own string the Python in .venv
---@param report fun(text: string)
---@param after fun(ok: boolean, printed: string, why: string|nil)
local function prepare(root, own, report, after)
  local function made(ok, printed)
    local lacks_venv = not ok and printed:find('ensurepip', 1, true)
    after(ok, printed, lacks_venv and 'Python has no venv' .. remedy() or nil)
  end
  local there = vim.uv.fs_lstat(root .. '/.venv')
  run({ own, '-E', '-c', OLD_ENOUGH }, root, function(fits)
    if fits then
      return run({ own, '-I', '-c', WITH_PIP }, root, made)
    end
    find(root, function(python)
      if not python then
        return after(false, '', 'Python 3.10 or newer is missing' .. remedy())
      end
      report('creating .venv with ' .. python)
      if there and there.type == 'link' then
        vim.uv.fs_unlink(root .. '/.venv')
        there = nil
      end
      local venv = { python, '-E', '-m', 'venv', there and '--clear' or nil }
      run(vim.list_extend(venv, { '.venv' }), root, made)
    end)
  end)
end

--- Build with venv and pip. Every Python runs with -E, as the background process does: what is on
--- PYTHONPATH does not count as installed.
---@param root string
---@param report fun(text: string)
---@param after fun(ok: boolean, text: string, log: string)
local function with_pip(root, report, after)
  local own = root .. '/.venv/bin/python'
  prepare(root, own, report, function(ready, printed, why)
    if not ready then
      return after(false, why or reason(printed), printed)
    end
    report('installing Python packages with pip')
    local function install(what, next_step)
      local pip = { own, '-E', '-m', 'pip', 'install', '--no-user', '--disable-pip-version-check' }
      run(vim.list_extend(pip, { '--quiet', unpack(what) }), root, function(ok, more)
        printed = printed .. more
        if not ok then
          return after(false, 'pip failed: ' .. reason(more), printed)
        end
        next_step()
      end)
    end
    install(LOCKED, function()
      install(OURS, function()
        run({ own, '-E', '-c', INSTALLED }, root, function(there, tried)
          local text = there and 'Python packages installed with pip' or ELSEWHERE:format(own)
          after(there, text, printed .. tried)
        end)
      end)
    end)
  end)
end

--- Build with uv, or with venv and pip if that fails.
---@param root string
---@param report fun(text: string)
---@param after fun(ok: boolean, text: string, log: string)
local function build(root, report, after)
  if vim.fn.executable('uv') == 0 then
    return with_pip(root, report, after)
  end
  report('installing Python packages with uv')
  -- inexact: what the user has added for a fleet stays
  run({ 'uv', 'sync', '--no-dev', '--frozen', '--inexact' }, root, function(ok, printed)
    if ok then
      return after(true, 'Python packages installed with uv', printed)
    end
    with_pip(root, report, function(made, text, log)
      local why = made and text or ('uv failed: %s; %s'):format(reason(printed), text)
      after(made, why, printed .. log)
    end)
  end)
end

--- Make the tags of the help, as most plugin managers do, but nothing does for a mere clone.
--- A folder that cannot be written keeps those that it has.
---@param root string
local function tag(root)
  pcall(vim.cmd.helptags, { root .. '/doc', magic = { file = false } })
end

--- Build. Does not block.
---@param root string folder of the plugin
---@param report fun(text: string) called with each step
---@param done fun(built: bellboard.Built) called once
M.run = function(root, report, done)
  if not vim.uv.fs_access(root, 'W') then
    local text = 'cannot write to %s; set the option python to a Python that has the packages'
      .. ' (:help bellboard-install)'
    return done({ ok = false, text = text:format(vim.fn.fnamemodify(root, ':~')), log = '' })
  end
  alone(root, report, function(release)
    build(root, report, function(ok, text, log)
      if ok then
        tag(root)
      end
      release()
      done({ ok = ok, text = text, log = log })
    end)
  end)
end

return M
