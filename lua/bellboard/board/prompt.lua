-- The prompt for a filter of the board, which shows matching sessions meanwhile.
local view = require('bellboard.board.view')

local M = {}

local api = vim.api

---@class bellboard.PromptKey a key that ends the prompt, or that works in it
---@field run fun()
---@field stays? boolean the prompt stays open; otherwise `run` is called when it is closed

local is_open = false

---@return boolean
M.is_open = function()
  return is_open
end

--- Filter while the user types. A cancelled prompt restores the previous filter.
---@param default string
---@param keys? table<string, bellboard.PromptKey>
---@return boolean accepted by <CR> or by a key that ends it
M.filter = function(default, keys)
  local before, chosen = view.choice().filter, nil
  local group = api.nvim_create_augroup('bellboard.filter', {})
  local function show(text)
    if text ~= view.choice().filter then
      view.choose({ filter = text })
      view.first()
      vim.cmd.redraw()
    end
  end
  api.nvim_create_autocmd('CmdlineChanged', {
    group = group,
    pattern = '@',
    callback = function()
      show(vim.fn.getcmdline())
    end,
  })
  api.nvim_create_autocmd('User', {
    group = group,
    pattern = 'BellboardUpdate',
    command = 'redraw',
  })
  local buf = view.buffer()
  api.nvim_create_autocmd('BufWinLeave', { -- no window shows the matches any more
    group = group,
    buffer = buf,
    callback = function()
      api.nvim_feedkeys('\27', 'nt', false)
    end,
  })
  for lhs, key in pairs(keys or {}) do
    vim.keymap.set('c', lhs, function()
      if not key.stays then
        chosen = key
        return '<CR>'
      end
      key.run()
      vim.cmd.redraw()
    end, { buffer = buf, expr = not key.stays })
  end
  is_open = true
  vim.cmd.redraw() -- a window that was just opened
  local opts = { prompt = 'Filter: ', default = default, cancelreturn = vim.NIL }
  local ok, text = pcall(vim.fn.input, opts) -- <C-c> is an error
  is_open = false
  local is_accepted = ok and text ~= vim.NIL
  api.nvim_del_augroup_by_id(group)
  for lhs in pairs(view.buffer() == buf and keys or {}) do
    vim.keymap.del('c', lhs, { buffer = buf })
  end
  api.nvim_echo({ { '' } }, false, {}) -- the prompt would stay there
  show(is_accepted and vim.trim(text) or before)
  if chosen then
    chosen.run()
  end
  return is_accepted
end

return M
