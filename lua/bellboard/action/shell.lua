-- What the shell program does, from Neovim: its output in a message, or in a window.
local cells = require('bellboard.view.cells')
local message = require('bellboard.message')
local program = require('bellboard.system.program')

local M = {}

local api = vim.api

--- Its commands that are subcommands here, too; others have their own form in Neovim, such as the
--- board for `list` and `watch`.
M.commands =
  { 'explain', 'forget', 'history', 'man', 'name', 'path', 'record', 'replay', 'set', 'tmux' }

--- Show lines in a new window, the last one first seen.
---@param lines string[]
M.show = function(lines)
  vim.cmd('botright new')
  api.nvim_buf_set_lines(0, 0, -1, false, vim.tbl_map(cells.safe_line, lines))
  vim.bo.buftype, vim.bo.bufhidden, vim.bo.modifiable = 'nofile', 'wipe', false
  vim.wo.wrap = false
  api.nvim_win_set_height(0, math.max(3, math.min(#lines, math.floor(vim.o.lines / 2))))
  vim.keymap.set('n', 'q', '<Cmd>close<CR>', { buffer = 0, desc = 'close' })
  vim.cmd.normal({ 'G', bang = true })
end

--- Run a command of the program.
---@param words string[]
M.run = function(words)
  program.run(words, function(printed, why)
    if not printed then
      return message.error(('%s: %s'):format(words[1], why))
    end
    local lines = vim.split(vim.trim(printed), '\n')
    if #lines > 1 or #lines[1] + #'bellboard: ' >= vim.v.echospace then
      M.show(lines)
    elseif lines[1] ~= '' then
      message.info(cells.safe(lines[1]))
    else
      message.info(words[1] .. ': done')
    end
  end)
end

return M
