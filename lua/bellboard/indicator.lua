-- The statusline item for users without a statusline of their own. All others get one message that
-- says how to add it.
local config = require('bellboard.config')
local message = require('bellboard.message')
local remembered = require('bellboard.remembered')
local sessions = require('bellboard.sessions')
local statusline = require('bellboard.statusline')
local updates = require('bellboard.updates')

local M = {}

local api = vim.api

local ITEM = "%{%v:lua.require'bellboard.indicator'.item()%}"
--- What Neovim shows while 'statusline' is empty, its default before 0.12, with the item in it.
local EMPTY = '%<%f %h%w%m%r %='
  .. ITEM
  .. "%{% &showcmdloc == 'statusline' ? '%-10.S ' : '' %}"
  .. "%{% exists('b:keymap_name') ? '<'..b:keymap_name..'> ' : '' %}"
  .. "%{% &ruler ? ( &rulerformat == '' ? '%-14.(%l,%c%V%) %P' : &rulerformat ) : '' %}"
--- Remembered: the user was told how to add the item.
local TOLD = 'statusline-told'
--- Milliseconds for a statusline to use the text, before the message.
local PATIENCE = 2000

--- The counts, with space up to the next item.
---@return string
M.item = function()
  local text = statusline.text()
  return text == '' and '' or text .. '  '
end

--- Put the item into Neovim's own statusline.
---@return boolean done false: the user has another one
local function put()
  if api.nvim_get_option_info2('statusline', { scope = 'global' }).was_set then
    return vim.go.statusline:find('bellboard', 1, true) ~= nil
  end
  local default = vim.go.statusline
  vim.go.statusline = default == '' and EMPTY
    or (default:gsub('%%=', '%%=' .. ITEM:gsub('%%', '%%%%'), 1))
  return true
end

--- Say how to add the item, unless something has used the text by then.
local function tell()
  if #sessions.list() == 0 then
    return
  end
  api.nvim_del_augroup_by_name('bellboard.indicator')
  vim.defer_fn(function()
    if not statusline.is_used() and remembered.note(TOLD) then
      message.info('for your statusline, see :help bellboard-statusline')
    end
  end, PATIENCE)
end

M.attach = function()
  if not config.get().statusline.auto or put() or remembered.is(TOLD) then
    return
  end
  updates.on('indicator', tell)
end

return M
