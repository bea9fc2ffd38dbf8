-- A demo in a tab page of its own: a Neovim in a terminal, with simulated agents, and a home that
-- is removed at the end. The demo touches nothing of the user's.
local launch = require('bellboard.jump.launch')
local program = require('bellboard.process.program')

local M = {}

local api = vim.api

---@type integer|nil
local shown

---@param buf integer
local function leave(buf)
  vim.schedule(function()
    if api.nvim_buf_is_valid(buf) then
      api.nvim_buf_delete(buf, { force = true }) -- the terminal ends, and with it the demo
    end
  end)
end

--- Open the demo, or go to it. It ends when its terminal is not shown any more.
M.open = function()
  local win = shown and vim.fn.win_findbuf(shown)[1]
  if win then
    return api.nvim_set_current_win(win)
  end
  local command = vim.list_extend({ unpack(program.interpreter().command) }, { '-E' })
  vim.list_extend(command, { program.root() .. '/demo/run.py', '--nvim', vim.v.progpath })
  local env = { DEMO_TERMGUICOLORS = tostring(vim.o.termguicolors) }
  launch.terminal(command, env, function(buf)
    shown = buf
    local before = api.nvim_buf_get_name(buf)
    api.nvim_buf_set_name(buf, 'bellboard demo')
    api.nvim_buf_delete(vim.fn.bufadd(before), {}) -- Neovim makes one with the old name
    vim.cmd.startinsert()
    api.nvim_create_autocmd({ 'BufHidden', 'TermClose' }, {
      buffer = buf,
      callback = function()
        leave(buf)
      end,
    })
  end, 'tab')
end

return M
