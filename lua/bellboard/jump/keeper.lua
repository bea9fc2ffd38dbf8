-- Lets the plugin that owns a hidden terminal show it, in the plugin's usual place.
local M = {}

local api = vim.api

---@class bellboard.Keeper
---@field module string loaded once the plugin has a terminal
---@field show fun(theirs: table, buf: integer) shows the buffer if it is the plugin's

---@type bellboard.Keeper[]
local keepers = {
  {
    module = 'sidekick.cli.terminal',
    show = function(theirs, buf)
      for _, terminal in pairs(theirs.terminals) do
        if terminal.buf == buf then
          terminal:focus()
        end
      end
    end,
  },
  {
    module = 'claudecode.terminal',
    show = function(theirs, buf)
      if theirs.get_active_terminal_bufnr() == buf then
        theirs.open()
      end
    end,
  },
  {
    module = 'snacks.terminal',
    show = function(theirs, buf)
      for _, terminal in ipairs(theirs.list()) do
        if terminal.buf == buf then
          terminal:show():focus()
        end
      end
    end,
  },
  {
    module = 'toggleterm.terminal',
    show = function(theirs, buf)
      for _, terminal in ipairs(theirs.get_all(true)) do
        if terminal.bufnr == buf then
          terminal:open()
        end
      end
    end,
  },
}

--- Let the plugin that owns a hidden terminal show it.
---@param buf integer
---@return boolean shown
M.show = function(buf)
  for _, keeper in ipairs(keepers) do
    local theirs = package.loaded[keeper.module]
    if type(theirs) == 'table' and pcall(keeper.show, theirs, buf) then
      local win = vim.fn.bufwinid(buf)
      if win ~= -1 then
        api.nvim_set_current_win(win)
        return true
      end
    end
  end
  return false
end

return M
