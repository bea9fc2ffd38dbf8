-- Opens the picker that the user has chosen for vim.ui.select, with a preview and actions. Neovim's
-- own has neither, so a picker of ours replaces it.
local canvas = require('bellboard.canvas')
local picker_keys = require('bellboard.picker.keys')
local preview = require('bellboard.preview')
local rows = require('bellboard.picker.rows')

local M = {}

local api = vim.api

---@param session bellboard.Session
---@return { buf: integer }
local function preview_item(session)
  local buf = canvas.buffer()
  preview.into(session, buf)
  return { buf = buf, pos = { api.nvim_buf_line_count(buf), 0 } }
end

--- Any other vim.ui.select.
---@param all bellboard.Session[]
local function select(all)
  -- Leave room for numbers and a border; longer lines are hard to follow.
  local layout = rows.layout(all, math.min(vim.o.columns, 140) - 8)
  vim.ui.select(all, {
    prompt = 'Agent sessions',
    kind = 'bellboard',
    format_item = function(session, in_chunks)
      local chunks = rows.columns(session, layout)
      return in_chunks == true and chunks or canvas.text(chunks)
    end,
    preview_item = preview_item,
  }, picker_keys.go)
end

--- Modules that replace vim.ui.select, the field with their function, and our module for them.
local known = {
  { 'snacks.picker', 'select', 'bellboard.picker.snacks' },
  { 'fzf-lua.providers.ui_select', 'ui_select', 'bellboard.picker.fzf' },
  { 'mini.pick', 'ui_select', 'bellboard.picker.mini' },
}

M.open = function()
  local all = rows.sessions()
  if not all then
    return
  end
  for _, each in ipairs(known) do
    local theirs = package.loaded[each[1]]
    if type(theirs) == 'table' and theirs[each[2]] == vim.ui.select then
      return require(each[3]).open(all)
    end
  end
  local from = type(vim.ui.select) == 'function' and debug.getinfo(vim.ui.select, 'S').source or ''
  if from:find('telescope', 1, true) then -- telescope-ui-select
    require('telescope').extensions.bellboard.bellboard()
  elseif from:find('vim/ui%.lua$') then
    require('bellboard.picker.own').open()
  else
    select(all)
  end
end

return M
