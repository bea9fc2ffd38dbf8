-- The Neovim of the demo: the plugin as a user has it, a guide, and agents in terminals.
local root, home = vim.env.DEMO_ROOT, vim.env.DEMO_HOME

vim.opt.runtimepath:prepend(root)
vim.g.mapleader = ' '
vim.o.laststatus = 3
vim.o.showmode = false
vim.o.ruler = false
vim.o.swapfile = false
vim.o.mouse = 'a'
vim.o.fillchars = 'eob: '
vim.o.shortmess = vim.o.shortmess .. 'I'
if vim.env.DEMO_TERMGUICOLORS == 'false' then -- a Neovim without them shows none of a terminal
  vim.o.termguicolors = false
end
vim.g.bellboard = {
  python = vim.env.DEMO_PYTHON,
  board = { size = 0.45 },
  float = { width = 40 },
  notices = { -- nothing leaves this Neovim
    blocked = { desktop = false },
    error = { desktop = false },
    completed = { desktop = false },
    background = { desktop = false },
  },
}
vim.o.statusline = " %{b:->get('guide', fnamemodify(bufname(), ':t'))}"
  .. "%=%{%v:lua.require'bellboard'.statusline()%} "

-- In 80 columns the float that comes first has 6 rows, and leaves 38 cells beside it.
local guide = {
  '',
  '  bellboard.nvim, live',
  '',
  '  Six simulated agents run behind',
  '  this text. Their hooks, and all',
  '  that you see of them, are real.',
  '  Watch the right end of the statusline below.',
  '',
  '    Ctrl-n   go to the next one that needs you; answer there',
  '    Ctrl-o   return here',
  '    Ctrl-y   answer it from here',
  '    Ctrl-s   pick a session  :ClaudeSessions',
  '    Ctrl-g   the board       :ClaudeSessions board',
  '    Ctrl-q   quit; nothing is left behind',
  '',
  '    ! blocked   x error        + completed   * working',
  '    ? asks      & background   . idle',
  '',
}

local maps = {
  ['<C-n>'] = 'next',
  ['<C-o>'] = 'back',
  ['<C-y>'] = 'answer',
  ['<C-s>'] = 'pick',
  ['<C-g>'] = 'board',
}

---@param scene string
---@param project string
local function agent(scene, project)
  vim.cmd.enew()
  local command = { vim.env.DEMO_PYTHON, root .. '/demo/agent.py', root .. '/hooks/emit', scene }
  local opts = { cwd = home .. '/' .. project }
  if vim.fn.has('nvim-0.11') == 1 then
    vim.fn.jobstart(command, vim.tbl_extend('error', opts, { term = true }))
  else
    vim.fn.termopen(command, opts)
  end
  vim.api.nvim_buf_set_name(0, 'agent://' .. scene)
  vim.b.guide = scene .. ' · Ctrl-o back · Ctrl-n next'
end

vim.api.nvim_create_autocmd('VimEnter', {
  callback = vim.schedule_wrap(function()
    local scenes = {
      { 'api', 'acme/api' },
      { 'cache', 'acme/cache' },
      { 'web', 'acme/web' },
      { 'dotfiles', 'dotfiles' },
      { 'infra', 'acme/infra' },
      { 'docs', 'acme/docs' },
    }
    for _, scene in ipairs(scenes) do
      agent(scene[1], scene[2])
    end
    vim.cmd.enew()
    vim.api.nvim_buf_set_lines(0, 0, -1, false, guide)
    vim.bo.buftype, vim.bo.bufhidden, vim.bo.modifiable = 'nofile', 'hide', false
    vim.b.guide = 'demo'
    for key, verb in pairs(maps) do
      vim.keymap.set({ 'n', 't' }, key, function()
        require('bellboard').run(verb)
      end)
    end
    vim.keymap.set({ 'n', 't' }, '<C-q>', '<Cmd>qall!<CR>')
    vim.fn.matchadd('Title', [[bellboard\.nvim, live]])
    vim.fn.matchadd('Special', [[Ctrl-.]])
  end),
})
