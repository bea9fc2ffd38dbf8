-- Requires nothing: modules are loaded after startup, or by the first command or key.
if vim.g.loaded_bellboard then
  return
end
vim.g.loaded_bellboard = true

local lacks = vim.fn.has('nvim-0.10') == 0 and 'needs Neovim 0.10 or newer'
  or vim.fn.has('win32') == 1 and 'does not run on Windows; in WSL it does'
if lacks then
  vim.api.nvim_create_autocmd('VimEnter', {
    once = true,
    callback = vim.schedule_wrap(function()
      vim.notify('bellboard.nvim ' .. lacks, vim.log.levels.WARN)
    end),
  })
  return
end

-- stylua: ignore
local function late(module, name)
  return function(...) return require(module)[name](...) end
end
local autostart = late('bellboard', 'autostart')

if vim.v.vim_did_enter == 1 then
  vim.schedule(autostart)
else
  local opts = { once = true, callback = vim.schedule_wrap(autostart) }
  vim.api.nvim_create_autocmd('VimEnter', opts)
end

-- Programs report what they do (OSC 7501), and ask once, at their start, whether anybody reads it.
local reports = 'bellboard.report.terminals'
local function heard(event)
  local data = event.data -- a string in Neovim 0.10
  local sequence = type(data) == 'table' and data.sequence or data
  local is_report = sequence:find('^\27%]7501;')
  if is_report or package.loaded[reports] and sequence:find('^\27%]133;A') then
    require(reports).heard(event.buf, data)
  end
end
vim.api.nvim_create_autocmd('TermRequest', {
  group = vim.api.nvim_create_augroup('bellboard.plugin', {}),
  callback = function(event)
    pcall(heard, event)
  end,
})

if vim.fn.exists('##PackChanged') == 1 then -- vim.pack has updated this plugin
  vim.api.nvim_create_autocmd('PackChanged', {
    callback = function(event)
      local file = vim.fs.abspath(debug.getinfo(1, 'S').source:sub(2))
      local root = vim.uv.fs_realpath(vim.fs.dirname(vim.fs.dirname(file)))
      local is_this = root ~= nil and vim.uv.fs_realpath(event.data.path) == root
      if event.data.kind == 'update' and is_this then -- a part of either path may be a link
        require('bellboard.install').build(true)
      end
    end,
  })
end

local command, complete =
  late('bellboard.command', 'command'), late('bellboard.command', 'complete')
for _, name in ipairs({ 'Bellboard', 'ClaudeSessions' }) do
  if vim.fn.exists(':' .. name) ~= 2 then -- another plugin may have defined it first
    local opts = { nargs = '*', count = 1, addr = 'lines', complete = complete }
    opts.desc = 'Agent sessions'
    vim.api.nvim_create_user_command(name, command, opts)
  end
end

-- Subcommands that need no argument, from lua/bellboard/command.lua: a test compares them.
local names = 'pick board next prev back answer triage send interrupt stop answers diff '
  .. 'dismiss snooze park label mode notices new resume history rules install uninstall build path '
  .. 'tmux demo record health process restore'
for name in names:gmatch('%a+') do
  vim.keymap.set({ 'n', 'x', 'i', 't' }, ('<Plug>(bellboard-%s)'):format(name), function()
    local counts = vim.api.nvim_get_mode().mode:find('^[nvV\22]')
    require('bellboard').run(name, counts and vim.v.count1 or 1)
  end, { desc = 'bellboard: ' .. name })
end
vim.api.nvim_create_autocmd('BufReadCmd', { -- a session file restores the board's window
  pattern = 'bellboard://board',
  callback = function(event)
    require('bellboard.board').restore(event.buf)
  end,
})
local function clear_restored()
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_get_name(buf):find('^bellboard://') then
      return vim.schedule(late('bellboard.board', 'clear_restored'))
    end
  end
end
vim.api.nvim_create_autocmd('SessionLoadPost', { callback = clear_restored })
clear_restored() -- one may have been loaded before
