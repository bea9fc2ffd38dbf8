-- Takes presses of the right mouse button, at which Neovim opens its menu or starts a selection.
-- Meanwhile, the user's own mappings are kept under other names.
local M = {}

local api = vim.api

local MODES = { 'n', 'x', 's', 'i', 't' }
local KEYS = { '<RightMouse>', '<2-RightMouse>', '<3-RightMouse>', '<4-RightMouse>' }

---@class bellboard.Press of a key in one mode
---@field mode string
---@field key string
---@field elsewhere string the name of the user's mapping
---@field ours function
---@field own? table<string, any> the mapping of the user

---@type bellboard.Press[]
local taken = {}

--- The global mapping of a key.
---@param mode string
---@param key string
---@return table<string, any>|nil
local function mapped(mode, key)
  local found = vim.fn.maparg(key, mode, false, true)
  if found.buffer ~= 1 then
    return next(found) and found or nil
  end
  for _, mapping in ipairs(api.nvim_get_keymap(mode)) do
    if mapping.lhs == key then
      return mapping
    end
  end
end

---@param mode string
---@param mapping table<string, any>
---@param lhs string
local function put(mode, mapping, lhs)
  local raw = api.nvim_replace_termcodes(lhs, true, true, true)
  local renamed = vim.tbl_extend('force', mapping, { lhs = lhs, lhsraw = raw })
  renamed.lhsrawalt = nil
  vim.fn.mapset(mode, false, renamed)
end

---@param mode string
---@param key string
---@param act fun(): boolean
---@return bellboard.Press
local function take(mode, key, act)
  local own, elsewhere = mapped(mode, key), ('<Plug>(bellboard-elsewhere)%s'):format(key)
  local function ours()
    return act() and '<Ignore>' or own and elsewhere or key
  end
  if own then
    put(mode, own, elsewhere)
  end
  vim.keymap.set(mode, key, ours, { expr = true, remap = true, desc = 'bellboard: answer' })
  return { mode = mode, key = key, elsewhere = elsewhere, ours = ours, own = own }
end

--- Take the presses for which `act` returns true.
---@param act fun(): boolean
M.take = function(act)
  M.give_back()
  for _, mode in ipairs(MODES) do
    for _, key in ipairs(KEYS) do
      taken[#taken + 1] = take(mode, key, act)
    end
  end
end

--- Give them back, unless they were mapped again or, as by |:mapclear|, removed.
M.give_back = function()
  local given = taken
  taken = {}
  for _, press in ipairs(given) do
    if (mapped(press.mode, press.key) or {}).callback == press.ours then
      vim.keymap.del(press.mode, press.key)
      if press.own then
        put(press.mode, press.own, press.key)
      end
    end
    if press.own and mapped(press.mode, press.elsewhere) then
      vim.keymap.del(press.mode, press.elsewhere)
    end
  end
end

return M
