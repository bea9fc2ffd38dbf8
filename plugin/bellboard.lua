-- Requires nothing: modules are loaded after startup, or by the first command or key.
if vim.g.loaded_bellboard or vim.fn.has('nvim-0.10') == 0 then
  return
end
vim.g.loaded_bellboard = true

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

local given = type(vim.g.bellboard) == 'table' and vim.g.bellboard.command
local name = type(given) == 'string' and given or 'ClaudeSessions'
if vim.fn.exists(':' .. name) ~= 2 then -- another plugin may have defined it first
  local opts = { nargs = '*', bar = true, count = 1, desc = 'Agent sessions' }
  opts.complete = late('bellboard.command', 'complete')
  vim.api.nvim_create_user_command(name, late('bellboard.command', 'command'), opts)
end
for _, verb in ipairs({ 'pick', 'board', 'next', 'prev', 'back', 'new', 'resume' }) do
  vim.keymap.set('n', ('<Plug>(bellboard-%s)'):format(verb), function()
    require('bellboard').run(verb, vim.v.count1)
  end) -- stylua: ignore
end
