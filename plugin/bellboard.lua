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
    local opts = { nargs = '*', count = 1, desc = 'Agent sessions', complete = complete }
    vim.api.nvim_create_user_command(name, command, opts)
  end
end

-- stylua: ignore
local verbs = {
  pick = 'pick an agent session', board = 'open the board of agent sessions',
  next = 'go to the next session that needs you',
  prev = 'go to the previous session that needs you',
  back = 'go back to where you were', answer = 'answer a session',
  triage = 'answer one session after the other',
  snooze = 'snooze this session or those in the float',
  park = 'park this session or those in the float',
  label = 'remove the label of this session or those in the float',
  notices = 'list past notifications', quiet = 'notify by the float only',
  normal = 'notify of what needs you', all = 'notify of everything',
  new = 'start a session', resume = 'resume a session that ended here',
  install = 'install the hooks', uninstall = 'remove the hooks', health = 'check the health',
  start = 'start the background process', restart = 'restart the background process',
  stop = 'stop the background process', answers = 'show whether hooks wait for answers',
  build = "install bellboard's Python packages",
  path = 'link the shell program', tmux = 'show the set-up of tmux',
  history = 'show past changes of status', rules = 'list rules that would spare you questions',
  record = 'record a trace',
}
for verb, desc in pairs(verbs) do
  local opts = { desc = 'bellboard: ' .. desc }
  vim.keymap.set({ 'n', 'x', 'i', 't' }, ('<Plug>(bellboard-%s)'):format(verb), function()
    local counts = vim.api.nvim_get_mode().mode:find('^[nvV\22]')
    require('bellboard').run(verb, counts and vim.v.count1 or 1)
  end, opts)
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
      return vim.schedule(late('bellboard.board.restored', 'clear'))
    end
  end
end
vim.api.nvim_create_autocmd('SessionLoadPost', { callback = clear_restored })
clear_restored() -- one may have been loaded before
